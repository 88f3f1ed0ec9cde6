package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const (
	// beginUpdate does not ask for READ WRITE: an operator who sets
	// default_transaction_read_only wants the database to stay as it is.
	beginUpdate = `begin isolation level read committed`
	beginView   = `begin isolation level repeatable read read only`
)

// maxQueue bounds the writes that wait for the next round trip.
const maxQueue = 256

// query is one statement for the server: sql with args, or a statement with rows. row, which may be nil,
// is called for each row of the result and must not use the transaction.
type query struct {
	sql       string
	args      []any
	statement *arrayStatement
	rows      []any
	row       func(*row) error
	// tenant is the tenant of a statement that a group sends.
	tenant string
	// none is the error if the statement writes no row; nil if it may write none. It fails the transaction.
	none error
}

func ask(sql string, row func(*row) error, args ...any) query {
	return query{sql: sql, args: bind(args), row: row}
}

// sent returns what goes to the server.
func (q *query) sent() (sql string, args []any) {
	switch s := q.statement; {
	case s == nil:
		return q.sql, q.args
	case s.single != "" && len(q.rows) == 1:
		return s.single, s.scalars(q.rows[0])
	}
	return q.statement.text, q.statement.arguments(q.rows)
}

// reader is a row of the result as the query's function reads it: without the number of the row.
func (q *query) reader(raw [][]byte) row {
	if q.statement == nil {
		return row{raw: raw}
	}
	return row{raw: raw, column: 1}
}

// readTx implements gatehouse.ReadTx over a connection. Statements go out in
// batches, one round trip each: BEGIN with the first reads, writes with the
// next reads or with COMMIT.
type readTx struct {
	shared.Reads
	s   *Store
	ctx context.Context
	// c is nil until an Update or a Read sends its first batch, and stays nil in a member of a group or
	// of a batch of Reads. w is the Update itself; it is nil in a View.
	c    *pgx.Conn
	conn *pgxpool.Conn
	w    *tx
	view bool
	// single marks a Read: its one question goes out without BEGIN, or, if it takes several
	// statements, between BEGIN and COMMIT. readDone, which may be nil, ends its turn in the queue.
	single   bool
	readDone func()
	begun    bool
	end      bool
	// err is the first server error. It has ended the transaction, so it is the answer to every
	// later call.
	err error
	// at is the clock reading. Until a caller has seen it (clockSeen), it is provisional, and is
	// read again after a wait for locks.
	at        time.Time
	clockSeen bool
	queue     []query
	wrote     bool
	// tenant is the tenant of the next statements, serverTenant the one last set on the server; see
	// withTenant.
	tenant, serverTenant string
	opening              opening
	// freeKey is an idempotency key that neither an action nor the archive has.
	freeKey keyOf
	// tag is the command tag of the last statement of the last batch.
	tag string
	r   row
}

// Now is the transaction's one clock reading. The first call reads it, or the round trip before the
// call, after the locks taken so far.
func (t *readTx) Now() time.Time {
	if t.at.IsZero() && !t.end {
		if err := t.read(); err != nil {
			t.at = t.s.lastReading() // the transaction can no longer commit
		}
	}
	t.clockSeen = true
	return t.at
}

// read sends the queued writes and then the queries, in one round trip.
func (t *readTx) read(queries ...query) error { return t.lockAndRead(nil, queries...) }

// lockAndRead is read with queries that lock. The clock and the reads that follow them see what
// was committed during the wait for the locks.
func (t *readTx) lockAndRead(locks []query, queries ...query) error {
	if t.end {
		return errEnded
	}
	if t.err != nil {
		return t.err
	}
	first := !t.begun
	if t.single && !first {
		return errSecondRead
	}
	if t.single && t.c == nil {
		if batched, err := t.joinReads(queries); batched || err != nil {
			return err
		}
	}
	if t.w != nil && t.c == nil {
		if grouped, err := t.w.join(locks, queries); grouped || err != nil {
			return err
		}
	}
	batch := append(t.withTenant(t.pendingBatch(len(locks)+len(queries))), locks...)
	if first || len(locks) > 0 && !t.clockSeen {
		batch = append(batch, query{sql: readClock, row: t.setClock})
	}
	t.queue = t.queue[:0]
	t.begun = true
	batch = t.withOpening(append(batch, queries...))
	if t.single && len(queries) > 1 {
		batch = append(batch, query{sql: `commit`})
	}
	err, own := t.send(t.ctx, batch)
	if err != nil {
		if t.w != nil && isLockTimeout(err) {
			t.w.deniedKey, _ = lockedKey(locks)
		}
		t.err = explain(err)
		return t.err
	}
	return own
}

// pendingBatch begins the next batch: BEGIN if it is due, and the queued writes. queries is the
// number of statements that follow.
func (t *readTx) pendingBatch(queries int) []query {
	batch := make([]query, 0, len(t.queue)+queries+16)
	if !t.begun && (!t.single || queries > 1) {
		begin := beginUpdate
		if t.view {
			begin = beginView
		}
		batch = append(batch, query{sql: begin})
	}
	return append(batch, t.queue...)
}

func (t *readTx) setClock(r *row) error {
	at := r.timestamp()
	if t.s.config.Clock != nil {
		at = t.s.config.Clock().UnixMicro()
	}
	t.at = t.s.advanceClock(at)
	return nil
}

// send runs a batch. err is the error of the server or the connection; own is the first error
// of a row function.
func (t *readTx) send(ctx context.Context, batch []query) (err, own error) {
	t.s.reportTrip(batch)
	var b pgx.Batch
	for i := range batch {
		sql, args := batch[i].sent()
		b.Queue(sql, args...)
	}
	t.tag = ""
	results := t.c.SendBatch(ctx, &b)
	for i := range batch {
		rows, err := results.Query()
		if err == nil {
			for rows.Next() {
				if fn := batch[i].row; fn != nil && own == nil {
					t.r = batch[i].reader(rows.RawValues())
					own = fn(&t.r)
				}
			}
			rows.Close()
			err = rows.Err()
		}
		if err == nil && batch[i].none != nil && rows.CommandTag().RowsAffected() == 0 {
			err = noRow(batch[i].none)
		}
		if err != nil {
			_ = results.Close()
			return err, own
		}
		t.tag = rows.CommandTag().String()
	}
	return results.Close(), own
}

// reportTrip passes a batch to a test.
func (s *Store) reportTrip(batch []query) {
	if s.config.trip == nil {
		return
	}
	statements := make([]string, len(batch))
	for i, q := range batch {
		statements[i], _ = q.sent()
	}
	s.config.trip(statements)
}

// one is read for a single row; ErrNotFound if there is none.
func (t *readTx) one(sql string, fn func(*row) error, args ...any) error {
	found := false
	err := t.read(ask(sql, func(r *row) error { found = true; return fn(r) }, args...))
	if err == nil && !found {
		return gatehouse.ErrNotFound
	}
	return err
}

func (t *readTx) each(sql string, fn func(*row) error, args ...any) error {
	return t.read(ask(sql, fn, args...))
}

// number reads one integer; 0 if there is no row.
func (t *readTx) number(sql string, args ...any) (n int64, err error) {
	err = t.read(ask(sql, func(r *row) error { n = r.Int(); return nil }, args...))
	return n, err
}

// Each is each, for the methods that both engines share.
func (t *readTx) Each(sql string, row func(shared.Row) error, args ...any) error {
	return t.each(sql, rowsOf(row), args...)
}

func rowsOf(fn func(shared.Row) error) func(*row) error {
	return func(r *row) error { return fn(r) }
}

// Write queues a statement that no group sends. An error shows at the next read or at the commit.
func (t *tx) Write(sql string, args ...any) error {
	return t.queueWrite(query{sql: sql, args: bind(args), tenant: t.tenant})
}

// WriteOrFail is Write. If no row is written, the transaction fails with the error none. The number of rows
// is looked at before COMMIT is sent.
func (t *tx) WriteOrFail(none error, sql string, args ...any) error {
	return t.queueWrite(query{sql: sql, args: bind(args), tenant: t.tenant, none: none})
}

// Returning sends a statement that writes, and calls fn for each row that it returns.
func (t *tx) Returning(sql string, fn func(shared.Row) error, args ...any) error {
	return t.Each(sql, func(r shared.Row) error { t.wrote = true; return fn(r) }, args...)
}

func (t *tx) queueWrite(q query) error {
	switch {
	case t.end:
		return errEnded
	case t.err != nil:
		return t.err
	}
	if t.member != nil {
		if t.err = t.member.checkWrite(q); t.err != nil {
			return t.err
		}
		t.queue, t.wrote = append(t.queue, q), true
		return nil
	}
	t.queue = append(t.withTenant(t.queue), q)
	t.wrote = true
	if len(t.queue) >= maxQueue {
		return t.read()
	}
	return nil
}

// inTransaction reports whether the connection is within a transaction.
func (t *readTx) inTransaction() bool {
	return t.begun && !t.c.IsClosed() && t.c.PgConn().TxStatus() != 'I'
}

// finish rolls back an uncommitted transaction and releases the connection.
func (t *readTx) finish() {
	if t.inTransaction() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), 5*time.Second)
		defer cancel()
		t.s.reportTrip([]query{{sql: `rollback`}})
		if _, err := t.c.Exec(ctx, `rollback`); err != nil {
			_ = t.c.Close(ctx)
		}
	}
	t.conn.Release()
}
