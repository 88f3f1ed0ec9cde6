package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestGroupMembersSeeTheirTenant: members of several tenants share a group, and a member finds the actions of its own
// tenant only. The leaves of each tenant share a row of their own.
func TestGroupMembersSeeTheirTenant(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	p := populate(t, s)
	a := p.propose(p.known(p.agent))
	before := waitingRows(t, s)
	look := func(tenant string, there bool) func() error {
		return func() error {
			return s.Update(context.Background(), tenant, func(tx gatehouse.Tx) error {
				o, err := tx.OpenDecision(gatehouse.DecisionQuery{ActionID: a.ID})
				if err == nil && (o.Action != nil) != there {
					err = fmt.Errorf("%s finds the action: %t, want %t", tenant, !there, there)
				}
				if err != nil {
					return err
				}
				return tx.AppendLeaf(&gatehouse.Leaf{Tenant: tenant, Type: "t", Subject: tenant, Actor: "a"})
			})
		}
	}
	err := errors.Join(together(t, s, look(gatehouse.DefaultTenant, true), look("acme", false), look("acme", false),
		look("globex", false))...)
	if err != nil {
		t.Error(err)
	}
	after := waitingRows(t, s)
	for tenant, leaves := range map[string]int64{gatehouse.DefaultTenant: 1, "acme": 2, "globex": 1} {
		if got := after[tenant] - before[tenant]; got != leaves {
			t.Errorf("%s has %d new leaves, want %d", tenant, got, leaves)
		}
	}
}

// TestGroupSeesItsTenants: a statement that does not name the tenant sees, in a group, the rows of the members' tenants,
// and no others.
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
