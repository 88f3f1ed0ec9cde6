package model

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/gatehouse-dev/gatehouse"
)

// TestCheckerBites tests the test: stores that break their promises must
// produce histories that porcupine refuses.
func TestCheckerBites(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]func(*past, gatehouse.Store) gatehouse.Store{
		"a claim that ignores the state it moves from": func(p *past,
			s gatehouse.Store) gatehouse.Store {
			return forgetful{s, p}
		},
		"reads of the state before the last one": func(p *past, s gatehouse.Store) gatehouse.Store { return behind{s, p} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &past{seen: map[string]*gatehouse.Action{}}
			c := newCrowd(t, openSQLite, func(s gatehouse.Store) gatehouse.Store { return broken(p, s) })
			for seed := range uint64(20) {
				if verdict(c.history(seed)) == porcupine.Illegal {
					return
				}
			}
			t.Error("20 histories of a broken store were found to be in order")
		})
	}
}

// past holds earlier states of actions.
type past struct {
	mu   sync.Mutex
	seen map[string]*gatehouse.Action
}

func copied(a *gatehouse.Action) *gatehouse.Action {
	c := *a
	if a.Approval != nil {
		ap := *a.Approval
		ap.Votes = slices.Clone(ap.Votes)
		c.Approval = &ap
	}
	return &c
}

// forgetful is a store whose lock does not lock: the first caller after a
// decision still sees the action pending, and guarded writes ignore their
// guards.
type forgetful struct {
	gatehouse.Store
	past *past
}

func (f forgetful) Update(ctx context.Context, tenant string, fn func(gatehouse.Tx) error) error {
	return f.Store.Update(ctx, tenant, func(tx gatehouse.Tx) error { return fn(forgetfulTx{tx, f.past}) })
}

type forgetfulTx struct {
	gatehouse.Tx
	past *past
}

func (f forgetfulTx) LockAction(id string) (*gatehouse.Action, error) {
	a, err := f.Tx.LockAction(id)
	if err != nil {
		return nil, err
	}
	return f.forget(a), nil
}

// forget returns the pending action instead of the one that was decided, once.
func (f forgetfulTx) forget(a *gatehouse.Action) *gatehouse.Action {
	f.past.mu.Lock()
	defer f.past.mu.Unlock()
	if a.Status == gatehouse.StatusPending {
		f.past.seen[a.ID] = copied(a)
	} else if stale := f.past.seen[a.ID]; stale != nil {
		delete(f.past.seen, a.ID)
		return stale
	}
	return a
}

func (f forgetfulTx) OpenDecision(q gatehouse.DecisionQuery) (*gatehouse.OpenedDecision, error) {
	o, err := f.Tx.OpenDecision(q)
	if err == nil && o.Action != nil {
		o.Action = f.forget(o.Action)
	}
	return o, err
}

func unguarded(err error) error {
	if errors.Is(err, gatehouse.ErrConflict) {
		return nil
	}
	return err
}

func (f forgetfulTx) MoveAction(m gatehouse.ActionMove) error { return unguarded(f.Tx.MoveAction(m)) }
func (f forgetfulTx) InsertPush(p *gatehouse.Push) error      { return unguarded(f.Tx.InsertPush(p)) }

func (f forgetfulTx) MoveApproval(id string, to gatehouse.ApprovalStatus) error {
	return unguarded(f.Tx.MoveApproval(id, to))
}

func (f forgetfulTx) PutVote(id string, v gatehouse.Vote) error {
	return unguarded(f.Tx.PutVote(id, v))
}

// behind is a store whose reads lag: each returns what the read before should
// have returned.
type behind struct {
	gatehouse.Store
	past *past
}

func (b behind) Read(ctx context.Context, tenant string, fn func(gatehouse.ReadTx) error) error {
	return b.View(ctx, tenant, fn)
}

func (b behind) View(ctx context.Context, tenant string, fn func(gatehouse.ReadTx) error) error {
	return b.Store.View(ctx, tenant, func(tx gatehouse.ReadTx) error { return fn(behindTx{tx, b.past}) })
}

type behindTx struct {
	gatehouse.ReadTx
	past *past
}

func (b behindTx) FindAction(id string) (*gatehouse.Action, error) {
	a, err := b.ReadTx.FindAction(id)
	if err != nil {
		return nil, err
	}
	b.past.mu.Lock()
	defer b.past.mu.Unlock()
	earlier := b.past.seen[a.ID]
	b.past.seen[a.ID] = copied(a) // the caller may change the returned action
	if earlier != nil {
		return copied(earlier), nil
	}
	return a, nil
}
