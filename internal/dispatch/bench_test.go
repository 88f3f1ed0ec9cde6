package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite/sqlitetest/migratedfile"
)

// clock is a store's clock that moves only when advanced.
type clock struct{ micros atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.micros.Store(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixMicro())
	return c
}

func (c *clock) now() time.Time          { return time.UnixMicro(c.micros.Load()).UTC() }
func (c *clock) advance(d time.Duration) { c.micros.Add(d.Microseconds()) }

// authority answers with err.
type authority struct {
	mu  sync.Mutex
	err error
}

func (a *authority) Recheck(gatehouse.Tx, *gatehouse.Action, *gatehouse.Rights) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

func (a *authority) say(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

// bench is a real store with approved actions, and a target.
type bench struct {
	t         testing.TB
	path      string
	clock     *clock
	store     *sqlite.Store
	targets   *Registry
	authority *authority
	n         int
}

// testConfig has the default retries, backoffs and lease, and four workers.
func testConfig() Config {
	return Config{Retries: 3,
		Backoff: []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute}, Lease: time.Minute,
		Workers: 4}
}

func newBench(t testing.TB, c connector.Connector, tenants ...string) *bench {
	t.Helper()
	b := &bench{t: t, path: migratedfile.New(t), clock: newClock(), authority: &authority{}}
	b.open(b.clock.now)
	b.target(c, tenants...)
	return b
}

func openStore(ctx context.Context, path string, now func() time.Time) (*sqlite.Store, error) {
	return sqlite.Open(ctx, sqlite.Config{Path: path, Clock: now, Readers: 2})
}

func (b *bench) open(now func() time.Time) {
	b.t.Helper()
	s, err := openStore(context.Background(), b.path, now)
	must(b.t, err)
	b.store = s
	b.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.t.Error(err)
		}
	})
}

func (b *bench) target(c connector.Connector, tenants ...string) {
	b.t.Helper()
	r, err := NewRegistry(Target{Name: "shop", Connector: c, Tenants: tenants})
	must(b.t, err)
	b.targets = r
}

func (b *bench) dispatcher(c Config, more ...func(*Dependencies)) *Dispatcher {
	b.t.Helper()
	d := Dependencies{
		Store: b.store, Targets: b.targets, Authority: b.authority, Owner: "worker-1",
		Random: func() float64 { return 0.5 },
	}
	for _, fn := range more {
		fn(&d)
	}
	dispatcher, err := New(d, c)
	must(b.t, err)
	return dispatcher
}

func failpoint(fn func(Point)) func(*Dependencies) { return func(d *Dependencies) { d.Failpoint = fn } }
func owner(name string) func(*Dependencies)        { return func(d *Dependencies) { d.Owner = name } }

func (b *bench) update(fn func(gatehouse.Tx) error) {
	b.t.Helper()
	must(b.t, b.store.Update(context.Background(), gatehouse.DefaultTenant, fn))
}

func (b *bench) updateQueues(fn func(gatehouse.Queues) error) {
	b.t.Helper()
	must(b.t, b.store.UpdateQueues(context.Background(), fn))
}

func (b *bench) viewQueues(fn func(gatehouse.ReadQueues) error) {
	b.t.Helper()
	must(b.t, b.store.ViewQueues(context.Background(), fn))
}

// approve stores an approved action with its push and a ceiling claim, as the
// gate does in its deciding transaction. with edits both first.
func (b *bench) approve(with ...func(*gatehouse.Action, *gatehouse.Push)) (a *gatehouse.Action) {
	b.t.Helper()
	b.n++
	id := fmt.Sprintf("%06d", b.n)
	b.updateQueues(func(q gatehouse.Queues) error {
		now := q.Now()
		c, _ := b.targets.Lookup("default", "shop")
		fingerprint := ""
		if c != nil {
			fingerprint = c.Fingerprint()
		}
		a = &gatehouse.Action{
			ID: "act_" + id, Revision: 1, Tenant: "default", Fingerprint: fingerprint, Status: gatehouse.StatusApproved,
			Proposal: gatehouse.Proposal{
				ActionType: "price_change", Connector: "shop", Operation: "update",
				Target:       gatehouse.Target{EntityType: "item", EntityRef: "SKU-" + id, Version: "7"},
				CurrentState: `{"price":"10.00"}`, ProposedChange: `{"price":"12.50"}`, RiskLevel: gatehouse.L2,
				IdempotencyKey: "act_" + id + ":1",
			},
			Policy: gatehouse.PolicyOutcome{Outcome: gatehouse.OutcomeAllow, Rules: []string{"r"}, Reasons: []string{"r"},
				Version: 1},
			ProposedBy: "agent", ProposerID: "prn_agent", ProposedAt: now,
			DecidedBy: "policy", DecidedAt: &now, DecidedVia: gatehouse.ViaPolicy,
		}
		p := &gatehouse.Push{
			ID: "psh_" + id, ActionID: a.ID, Connector: "shop", IdempotencyKey: a.IdempotencyKey,
			Status: gatehouse.PushQueued, NotBefore: now, NextAttempt: &now, CreatedAt: now,
		}
		for _, fn := range with {
			fn(a, p)
		}
		a.Digest = a.ComputeDigest()
		p.Digest, p.Tenant = a.Digest, a.Tenant
		tx := q.In(a.Tenant)
		if _, err := tx.FindTenant(); err != nil {
			if err := tx.InsertTenant(&gatehouse.Tenant{ID: a.Tenant, CreatedAt: now}); err != nil {
				return err
			}
		}
		if err := tx.InsertAction(a); err != nil {
			return err
		}
		if err := tx.InsertPush(p); err != nil {
			return err
		}
		return reserve(tx, a.ID)
	})
	return a
}

// reserve claims one of the ten places of an action's own ceiling.
func reserve(tx gatehouse.Tx, id string) error {
	_, err := tx.ReserveCeilings(id, gatehouse.CeilingClaim{
		Ceiling: "daily", Scope: id, Amount: "1", Limit: "10", Window: gatehouse.Duration(24 * time.Hour),
	})
	return err
}

// state is everything that the store holds about one action.
type state struct {
	action   *gatehouse.Action
	push     *gatehouse.Push
	receipts []*gatehouse.Receipt
	// reserved reports whether the ceiling claim is still held.
	reserved bool
	mirrored int
}

func (b *bench) state(a *gatehouse.Action) (s state) {
	b.t.Helper()
	// LockCeilings needs a writing transaction. It fails on purpose, so nothing
	// is committed.
	errRead := errors.New("read")
	err := b.store.Update(context.Background(), a.Tenant, func(tx gatehouse.Tx) (err error) {
		s = state{}
		if s.action, err = tx.FindAction(a.ID); err != nil {
			return err
		}
		if s.push, err = tx.FindPush(s.action.Push.ID); err != nil {
			return err
		}
		if s.receipts, err = tx.ListReceipts(a.ID); err != nil {
			return err
		}
		used, err := tx.LockCeilings(gatehouse.CeilingSpan{Ceiling: "daily", Scope: a.ID, Since: time.Unix(0, 0)})
		if err != nil {
			return err
		}
		s.reserved = used[0].Sign() != 0
		mirror, err := tx.ListMirror("", "", 200)
		if err != nil {
			return err
		}
		for _, m := range mirror.Items {
			if m.ActionID == a.ID {
				s.mirrored++
			}
		}
		return errRead
	})
	if !errors.Is(err, errRead) {
		b.t.Fatal(err)
	}
	return s
}

// settle repeats rescue and drain, advancing the clock by an hour, until
// nothing is due.
func (b *bench) settle(d *Dispatcher) {
	b.t.Helper()
	for range 50 {
		if _, err := d.Rescue(context.Background()); err != nil {
			b.t.Fatal(err)
		}
		items, err := d.Drain(context.Background(), "", 100)
		must(b.t, err)
		var next time.Time
		b.viewQueues(func(q gatehouse.ReadQueues) (err error) { next, err = q.NextPushAt(); return err })
		if len(items) == 0 && next.IsZero() {
			return
		}
		b.clock.advance(time.Hour)
	}
	b.t.Fatal("the pushes do not settle")
}

// drain runs one round without advancing the clock.
func (b *bench) drain(d *Dispatcher) []gatehouse.DrainItem {
	b.t.Helper()
	items, err := d.Drain(context.Background(), "", 100)
	must(b.t, err)
	return items
}

// leaves returns the log's leaves about one action, in order.
func (b *bench) leaves(a *gatehouse.Action) (leaves []gatehouse.Leaf) {
	b.t.Helper()
	b.viewQueues(func(q gatehouse.ReadQueues) error {
		leaves = nil
		pending, err := q.UnnumberedLeaves(10_000)
		for _, p := range pending {
			var l gatehouse.Leaf
			if err := json.Unmarshal([]byte(p.Body), &l); err != nil {
				return err
			}
			if l.ActionID == a.ID {
				leaves = append(leaves, l)
			}
		}
		return err
	})
	return leaves
}

// replay requeues a dead letter, as the gate does.
func (b *bench) replay(a *gatehouse.Action) {
	b.t.Helper()
	b.update(func(tx gatehouse.Tx) error {
		a, err := tx.LockAction(a.ID)
		if err != nil {
			return err
		}
		p, err := tx.LockPush(a.Push.ID)
		if err != nil {
			return err
		}
		now := tx.Now()
		p.Status, p.NextAttempt, p.FinishedAt = gatehouse.PushQueued, &now, nil
		p.AttemptBase = p.Attempts
		p.Replays++
		return errors.Join(
			tx.UpdatePush(p, gatehouse.PushFailed, p.Generation),
			tx.MoveAction(gatehouse.ActionMove{ID: a.ID, From: gatehouse.StatusFailed, To: gatehouse.StatusApproved}),
			reserve(tx, a.ID),
		)
	})
}

// must ends the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
