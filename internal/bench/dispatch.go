package bench

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/engine"
)

// dispatchWorkers is how many pushes are carried out at a time, and claimed in
// a batch, on either side.
const dispatchWorkers = 16

// dispatch measures pushes through claim, intent, a connector that does
// nothing, and settlement.
func (r *runner) dispatch(ctx context.Context) (err error) {
	dir, remove, err := r.folder("dispatch")
	if err != nil {
		return err
	}
	defer remove()
	targets := noopTargets()
	w, err := r.open(ctx, Setup{Dir: dir, Targets: targets, Idle: true}, 16)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	registry, err := engine.NewRegistry(targets...)
	if err != nil {
		return err
	}
	b, err := openSteps(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	d := r.slice(2)
	var rate values
	var ours, bare *outcome
	guess := func(last *outcome) int {
		if last == nil {
			return max(64, int(4000*d.Seconds()))
		}
		return max(64, int(last.perSecond()*d.Seconds()))
	}
	for round := range r.Rounds {
		r.say("dispatch, round %d of %d", round+1, r.Rounds)
		n := guess(ours)
		if err := w.approve(ctx, n); err != nil {
			return err
		}
		if err := w.number(ctx); err != nil {
			return err
		}
		m := guess(bare)
		if err := b.queue(m); err != nil {
			return err
		}
		ours, err = r.profiled("dispatch", round, func() (*outcome, error) { return w.carry(ctx, registry, n) })
		if err != nil {
			return err
		}
		if err := w.number(ctx); err != nil {
			return err
		}
		runtime.GC()
		if bare, err = b.carry(ctx, m); err != nil {
			return err
		}
		rate.add(ours.perSecond(), bare.perSecond())
	}
	r.report(Line{
		Figure: "dispatch", Name: "pushes claimed, called, settled", Unit: "/s", Target: 0.5,
		Baseline: "bare lease, intent and completion, as many writes, group commit",
	}, rate)
	return nil
}

// approve stores n approved actions with their pushes, by the use case.
func (w *world) approve(ctx context.Context, n int) error {
	list, err := w.fill(ctx, n)
	if err != nil {
		return err
	}
	people := make([]*gatehouse.Principal, len(w.people))
	err = w.Store.View(ctx, func(tx gatehouse.ReadTx) error {
		for i, p := range w.people {
			var err error
			if people[i], err = tx.FindPrincipal(gatehouse.DefaultTenant, p.id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	_, err = drive(ctx, len(people), time.Hour, n, func(i int) (func(int) error, func(), error) {
		ctx := gatehouse.NewContext(ctx, &gatehouse.Caller{Principal: people[i], StepUp: true, Via: gatehouse.ViaAPI})
		return func(item int) error {
			_, err := w.App.Decide(ctx, list[item].id, gatehouse.Decision{Decision: gatehouse.Approve, Digest: list[item].digest})
			return err
		}, func() {}, nil
	})
	return err
}

// carry runs a dispatcher until n pushes have settled.
func (w *world) carry(ctx context.Context, registry *engine.Registry, n int) (*outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var settled atomic.Int64
	var last time.Time
	config := engine.DefaultConfig()
	config.Workers, config.Batch = dispatchWorkers, dispatchWorkers
	d, err := engine.New(engine.Dependencies{
		Store: w.Store, Targets: registry, Authority: w.App, Owner: "bench",
		Committed: func(string) {
			if settled.Add(1) == int64(n) {
				last = time.Now()
				cancel()
			}
		},
	}, config)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	d.Run(ctx)
	if last.IsZero() {
		return nil, ctx.Err()
	}
	return &outcome{done: n, elapsed: last.Sub(start)}, nil
}

// steps is the baseline: the claims' tables, and what a settlement writes.
type steps struct {
	*claims
	st      []*sql.Stmt
	waiting []string
}

const stepSchema = `
CREATE TABLE receipt (id TEXT PRIMARY KEY, push_id TEXT NOT NULL, outcome TEXT NOT NULL, body TEXT NOT NULL) STRICT;
CREATE TABLE mirror (seq INTEGER PRIMARY KEY, action_id TEXT NOT NULL UNIQUE, body TEXT NOT NULL) STRICT;`

const (
	stepPushDone   = `UPDATE push SET status = 'applied' WHERE id = ? AND status = 'sent'`
	stepActionDone = `UPDATE action SET status = 'applied' WHERE tenant = 'default' AND id = ? AND status = 'pushing'`
	stepReceipt    = `INSERT INTO receipt VALUES (?, ?, 'applied', '{}')`
	stepMirror     = `INSERT INTO mirror (action_id, body) VALUES (?, ?)`
)

func openSteps(ctx context.Context, dir string) (*steps, error) {
	c, err := openClaims(ctx, dir)
	if err != nil {
		return nil, err
	}
	if _, err := c.db.writer.ExecContext(ctx, stepSchema); err != nil {
		return nil, errors.Join(err, c.close())
	}
	s := &steps{claims: c}
	s.st, err = c.db.prepare(ctx, claimLease, claimSent, claimMoving, stepPushDone, stepActionDone, stepReceipt, stepMirror)
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return s, nil
}

// queue stores n approved actions with their pushes.
func (s *steps) queue(n int) error {
	ids, err := s.pending(n)
	if err != nil {
		return err
	}
	s.waiting = ids
	return s.db.whole(func() error {
		for _, id := range ids {
			if err := s.claim(id); err != nil {
				return err
			}
		}
		return nil
	})
}

// carry leases in batches and completes with as many workers as the gate has.
func (s *steps) carry(ctx context.Context, n int) (*outcome, error) {
	slots := make(chan struct{}, dispatchWorkers)
	var failure atomic.Pointer[error]
	fail := func(err error) {
		if err != nil {
			failure.CompareAndSwap(nil, &err)
		}
	}
	var wg sync.WaitGroup
	start := time.Now()
	for rest := s.waiting[:n]; len(rest) > 0 && ctx.Err() == nil && failure.Load() == nil; {
		slots <- struct{}{}
		free := 1 + cap(slots) - len(slots)
		batch := rest[:min(free, len(rest))]
		rest = rest[len(batch):]
		for range len(batch) - 1 {
			slots <- struct{}{}
		}
		fail(s.group.do(func() error {
			for _, id := range batch {
				if err := execStmt(s.st[0], "psh_"+id); err != nil {
					return err
				}
			}
			return nil
		}))
		for _, id := range batch {
			wg.Go(func() {
				defer func() { <-slots }()
				fail(s.group.do(func() error { return s.intent(id) }))
				fail(s.group.do(func() error { return s.complete(id) }))
			})
		}
	}
	wg.Wait()
	if err := failure.Load(); err != nil {
		return nil, *err
	}
	return &outcome{done: n, elapsed: time.Since(start)}, ctx.Err()
}

func (s *steps) intent(id string) error {
	return errors.Join(execStmt(s.st[1], "psh_"+id), execStmt(s.st[2], id),
		execStmt(s.event, "default", `{"type":"push.sent","subject":"`+id+`"}`))
}

func (s *steps) complete(id string) error {
	return errors.Join(execStmt(s.st[3], "psh_"+id), execStmt(s.st[4], id), execStmt(s.st[5], "rcp_"+id, "psh_"+id),
		execStmt(s.st[6], id, `{"after":{"currency":"EUR","price":"12.50"}}`),
		execStmt(s.event, "default", `{"type":"push.applied","subject":"`+id+`"}`))
}
