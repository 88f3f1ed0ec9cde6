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
	// beginUpdate does not say READ WRITE, since that would override an operator's
	// default_transaction_read_only.
	beginUpdate = `begin isolation level read committed`
	beginView   = `begin isolation level repeatable read read only`
)

// maxQueue bounds the writes that wait for the next round trip.
const maxQueue = 256

// query is one statement for the server: either sql with args, or an arrayStatement with rows.
type query struct {
	sql       string
	args      []any
	statement *arrayStatement
	rows      []any
	// row, which may be nil, is called for each row of the result. It must not use the transaction.
	row func(*row) error
	// tenant is the tenant of a statement that a group or a batch of Reads may send.
	tenant string
	// noRowErr, if not nil, fails the transaction if the statement writes no row.
	noRowErr error
}

func ask(sql string, row func(*row) error, args ...any) query {
	return query{sql: sql, args: bind(args), row: row}
}

// sqlAndArgs returns the text and the arguments for the server.
func (q *query) sqlAndArgs() (sql string, args []any) {
	switch s := q.statement; {
	case s == nil:
		return q.sql, q.args
	case s.single != "" && len(q.rows) == 1:
		return s.single, s.scalars(q.rows[0])
	}
	return q.statement.text, q.statement.arguments(q.rows)
}

// reader returns a row of the result for the query's row function. It skips the row number that an
// arrayStatement returns first.
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
	// c is nil until an Update or a Read sends its first batch. It stays nil in a member of a group or
	// of a batch of Reads.
	c    *pgx.Conn
	conn *pgxpool.Conn
	// update is the Update to which this readTx belongs; nil in a View.
	update *tx
	view   bool
	// single says that this is a Read: a single method call in one round trip. It sends one query
	// without BEGIN, and several between BEGIN and COMMIT. The queries of an Open method do not count.
	// readDone, which may be nil, lets the next Reads of the queue start.
	single   bool
	readDone func()
	begun    bool
	ended    bool
	// err is the first server error. It has ended the transaction, so every later call returns it.
	err error
	// at is the clock reading. As long as no caller has seen it (clockSeen), each wait for locks
	// replaces it with a new reading.
	at        time.Time
	clockSeen bool
	queue     []query
	wrote     bool
	// tenant is the tenant of the next statements. serverTenant is the tenant that the server's
	// setting has; see withTenant.
	tenant, serverTenant string
	opening              opening
	// freeKey is an idempotency key that neither an action nor the archive has.
	freeKey keyRow
	// tag is the command tag of the last statement of the last batch.
	tag string
	// r is reused for each row that a row function gets.
	r row
}

// Now returns the transaction's only clock reading. The clock was read after the last wait for locks before the first
// call of Now.
func (t *readTx) Now() time.Time {
	if t.at.IsZero() && !t.ended {
		if err := t.read(); err != nil {
			t.at = t.s.lastReading() // the transaction can no longer commit
		}
	}
	t.clockSeen = true
	return t.at
}

// read sends the queued writes and then the queries, in one round trip.
func (t *readTx) read(queries ...query) error { return t.lockAndRead(nil, queries...) }

// lockAndRead sends the queued writes, the locking queries and then the other queries, in one round trip. The
// clock and the other queries see everything that was committed during the wait for the locks.
func (t *readTx) lockAndRead(locks []query, queries ...query) error {
	if t.ended {
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
	if t.update != nil && t.c == nil {
		if grouped, err := t.update.join(locks, queries); grouped || err != nil {
			return err
		}
	}

	batch := t.withTenant(t.pendingBatch(len(locks) + len(queries)))
	batch = append(batch, locks...)
	if first || len(locks) > 0 && !t.clockSeen {
		batch = append(batch, query{sql: readClock, row: t.setClock})
	}
	t.queue = t.queue[:0]
	t.begun = true
	batch = append(batch, queries...)
	batch = t.withOpening(batch)
	if t.single && len(queries) > 1 {
		batch = append(batch, query{sql: `commit`})
	}

	err, rowErr := t.send(t.ctx, batch)
	if err != nil {
		if t.update != nil && isLockTimeout(err) {
			t.update.deniedKey, _ = lockedKey(locks)
		}
		t.err = explain(err)
		return t.err
	}
	return rowErr
}

// pendingBatch returns the beginning of the next batch: BEGIN, if the transaction has not begun, and
// the queued writes. queries is the number of statements that the caller will append.
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

// send runs a batch. err is the error of the server or the connection; rowErr is the first error
// of a row function.
func (t *readTx) send(ctx context.Context, batch []query) (err, rowErr error) {
	t.s.reportTrip(batch)
	var b pgx.Batch
	for i := range batch {
		sql, args := batch[i].sqlAndArgs()
		b.Queue(sql, args...)
	}
	t.tag = ""
	results := t.c.SendBatch(ctx, &b)
	for i := range batch {
		rows, err := results.Query()
		if err == nil {
			for rows.Next() {
				if fn := batch[i].row; fn != nil && rowErr == nil {
					t.r = batch[i].reader(rows.RawValues())
					rowErr = fn(&t.r)
				}
			}
			rows.Close()
			err = rows.Err()
		}
		if err == nil && batch[i].noRowErr != nil && rows.CommandTag().RowsAffected() == 0 {
			err = noRow(batch[i].noRowErr)
		}
		if err != nil {
			_ = results.Close()
			return err, rowErr
		}
		t.tag = rows.CommandTag().String()
	}
	return results.Close(), rowErr
}

// reportTrip passes a batch to a test.
func (s *Store) reportTrip(batch []query) {
	if s.config.trip == nil {
		return
	}
	statements := make([]string, len(batch))
	for i, q := range batch {
		statements[i], _ = q.sqlAndArgs()
	}
	s.config.trip(statements)
}

// one reads one row with fn; ErrNotFound if there is none.
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

// Each implements shared.Reader.
func (t *readTx) Each(sql string, row func(shared.Row) error, args ...any) error {
	return t.each(sql, rowsOf(row), args...)
}

func rowsOf(fn func(shared.Row) error) func(*row) error {
	return func(r *row) error { return fn(r) }
}

// Write queues a statement. A group does not send it: a member of a group leaves the group and runs again, alone.
// The next read or the commit returns the error of the statement.
func (t *tx) Write(sql string, args ...any) error {
	return t.queueWrite(query{sql: sql, args: bind(args), tenant: t.tenant})
}

// WriteOrFail is Write, but the transaction fails with noRowErr if the statement writes no row. The
// store sends COMMIT only after it has checked the number of rows.
func (t *tx) WriteOrFail(noRowErr error, sql string, args ...any) error {
	return t.queueWrite(query{sql: sql, args: bind(args), tenant: t.tenant, noRowErr: noRowErr})
}

// Returning sends a statement that writes, and calls fn for each row that it returns.
func (t *tx) Returning(sql string, fn func(shared.Row) error, args ...any) error {
	return t.Each(sql, func(r shared.Row) error { t.wrote = true; return fn(r) }, args...)
}

func (t *tx) queueWrite(q query) error {
	switch {
	case t.ended:
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
