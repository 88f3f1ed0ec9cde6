package storetest

import (
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gatehouse-dev/gatehouse"
)

// actionFacts checks that ActionFacts passes the actions of one tenant to its callback, the newest first, until the
// callback returns false.
func (s *suite) actionFacts() {
	ana := s.insertPrincipal(func(p *gatehouse.Principal) { p.Name = "ana" })
	var want []gatehouse.ActionFact
	for i := range 5 {
		a := s.pending(func(a *gatehouse.Action) {
			a.RiskLevel, a.ProposerID, a.ProposedBy = gatehouse.RiskLevel(i+1), ana.ID, ana.Name
			if i == 1 {
				a.Approval.Groups = []string{"finance", "it"}
			}
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
			Groups: a.Approval.Groups,
		}
		want = append([]gatehouse.ActionFact{f}, want...)
	}
	read := func(tenant string, n int) (got []gatehouse.ActionFact) {
		s.as(tenant).view(func(tx gatehouse.ReadTx) error {
			got = nil
			return tx.ActionFacts("", func(f gatehouse.ActionFact) bool {
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
	s.as("acme").update(func(tx gatehouse.Tx) error {
		return tx.InsertTenant(&gatehouse.Tenant{ID: "acme", CreatedAt: tx.Now()})
	})
	if got := read("acme", 100); len(got) != 0 {
		s.Errorf("another tenant has %d facts", len(got))
	}
}

// savedViews checks that a saved view belongs to one principal, and that a view with a known name replaces the stored
// view.
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
		s.as(tenant).view(func(tx gatehouse.ReadTx) (err error) {
			got, err = tx.ListViews(p.ID)
			return err
		})
		if diff := cmp.Diff(views, got); diff != "" {
			s.Errorf("views of %s (-want +got):\n%s", p.Name, diff)
		}
	}
	want(tenant, ana, of(ana, "mine", "tab=mine", now), of(ana, "urgent", "risk=3", now.Add(time.Second)))
	want(tenant, bo, of(bo, "urgent", "risk=4", now))
	want("acme", ana)
	s.as("acme").update(func(tx gatehouse.Tx) error { return tx.DeleteView(ana.ID, "urgent") })
	s.update(func(tx gatehouse.Tx) error { return tx.DeleteView(ana.ID, "urgent") })
	want(tenant, ana, of(ana, "mine", "tab=mine", now))
	want(tenant, bo, of(bo, "urgent", "risk=4", now))
}

// notices belong to a tenant; a dismissal belongs to one principal.
func (s *suite) notices() {
	ana, bo := s.insertPrincipal(), s.insertPrincipal()
	s.as("acme").update(func(tx gatehouse.Tx) error {
		return tx.InsertTenant(&gatehouse.Tenant{ID: "acme", CreatedAt: tx.Now()})
	})
	now := s.now()
	var all []*gatehouse.Notice
	for i := range 5 {
		n := &gatehouse.Notice{
			ID: fmt.Sprintf("ntc_%d", i), Tenant: tenant, At: now.Add(time.Duration(i) * time.Second), Kind: "principal.changed",
			Subject: bo.ID, SubjectName: bo.Name, Actor: ana.ID, ActorName: ana.Name, Via: gatehouse.ViaAPI, FromTenant: "acme",
			Detail: "roles: approver",
		}
		all = append([]*gatehouse.Notice{n}, all...)
		s.update(func(tx gatehouse.Tx) error { return tx.InsertNotice(n) })
	}
	s.updateReturns(gatehouse.ErrConflict, "the same notice",
		func(tx gatehouse.Tx) error { return tx.InsertNotice(all[0]) })
	foreign := *all[0]
	foreign.Tenant, foreign.ID = "acme", "ntc_9"
	s.as("acme").update(func(tx gatehouse.Tx) error { return tx.InsertNotice(&foreign) })
	list := func(tenant string, p *gatehouse.Principal, since time.Time,
		f gatehouse.NoticeFilter) (page gatehouse.Page[*gatehouse.Notice]) {
		s.Helper()
		s.as(tenant).view(func(tx gatehouse.ReadTx) (err error) {
			page, err = tx.ListNotices(p.ID, since, f)
			return err
		})
		return page
	}
	want := func(got gatehouse.Page[*gatehouse.Notice], want ...*gatehouse.Notice) {
		s.Helper()
		if diff := cmp.Diff(want, got.Items, cmpopts.EquateEmpty()); diff != "" {
			s.Errorf("notices (-want +got):\n%s", diff)
		}
	}
	want(list(tenant, ana, now, gatehouse.NoticeFilter{}), all...)
	want(list(tenant, ana, now.Add(3*time.Second), gatehouse.NoticeFilter{}), all[:2]...)
	want(list("acme", ana, now, gatehouse.NoticeFilter{}), &foreign)
	first := list(tenant, ana, now, gatehouse.NoticeFilter{Limit: 3})
	want(first, all[:3]...)
	want(list(tenant, ana, now, gatehouse.NoticeFilter{Limit: 3, Cursor: first.NextCursor}), all[3:]...)
	dismiss := func(id string, want bool) {
		s.Helper()
		var got bool
		s.update(func(tx gatehouse.Tx) (err error) {
			got, err = tx.DismissNotice(ana.ID, id)
			return err
		})
		if got != want {
			s.Errorf("dismissed %s: %v", id, got)
		}
	}
	dismiss(all[1].ID, true)
	dismiss(all[1].ID, false)
	dismiss(foreign.ID, false)
	dismiss("ntc_none", false)
	want(list(tenant, ana, now, gatehouse.NoticeFilter{}), all[0], all[2], all[3], all[4])
	want(list(tenant, bo, now, gatehouse.NoticeFilter{}), all...)
	gone := *all[1]
	gone.Dismissed = true
	want(list(tenant, ana, now, gatehouse.NoticeFilter{All: true}), all[0], &gone, all[2], all[3], all[4])
}

// approverSince: FindPrincipal and LockPrincipals return the time that was stored.
func (s *suite) approverSince() {
	since := s.now().Add(-time.Hour)
	p := s.insertPrincipal(func(p *gatehouse.Principal) { p.ApproverSince = &since })
	read := func(want *time.Time) {
		s.Helper()
		s.update(func(tx gatehouse.Tx) error {
			byID, err := tx.FindPrincipal(p.ID)
			if err != nil {
				return err
			}
			locked, err := tx.LockPrincipals([]string{p.ID})
			if err != nil {
				return err
			}
			for _, got := range append(locked, byID) {
				if diff := cmp.Diff(want, got.ApproverSince); diff != "" {
					s.Errorf("approver since (-want +got):\n%s", diff)
				}
			}
			return nil
		})
	}
	read(&since)
	later := since.Add(time.Minute)
	p.ApproverSince = &later
	s.update(func(tx gatehouse.Tx) error { return tx.UpdatePrincipal(p) })
	read(&later)
	p.ApproverSince = nil
	s.update(func(tx gatehouse.Tx) error { return tx.UpdatePrincipal(p) })
	read(nil)
}

// policyActions: an action applies at most one policy version.
func (s *suite) policyActions() {
	version := func(action string) *gatehouse.PolicyVersion {
		return &gatehouse.PolicyVersion{Tenant: tenant, Source: "x", SHA256: "y", AppliedBy: "ana", AppliedAt: s.now(),
			ActionID: action}
	}
	insert := func(v *gatehouse.PolicyVersion) func(gatehouse.Tx) error {
		return func(tx gatehouse.Tx) error { _, err := tx.InsertPolicy(v); return err }
	}
	s.update(insert(version("act_1")))
	s.update(insert(version("")))
	s.update(insert(version("")))
	s.updateReturns(gatehouse.ErrConflict, "the same action", insert(version("act_1")))
	s.view(func(tx gatehouse.ReadTx) error {
		list, err := tx.ListPolicies()
		if err == nil && list[len(list)-1].ActionID != "act_1" {
			s.Errorf("the first version is of %q", list[len(list)-1].ActionID)
		}
		return err
	})
}
