package postgres

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
)

// crowd is a target that counts the calls under way per tenant. The first calls of a bounded tenant last
// until its bound is reached, so that the test reaches the bound for certain.
type crowd struct {
	mu    sync.Mutex
	bound map[string]int
	now   map[string]int
	most  map[string]int
	full  map[string]chan struct{}
	calls map[string]int
}

func (c *crowd) Fingerprint() string { return strings.Repeat("0a", 32) }

func (c *crowd) Operation(name string) (connector.Operation, bool) {
	return connector.Operation{Name: name, Class: connector.ClassA}, name == "update"
}

func (c *crowd) Execute(ctx context.Context, call connector.Call) (connector.Result, error) {
	c.mu.Lock()
	c.now[call.Tenant]++
	c.calls[call.IdempotencyKey]++
	c.most[call.Tenant] = max(c.most[call.Tenant], c.now[call.Tenant])
	full := c.full[call.Tenant]
	if full != nil && c.now[call.Tenant] == c.bound[call.Tenant] {
		close(full)
		full, c.full[call.Tenant] = nil, nil // from now on nobody waits
	}
	c.mu.Unlock()
	if full != nil {
		select {
		case <-full:
		case <-ctx.Done():
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now[call.Tenant]--
	return connector.Result{RequestMetadata: "{}", ResponseMetadata: "{}"}, nil
}

type allowing struct{}

func (allowing) Recheck(gatehouse.Tx, *gatehouse.Action, *gatehouse.Rights) error { return nil }

// approved stores n approved actions of a tenant with their pushes.
func approved(t *testing.T, s *Store, tenant string, n int) {
	t.Helper()
	err := s.Update(context.Background(), tenant, func(tx gatehouse.Tx) error {
		now := tx.Now()
		if err := tx.InsertTenant(&gatehouse.Tenant{ID: tenant, CreatedAt: now}); err != nil {
			return err
		}
		for i := range n {
			a := pendingAction(fmt.Sprintf("%s-%05d", tenant, i), now)
			a.Tenant, a.Status, a.Approval, a.Fingerprint = tenant, gatehouse.StatusApproved, nil, strings.Repeat("0a", 32)
			a.DecidedBy, a.DecidedAt, a.DecidedVia = "policy", &now, gatehouse.ViaPolicy
			a.Digest = a.ComputeDigest()
			p := &gatehouse.Push{
				ID: "psh_" + a.ID[4:], Tenant: tenant, ActionID: a.ID, Connector: a.Connector, IdempotencyKey: a.IdempotencyKey,
				Digest: a.Digest, Status: gatehouse.PushQueued, NotBefore: now, CreatedAt: now,
			}
			if err := tx.InsertAction(a); err != nil {
				return err
			}
			if err := tx.InsertPush(p); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestReplicasKeepTheBound runs two dispatchers with many workers over the queues of several
// tenants: together they reach each bound on a tenant's pushes in flight and never exceed it.
func TestReplicasKeepTheBound(t *testing.T) {
	t.Parallel()
	url := database(t)
	stores := []*Store{openTest(t, Config{URL: url}), openTest(t, Config{URL: url})}
	pushes := map[string]int{"acme": 60, "beta": 60, "free": 60}
	target := &crowd{
		bound: map[string]int{"acme": 3, "beta": 1}, now: map[string]int{}, most: map[string]int{}, calls: map[string]int{},
		full: map[string]chan struct{}{"acme": make(chan struct{}), "beta": make(chan struct{})},
	}
	registry, err := dispatch.NewRegistry(dispatch.Target{Name: "shop", Connector: target,
		Tenants: []string{"acme", "beta", "free"}})
	if err != nil {
		t.Fatal(err)
	}
	for tenant, n := range pushes {
		approved(t, stores[0], tenant, n)
	}
	config := dispatch.DefaultConfig()
	config.Poll = 20 * time.Millisecond
	config.Tenants = map[string]dispatch.Tenant{"acme": {Weight: 3, MaxConcurrency: 3}, "beta": {MaxConcurrency: 1}}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var left atomic.Int64
	left.Store(180)
	var passed atomic.Int64
	var running sync.WaitGroup
	for i, s := range stores {
		d, err := dispatch.New(dispatch.Dependencies{
			Store: s, Targets: registry, Authority: allowing{}, Owner: fmt.Sprint("replica-", i),
			Committed: func(string) {
				// After each commit, the pushes in flight as the store counts them.
				err := s.ViewQueues(context.Background(), func(q gatehouse.ReadQueues) error {
					list, err := q.DueTenants("", 10, 1)
					for _, d := range list {
						if b := target.bound[d.Tenant]; b > 0 && d.InFlight > b {
							passed.Add(1)
						}
					}
					return err
				})
				if err != nil {
					t.Errorf("look: %v", err)
				}
				if left.Add(-1) == 0 {
					cancel()
				}
			},
		}, config)
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() { d.Run(ctx) })
	}
	running.Wait()
	if n := left.Load(); n != 0 {
		t.Fatalf("%d pushes have not settled", n)
	}
	if passed.Load() > 0 {
		t.Errorf("a tenant had more pushes in flight than its bound, %d times", passed.Load())
	}
	for tenant, bound := range target.bound {
		if target.most[tenant] != bound {
			t.Errorf("%s had up to %d calls under way, want %d", tenant, target.most[tenant], bound)
		}
	}
	for key, n := range target.calls {
		if n != 1 {
			t.Errorf("%s was called %d times", key, n)
		}
	}
	if len(target.calls) != 180 {
		t.Errorf("%d pushes were called, want 180", len(target.calls))
	}
}

// TestConnectorKeepsItsLimit: pushes that wait for a place at a connector are called as soon as places become
// free, and never more at a time than the connector's limit.
func TestConnectorKeepsItsLimit(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{URL: database(t)})
	const n, limit = 30, 2
	target := &crowd{
		bound: map[string]int{"acme": limit}, now: map[string]int{}, most: map[string]int{}, calls: map[string]int{},
		full: map[string]chan struct{}{"acme": make(chan struct{})},
	}
	registry, err := dispatch.NewRegistry(dispatch.Target{
		Name: "shop", Connector: target, Tenants: []string{"acme"}, Concurrency: limit,
	})
	if err != nil {
		t.Fatal(err)
	}
	approved(t, s, "acme", n)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second) // before they come back by themselves
	defer cancel()
	d, err := dispatch.New(dispatch.Dependencies{
		Store: s, Targets: registry, Authority: allowing{}, Owner: "replica",
		Committed: func(string) {
			target.mu.Lock()
			defer target.mu.Unlock()
			if len(target.calls) == n && target.now["acme"] == 0 {
				cancel()
			}
		},
	}, dispatch.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	d.Run(ctx)
	if len(target.calls) != n || target.most["acme"] != limit {
		t.Errorf("%d pushes were called, up to %d at a time", len(target.calls), target.most["acme"])
	}
	for key, calls := range target.calls {
		if calls != 1 {
			t.Errorf("%s was called %d times", key, calls)
		}
	}
}
