package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse"
)

const (
	// beginUpdate leaves it to default_transaction_read_only whether it may write:
	// who sets it wants the database as it is.
	beginUpdate = `begin isolation level read committed`
	beginView   = `begin isolation level repeatable read read only`
)

// maxQueue bounds the writes that wait for the next round trip.
const maxQueue = 256

// query is one statement on its way to the server; row, which may be nil, is
// called for each row of its result and must not use the transaction.
type query struct {
	sql  string
	args []any
	row  func(*row) error
	// tenant is whose rows a write is about, where a group sends it.
	tenant string
}

func ask(sql string, row func(*row) error, args ...any) query {
	return query{sql: sql, args: bind(args), row: row}
}

// readTx implements gatehouse.ReadTx over a connection. Statements go out in
// batches, one round trip each: BEGIN with the first reads, writes with the
// next reads or with COMMIT.
type readTx struct {
	s   *Store
	ctx context.Context
	// c is nil until an Update has to go to the server, and for good in one
	// that goes with a group; w is such an Update.
	c    *pgx.Conn
	w    *tx
	view bool
	// single is a View of one question: it goes out without a BEGIN, or, where
	// it takes several statements, with BEGIN and COMMIT around them.
	single bool
	begun  bool
	end    bool
	// err is the first failure of the server. It has ended the transaction,
	// so it is the answer to all that is asked afterwards.
	err error
	// at is the reading of the clock: provisional, and read again after locks
	// were waited for, until somebody has seen it (fixed).
	at    time.Time
	fixed bool
	queue []query
	wrote bool
	// tenant is whose rows the next statements are about, told what the server
	// was told last; see walls.
	tenant, told string
	ahead        ahead
	// free is a key that neither an action nor the archive has.
	free keyOf
	// tag is what the last statement of the last batch was answered with.
	tag string
	r   row
}

// Now is the transaction's one reading of the clock: taken at its first use,
// or in the round trip before it, after the locks that were taken by then.
func (t *readTx) Now() time.Time {
	if t.at.IsZero() && !t.end {
		if err := t.read(); err != nil {
			t.at = t.s.lastReading() // the transaction cannot be stored any more
		}
	}
	t.fixed = true
	return t.at
}

// read sends what waits and then the queries, in one round trip.
func (t *readTx) read(queries ...query) error { return t.locked(nil, queries...) }

// locked is read with queries that lock: what follows them, the clock and the
// reads, sees what was committed while they waited.
func (t *readTx) locked(locks []query, queries ...query) error {
	if t.end {
		return errEnded
	}
	if t.err != nil {
		return t.err
	}
	if known, err := t.foreseen(locks, queries); known {
		return err
	}
	first := !t.begun
	if t.single && !first {
		return errAskedTwice
	}
	if t.w != nil && t.c == nil {
		if grouped, err := t.w.join(locks, queries); grouped || err != nil {
			return err
		}
	}
	batch := append(t.turned(t.waiting(len(locks)+len(queries))), locks...)
	if first || len(locks) > 0 && !t.fixed {
		batch = append(batch, query{sql: readClock, row: t.state})
	}
	t.queue = t.queue[:0]
	t.begun = true
	batch = t.fetching(append(batch, queries...))
	if t.single && len(queries) > 1 {
		batch = append(batch, query{sql: `commit`})
	}
	err, own := t.send(t.ctx, batch)
	if err != nil {
		if t.w != nil && refused(err) {
			t.w.denied, _ = wanted(locks)
		}
		t.err = explain(err)
		return t.err
	}
	return own
}

// waiting is what goes out with the next batch whatever it is, before so many
// queries.
func (t *readTx) waiting(queries int) []query {
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

func (t *readTx) state(r *row) error {
	at := r.timestamp()
	if t.s.config.Clock != nil {
		at = t.s.config.Clock().UnixMicro()
	}
	t.at = t.s.reading(at)
	return nil
}

// send runs a batch. err is the server's or the connection's; own is the first
// error of a row function.
func (t *readTx) send(ctx context.Context, batch []query) (err, own error) {
	t.s.tell(batch)
	var b pgx.Batch
	for i := range batch {
		b.Queue(batch[i].sql, batch[i].args...)
	}
	t.tag = ""
	results := t.c.SendBatch(ctx, &b)
	for i := range batch {
		rows, err := results.Query()
		if err == nil {
			for rows.Next() {
				if fn := batch[i].row; fn != nil && own == nil {
					t.r = row{raw: rows.RawValues()}
					own = fn(&t.r)
				}
			}
			rows.Close()
			err = rows.Err()
		}
		if err != nil {
			_ = results.Close()
			return err, own
		}
		t.tag = rows.CommandTag().String()
	}
	return results.Close(), own
}

// tell tells a test what goes out.
func (s *Store) tell(batch []query) {
	if s.config.trip == nil {
		return
	}
	statements := make([]string, len(batch))
	for i, q := range batch {
		statements[i] = q.sql
	}
	s.config.trip(statements)
}

// one is read with ErrNotFound where there is no row.
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

// number reads one integer; 0 where there is no row.
func (t *readTx) number(sql string, args ...any) (n int64, err error) {
	err = t.read(ask(sql, func(r *row) error { n = r.int(); return nil }, args...))
	return n, err
}

// write queues a statement. What is wrong with it shows at the next read or at
// the commit: a guarded statement fails by itself, on the server.
func (t *readTx) write(sql string, args ...any) error {
	switch {
	case t.end:
		return errEnded
	case t.err != nil:
		return t.err
	}
	t.ahead.forget()
	q := query{sql: sql, args: bind(args), tenant: t.tenant}
	if t.w != nil && t.w.member != nil {
		if t.err = t.w.member.may(q); t.err != nil {
			return t.err
		}
		t.queue, t.wrote = append(t.queue, q), true
		return nil
	}
	t.queue = append(t.turned(t.queue), q)
	t.wrote = true
	if len(t.queue) >= maxQueue {
		return t.read()
	}
	return nil
}

// A guarded statement stands between guarded and one of the endings. It fails
// when it changes no row.
const (
	guarded    = `WITH w AS (`
	orConflict = ` RETURNING 1) SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH001') END`
	orMissing  = ` RETURNING 1) SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH002') END`
	// unless and orSo stand around a query: when that finds a row it is a
	// conflict, else something is missing.
	unless = ` RETURNING 1) SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse(CASE WHEN EXISTS (`
	orSo   = `) THEN 'GH001' ELSE 'GH002' END) END`
)
