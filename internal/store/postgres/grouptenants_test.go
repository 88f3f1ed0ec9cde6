package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestGroupMembersSeeTheirTenant: a member finds the actions of its own tenant only, even if another member of
// its group belongs to the tenant of an action.
func TestGroupMembersSeeTheirTenant(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	p := populate(t, s)
	a := p.propose(p.known(p.agent))
	look := func(tenant string, there bool) func() error {
		return func() error {
			return s.Update(context.Background(), tenant, func(tx gatehouse.Tx) error {
				o, err := tx.OpenDecision(gatehouse.DecisionQuery{ActionID: a.ID})
				if err == nil && (o.Action != nil) != there {
					err = fmt.Errorf("%s finds the action: %t, want %t", tenant, !there, there)
				}
				return err
			})
		}
	}
	err := errors.Join(together(t, s, look(gatehouse.DefaultTenant, true), look("acme", false), look("globex", false))...)
	if err != nil {
		t.Error(err)
	}
}

// TestGroupSeesItsTenants: in a group, a statement that does not name the tenant sees the rows of the members'
// tenants, and no others.
func TestGroupSeesItsTenants(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	withPolicies(t, s, "acme", "globex", "umbrella")
	look := func(tenant string) func() error {
		return func() error {
			return s.update(context.Background(), tenant, func(t *tx) error {
				var got []int64
				t.opening.groups = true
				err := t.read(seenVersions.ask(func(r *row) error { got = append(got, r.Int()); return nil }, tenantRow{tenant}))
				if slices.Sort(got); err == nil && !slices.Equal(got, []int64{1, 2}) {
					err = fmt.Errorf("%s sees the versions %v, want 1 and 2", tenant, got)
				}
				return err
			})
		}
	}
	if err := errors.Join(together(t, s, look("acme"), look("globex"))...); err != nil {
		t.Error(err)
	}
}

// TestGroupWritesForTenants: a member that writes for several tenants, none of which it named when it joined,
// stays in its group. No row of audit_waiting holds leaves of two tenants.
func TestGroupWritesForTenants(t *testing.T) {
	t.Parallel()
	var counter tripCounter
	s := openTest(t, Config{trip: counter.record})
	write := func() error {
		return s.UpdateQueues(context.Background(), func(q gatehouse.Queues) error {
			q.Now()
			for _, tenant := range []string{"acme", "globex"} {
				l := &gatehouse.Leaf{Tenant: tenant, Type: "t", Subject: tenant, Actor: "a"}
				if err := q.In(tenant).AppendLeaf(l); err != nil {
					return err
				}
			}
			return nil
		})
	}
	n := counter.count(t, "group", func() {
		if err := errors.Join(together(t, s, write, write)...); err != nil {
			t.Error(err)
		}
	})
	if got := waitingRows(t, s); n != 2 || got["acme"] != 2 || got["globex"] != 2 {
		t.Errorf("%d round trips and the leaves %v, want 2 and 2 of each tenant", n, got)
	}
}

// waitingRows counts the leaves in audit_waiting, by tenant. Each row must have leaves of its tenant only.
func waitingRows(t *testing.T, s *Store) map[string]int64 {
	t.Helper()
	leaves := map[string]int64{}
	err := s.ViewQueues(t.Context(), func(q gatehouse.ReadQueues) error {
		r := q.(readQueues)
		defer r.AllTenants()()
		return r.each(`SELECT w.tenant, count(*), count(*) FILTER (WHERE l.tenant = w.tenant)
FROM audit_waiting w CROSS JOIN LATERAL unnest(w.leaves) u (seq) JOIN audit_leaf l ON l.seq = u.seq GROUP BY w.tenant`,
			func(r *row) error {
				tenant, all, own := r.Text(), r.Int(), r.Int()
				if leaves[tenant] = all; all != own {
					t.Errorf("rows of %s have %d leaves, of which %d are its own", tenant, all, own)
				}
				return nil
			})
	})
	if err != nil {
		t.Fatal(err)
	}
	return leaves
}
