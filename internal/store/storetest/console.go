package storetest

import (
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
)

// actionFacts are of one tenant, the newest first, and end when asked to.
func (s *suite) actionFacts() {
	ana := s.insertPrincipal(func(p *gatehouse.Principal) { p.Name = "ana" })
	var want []gatehouse.ActionFact
	for i := range 5 {
		a := s.pending(func(a *gatehouse.Action) {
			a.RiskLevel, a.ProposerID, a.ProposedBy = gatehouse.RiskLevel(i+1), ana.ID, ana.Name
		})
		if i == 2 {
			s.update(func(tx gatehouse.Tx) error {
				m := move(a, gatehouse.StatusPending, gatehouse.StatusRejected)
				m.DecidedVia, m.Decided = gatehouse.ViaConsole, true
				return tx.MoveAction(m)
			})
			a = s.find(a.ID)
		}
		f := gatehouse.ActionFact{
			ID: a.ID, ActionType: a.ActionType, ProposedBy: a.ProposedBy, RiskLevel: a.RiskLevel, Status: a.Status,
			DecidedVia: a.DecidedVia, ProposedAt: a.ProposedAt, ExpiresAt: &a.Approval.ExpiresAt, DecidedAt: a.DecidedAt,
		}
		want = append([]gatehouse.ActionFact{f}, want...)
	}
	read := func(tenant string, n int) (got []gatehouse.ActionFact) {
		s.view(func(tx gatehouse.ReadTx) error {
			got = nil
			return tx.ActionFacts(tenant, func(f gatehouse.ActionFact) bool {
				got = append(got, f)
				return len(got) < n
			})
		})
		return got
	}
	if diff := cmp.Diff(want, read(tenant, 100)); diff != "" {
		s.Errorf("facts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[:2], read(tenant, 2)); diff != "" {
		s.Errorf("the first facts (-want +got):\n%s", diff)
	}
	s.update(func(tx gatehouse.Tx) error {
		return tx.InsertTenant(&gatehouse.Tenant{ID: "acme", CreatedAt: tx.Now()})
	})
	if got := read("acme", 100); len(got) != 0 {
		s.Errorf("another tenant has %d facts", len(got))
	}
}

// savedViews are a person's own.
func (s *suite) savedViews() {
	ana, bo := s.insertPrincipal(), s.insertPrincipal()
	now := s.now()
	of := func(p *gatehouse.Principal, name, query string, at time.Time) *gatehouse.SavedView {
		return &gatehouse.SavedView{Tenant: tenant, PrincipalID: p.ID, Name: name, Query: query, CreatedAt: at}
	}
	put := func(v *gatehouse.SavedView) {
		s.update(func(tx gatehouse.Tx) error { return tx.PutView(v) })
	}
	put(of(ana, "urgent", "risk=5", now))
	put(of(ana, "mine", "tab=mine", now))
	put(of(bo, "urgent", "risk=4", now))
	put(of(ana, "urgent", "risk=3", now.Add(time.Second)))
	want := func(tenant string, p *gatehouse.Principal, views ...*gatehouse.SavedView) {
		s.Helper()
		var got []*gatehouse.SavedView
		s.view(func(tx gatehouse.ReadTx) (err error) {
			got, err = tx.ListViews(tenant, p.ID)
			return err
		})
		if diff := cmp.Diff(views, got); diff != "" {
			s.Errorf("views of %s (-want +got):\n%s", p.Name, diff)
		}
	}
	want(tenant, ana, of(ana, "mine", "tab=mine", now), of(ana, "urgent", "risk=3", now.Add(time.Second)))
	want(tenant, bo, of(bo, "urgent", "risk=4", now))
	want("acme", ana)
	s.update(func(tx gatehouse.Tx) error { return tx.DeleteView("acme", ana.ID, "urgent") })
	s.update(func(tx gatehouse.Tx) error { return tx.DeleteView(tenant, ana.ID, "urgent") })
	want(tenant, ana, of(ana, "mine", "tab=mine", now))
	want(tenant, bo, of(bo, "urgent", "risk=4", now))
}
