package storetest

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// walk collects all pages of a list.
func walk[T any](page func(cursor string) (gatehouse.Page[T], error)) (all []T, err error) {
	for cursor := ""; ; {
		p, err := page(cursor)
		if err != nil {
			return nil, err
		}
		all = append(all, p.Items...)
		if p.NextCursor == "" {
			return all, nil
		}
		if len(p.Items) == 0 || p.NextCursor == cursor {
			return nil, fmt.Errorf("a page of %d items leads on to %q", len(p.Items), p.NextCursor)
		}
		cursor = p.NextCursor
	}
}

// list returns the ids that a filter selects, each page in its own View.
func (s *suite) list(f gatehouse.ActionFilter) []string {
	s.Helper()
	if f.Limit == 0 {
		f.Limit = 3
	}
	var ids []string
	all, err := walk(func(cursor string) (page gatehouse.Page[*gatehouse.Action], err error) {
		f.Cursor = cursor
		err = s.store.View(
			context.Background(),
			tenant,
			func(tx gatehouse.ReadTx) (err error) { page, err = tx.ListActions(f); return err },
		)
		if len(page.Items) > f.Limit {
			s.Errorf("a page of %d items, limit %d", len(page.Items), f.Limit)
		}
		return page, err
	})
	if err != nil {
		s.Fatalf("ListActions(%+v): %v", f, err)
	}
	for _, a := range all {
		ids = append(ids, a.ID)
	}
	return ids
}

func (s *suite) listFilters() {
	ana := s.insertPrincipal(func(p *gatehouse.Principal) { p.Name = "ana" })
	var all []*gatehouse.Action
	for i := range 8 {
		all = append(all, s.pending(func(a *gatehouse.Action) {
			a.RiskLevel = gatehouse.RiskLevel(i%5 + 1)
			if i%2 == 0 {
				a.ActionType = "note"
			}
			if i%3 == 0 {
				a.ProposerID, a.ProposedBy = ana.ID, "ana"
			}
			if i >= 6 {
				a.Approval.Groups = []string{"finance", "it"}
			}
			a.Rationale = "Because ÄPFEL 100% _x" + a.ID
		}))
	}
	for a, to := range map[*gatehouse.Action]gatehouse.Status{
		all[1]: gatehouse.StatusRejected, all[5]: gatehouse.StatusApproved, all[6]: gatehouse.StatusApproved,
		all[7]: gatehouse.StatusCanceled,
	} {
		m := move(a, gatehouse.StatusPending, to)
		m.DecidedBy, m.DecidedVia = "ana", gatehouse.ViaCLI
		if a == all[6] {
			m.DecidedBy, m.DecidedVia = "policy:r", gatehouse.ViaPolicy
		}
		s.update(func(tx gatehouse.Tx) error { return tx.MoveAction(m) })
		a.Status = to
	}
	for _, c := range []struct {
		name   string
		filter gatehouse.ActionFilter
		match  func(a *gatehouse.Action) bool
	}{
		{"all", gatehouse.ActionFilter{}, func(*gatehouse.Action) bool { return true }},
		{"newest", gatehouse.ActionFilter{Sort: gatehouse.SortNewest}, func(*gatehouse.Action) bool { return true }},
		{"pending", gatehouse.ActionFilter{Status: gatehouse.StatusPending},
			func(a *gatehouse.Action) bool { return a.Status == gatehouse.StatusPending }},
		{"rejected", gatehouse.ActionFilter{Status: gatehouse.StatusRejected},
			func(a *gatehouse.Action) bool { return a == all[1] }},
		{"applied", gatehouse.ActionFilter{Status: gatehouse.StatusApplied}, func(*gatehouse.Action) bool { return false }},
		{"nonsense", gatehouse.ActionFilter{Status: "nonsense"}, func(*gatehouse.Action) bool { return false }},
		{"type", gatehouse.ActionFilter{ActionType: "note"},
			func(a *gatehouse.Action) bool { return a.ActionType == "note" }},
		{"risk", gatehouse.ActionFilter{RiskLevel: 2}, func(a *gatehouse.Action) bool { return a.RiskLevel == 2 }},
		{"asked group", gatehouse.ActionFilter{AskedGroup: "it"},
			func(a *gatehouse.Action) bool { return len(a.Approval.Groups) == 2 }},
		{"part of a group's name", gatehouse.ActionFilter{AskedGroup: "nance"},
			func(*gatehouse.Action) bool { return false }},
		{"proposer's name", gatehouse.ActionFilter{ProposedBy: "ana"},
			func(a *gatehouse.Action) bool { return a.ProposerID == ana.ID }},
		{"proposer's id", gatehouse.ActionFilter{ProposedBy: ana.ID},
			func(a *gatehouse.Action) bool { return a.ProposerID == ana.ID }},
		{"no proposer", gatehouse.ActionFilter{ProposedBy: "nobody"}, func(*gatehouse.Action) bool { return false }},
		{"text", gatehouse.ActionFilter{Query: "äpfel 100% _X"}, func(*gatehouse.Action) bool { return true }},
		{"no wild cards", gatehouse.ActionFilter{Query: "1%_x"}, func(*gatehouse.Action) bool { return false }},
		{"entity_ref", gatehouse.ActionFilter{Query: strings.ToLower(all[2].Target.EntityRef)},
			func(a *gatehouse.Action) bool { return a == all[2] }},
		{"id", gatehouse.ActionFilter{Query: all[3].ID}, func(a *gatehouse.Action) bool { return a == all[3] }},
		{"approval id", gatehouse.ActionFilter{Query: all[3].Approval.ID},
			func(a *gatehouse.Action) bool { return a == all[3] }},
		{"approved by people", gatehouse.ActionFilter{Decided: gatehouse.DecidedApproved},
			func(a *gatehouse.Action) bool { return a == all[5] }},
		{"decided by people", gatehouse.ActionFilter{Decided: gatehouse.DecidedByPeople},
			func(a *gatehouse.Action) bool { return a == all[5] || a == all[1] }},
		{"allowed by the policy", gatehouse.ActionFilter{Decided: gatehouse.DecidedAllowed},
			func(a *gatehouse.Action) bool { return a == all[6] }},
		{"decided in no known way", gatehouse.ActionFilter{Decided: "nonsense"},
			func(*gatehouse.Action) bool { return false }},
		{"all at once", gatehouse.ActionFilter{
			Status: gatehouse.StatusPending, ActionType: "note", RiskLevel: 1, ProposedBy: "ana", Query: "because",
		}, func(a *gatehouse.Action) bool { return a == all[0] }},
	} {
		var want []string
		for _, a := range slices.Backward(all) {
			if c.match(a) {
				want = append(want, a.ID)
			}
		}
		s.same(c.name, s.list(c.filter), want)
		if c.filter.Sort == "" {
			c.filter.Sort = gatehouse.SortUrgency
			var urgent []string
			for _, a := range all {
				if a.Status == gatehouse.StatusPending && c.match(a) &&
					(c.filter.Status == "" || c.filter.Status == gatehouse.StatusPending) {
					urgent = append(urgent, a.ID)
				}
			}
			got := s.list(c.filter)
			slices.Sort(got)
			s.same(c.name+", by urgency", got, urgent)
		}
	}
	for limit, want := range map[int]int{0: 8, -1: 8, 1: 1, 1000: 8} {
		s.view(func(tx gatehouse.ReadTx) error {
			p, err := tx.ListActions(gatehouse.ActionFilter{Limit: limit})
			s.same(fmt.Sprintf("limit %d", limit), len(p.Items), want)
			return err
		})
	}
}

// urgency compares two actions in the order of SortUrgency: by the bucket of the expiry relative to asOf, by risk, the
// highest first, and by id.
func urgency(asOf time.Time) func(a, b *gatehouse.Action) int {
	bucket := func(a *gatehouse.Action) int {
		for i, d := range []time.Duration{time.Hour, 4 * time.Hour, 24 * time.Hour} {
			if !a.Approval.ExpiresAt.After(asOf.Add(d)) {
				return i
			}
		}
		return 3
	}
	return func(a, b *gatehouse.Action) int {
		return cmp.Or(cmp.Compare(bucket(a), bucket(b)), cmp.Compare(b.RiskLevel, a.RiskLevel), cmp.Compare(a.ID, b.ID))
	}
}

func (s *suite) listUrgency() {
	var all []*gatehouse.Action
	at := s.now()
	// Far enough from the edges of the buckets that the test's duration does
	// not matter.
	dues := []time.Duration{30 * time.Minute, 2 * time.Hour, 12 * time.Hour, 72 * time.Hour, 50 * time.Minute,
		3 * time.Hour, 1000 * time.Hour}
	s.update(func(tx gatehouse.Tx) error {
		all = nil
		for i := range 60 {
			a := s.action(at, func(a *gatehouse.Action) {
				a.RiskLevel = gatehouse.RiskLevel(i*7%5 + 1)
				a.Approval.ExpiresAt = at.Add(dues[i*5%len(dues)])
			})
			all = append(all, a)
			if err := tx.InsertAction(a); err != nil {
				return err
			}
		}
		return nil
	})
	slices.SortFunc(all, urgency(at))
	ids := func(list []*gatehouse.Action) (ids []string) {
		for _, a := range list {
			ids = append(ids, a.ID)
		}
		return ids
	}
	for _, limit := range []int{1, 7, 60, 200} {
		s.same(fmt.Sprintf("by urgency, limit %d", limit),
			s.list(gatehouse.ActionFilter{Sort: gatehouse.SortUrgency, Limit: limit}), ids(all))
	}
	var risky []*gatehouse.Action
	for _, a := range all {
		if a.RiskLevel == 4 {
			risky = append(risky, a)
		}
	}
	s.same("of one risk", s.list(gatehouse.ActionFilter{Sort: gatehouse.SortUrgency, RiskLevel: 4}), ids(risky))
}

// listWalk pages through lists while others write: a row that matched
// throughout appears exactly once.
func (s *suite) listWalk() {
	const fixed = 40
	var stays, goes []*gatehouse.Action
	for i := range fixed {
		a := s.pending(func(a *gatehouse.Action) { a.RiskLevel = gatehouse.RiskLevel(i%5 + 1) })
		if i%4 == 0 {
			goes = append(goes, a)
		} else {
			stays = append(stays, a)
		}
	}
	// Each walk gets a bounded number of new rows: an unbounded writer would make each walk longer than the one
	// before.
	const walks, fresh = 9, 40
	room := make(chan struct{}, walks*fresh)
	var writers sync.WaitGroup
	writers.Go(func() {
		for range room {
			err := s.store.Update(
				context.Background(),
				s.tenant,
				func(tx gatehouse.Tx) error { return tx.InsertAction(s.action(tx.Now())) },
			)
			if err != nil {
				s.Errorf("Update: %v", err)
				return
			}
		}
	})
	writers.Go(func() {
		for _, a := range goes {
			err := s.store.Update(context.Background(), a.Tenant, func(tx gatehouse.Tx) error {
				return tx.MoveAction(move(a, gatehouse.StatusPending, gatehouse.StatusRejected))
			})
			if err != nil {
				s.Errorf("Update: %v", err)
				return
			}
		}
	})
	for _, f := range []gatehouse.ActionFilter{{}, {Status: gatehouse.StatusPending}, {Sort: gatehouse.SortUrgency}} {
		for range 3 {
			f.Limit = 4
			for range fresh {
				room <- struct{}{}
			}
			seen := make(map[string]int)
			for _, id := range s.listUntil(f, stays) {
				seen[id]++
			}
			for _, a := range stays {
				if seen[a.ID] != 1 {
					s.Errorf("%+v: %s came %d times", f, a.ID, seen[a.ID])
				}
			}
			for id, n := range seen {
				if n != 1 {
					s.Errorf("%+v: %s came %d times", f, id, n)
				}
			}
		}
	}
	close(room)
	writers.Wait()
}

// listUntil returns the ids of all pages. In the order by urgency, where new actions are added at the end of the list,
// it stops when all wanted actions have appeared.
func (s *suite) listUntil(f gatehouse.ActionFilter, want []*gatehouse.Action) (ids []string) {
	s.Helper()
	missing := make(map[string]bool)
	for _, a := range want {
		missing[a.ID] = true
	}
	for {
		var page gatehouse.Page[*gatehouse.Action]
		s.view(func(tx gatehouse.ReadTx) (err error) { page, err = tx.ListActions(f); return err })
		for _, a := range page.Items {
			ids = append(ids, a.ID)
			delete(missing, a.ID)
		}
		if page.NextCursor == "" || f.Sort == gatehouse.SortUrgency && len(missing) == 0 {
			return ids
		}
		f.Cursor = page.NextCursor
	}
}

// listLarge checks that a page of large proposals has fewer rows than its limit, and that the pages together have all
// rows.
func (s *suite) listLarge() {
	large := gatehouse.JSON(`{"text":"` + strings.Repeat("x", 900<<10) + `"}`)
	want := make([]string, 9)
	for i := range want {
		want[i] = s.pending(func(a *gatehouse.Action) { a.ActionType, a.Metadata = "large", large }).ID
	}
	slices.Reverse(want)
	for _, order := range []gatehouse.Sort{gatehouse.SortNewest, gatehouse.SortUrgency} {
		var first gatehouse.Page[*gatehouse.Action]
		f := gatehouse.ActionFilter{ActionType: "large", Limit: gatehouse.MaxLimit, Sort: order}
		s.view(func(tx gatehouse.ReadTx) (err error) { first, err = tx.ListActions(f); return err })
		if n := len(first.Items); n == 0 || n >= len(want) || first.NextCursor == "" {
			s.Errorf("%s: the first page has %d of %d, cursor %q", order, n, len(want), first.NextCursor)
		}
		got := s.list(f)
		slices.Sort(got)
		expected := slices.Sorted(slices.Values(want))
		s.same("all of them, by "+string(order), got, expected)
	}
}

// mirrorLarge is listLarge for the list of applied changes.
func (s *suite) mirrorLarge() {
	large := gatehouse.JSON(`{"text":"` + strings.Repeat("x", 900<<10) + `"}`)
	want := make([]string, 9)
	for i := range want {
		a := s.pending()
		want[i] = a.ID
		s.update(func(tx gatehouse.Tx) error {
			return tx.InsertMirror(&gatehouse.AppliedMirror{Tenant: tenant, ActionID: a.ID, After: large, AppliedAt: tx.Now()})
		})
	}
	slices.Reverse(want)
	var got []string
	pages := 0
	for cursor := ""; pages == 0 || cursor != ""; pages++ {
		var page gatehouse.Page[*gatehouse.AppliedMirror]
		s.view(func(tx gatehouse.ReadTx) (err error) {
			page, err = tx.ListMirror("", cursor, gatehouse.MaxLimit)
			return err
		})
		for _, m := range page.Items {
			got = append(got, m.ActionID)
		}
		if len(page.Items) == 0 {
			s.Fatalf("page %d is empty", pages)
		}
		cursor = page.NextCursor
	}
	s.same("all that was applied", got, want)
	if pages < 2 {
		s.Errorf("all %d in one page", len(want))
	}
}

// listCursors checks that malformed cursors, and cursors of other lists, filters and tenants, are refused.
func (s *suite) listCursors() {
	for range 3 {
		s.queued()
	}
	s.pending()
	s.pending()
	var actions, urgent, pushes string
	s.view(func(tx gatehouse.ReadTx) error {
		p, err := tx.ListActions(gatehouse.ActionFilter{Limit: 1})
		if err != nil {
			return err
		}
		actions = p.NextCursor
		if p, err = tx.ListActions(gatehouse.ActionFilter{Limit: 1, Sort: gatehouse.SortUrgency}); err != nil {
			return err
		}
		urgent = p.NextCursor
		q, err := tx.ListPushes(gatehouse.PushFilter{Limit: 1})
		pushes = q.NextCursor
		return err
	})
	if actions == "" || urgent == "" || pushes == "" {
		s.Fatal("a first page without a next one")
	}
	bad := []string{
		"x", "%", "=", "null", strings.Repeat("A", 5000), pushes, pushes + "A", actions + "A", actions[:len(actions)-2],
		" " + actions,
		base64.RawURLEncoding.EncodeToString([]byte(`{}`)),
		base64.RawURLEncoding.EncodeToString([]byte(`{"k":"n","i":"act_1"}`)),
		base64.RawURLEncoding.EncodeToString([]byte("\xff\x00")),
	}
	s.view(func(tx gatehouse.ReadTx) error {
		check := func(what, cursor string, err error) {
			s.Helper()
			if gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
				s.Errorf("%s with cursor %.40q: error %v", what, cursor, err)
			}
		}
		for _, c := range bad {
			_, err := tx.ListActions(gatehouse.ActionFilter{Cursor: c})
			check("ListActions", c, err)
			_, err = tx.ListActions(gatehouse.ActionFilter{Cursor: c, Sort: gatehouse.SortUrgency})
			check("ListActions by urgency", c, err)
			_, err = tx.ListMirror("", c, 1)
			check("ListMirror", c, err)
			_, err = tx.ListCorpus("", c, 1)
			check("ListCorpus", c, err)
			_, err = tx.ListPrincipals(c, 1)
			check("ListPrincipals", c, err)
			if c != pushes {
				_, err = tx.ListPushes(gatehouse.PushFilter{Cursor: c})
				check("ListPushes", c, err)
			}
		}
		for _, f := range []gatehouse.ActionFilter{
			{Status: gatehouse.StatusPending}, {ActionType: "note"}, {RiskLevel: 1}, {ProposedBy: "x"}, {Query: "x"},
			{Sort: gatehouse.SortUrgency},
		} {
			f.Cursor = actions
			_, err := tx.ListActions(f)
			check("ListActions with another filter", actions, err)
		}
		_, err := tx.ListActions(gatehouse.ActionFilter{Cursor: urgent})
		check("ListActions newest first", urgent, err)
		_, err = tx.ListPushes(gatehouse.PushFilter{Cursor: pushes, Status: gatehouse.PushSent})
		check("ListPushes with another filter", pushes, err)
		return nil
	})
	s.as("acme").view(func(tx gatehouse.ReadTx) error {
		_, err := tx.ListActions(gatehouse.ActionFilter{Cursor: actions})
		if gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
			s.Errorf("ListActions of another tenant: error %v", err)
		}
		return nil
	})
}

// listAttaches checks that a page has everything that FindAction returns.
func (s *suite) listAttaches() {
	a, p := s.queued()
	s.update(func(tx gatehouse.Tx) error {
		for _, late := range []bool{false, true} {
			err := tx.InsertReceipt(&gatehouse.Receipt{
				ID: "rcp_" + s.next(), Tenant: tenant, ActionID: a.ID, PushID: p.ID, IdempotencyKey: p.IdempotencyKey,
				Attempt: 1, Outcome: gatehouse.ReceiptTransient, Source: "call", At: tx.Now(), Late: late,
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	s.queued()
	s.in(gatehouse.StatusDenied)
	s.pending(func(a *gatehouse.Action) { a.Approval.ExpiresAt = a.ProposedAt })
	two := s.pending(func(a *gatehouse.Action) { a.Approval.Required = 2 })
	s.update(func(tx gatehouse.Tx) error {
		if err := tx.PutVote(two.Approval.ID, vote("zoe", gatehouse.Approve, tx.Now())); err != nil {
			return err
		}
		return tx.PutVote(two.Approval.ID, vote("ben", gatehouse.Approve, tx.Now()))
	})
	s.view(func(tx gatehouse.ReadTx) error {
		page, err := tx.ListActions(gatehouse.ActionFilter{})
		if err != nil {
			return err
		}
		if len(page.Items) != 5 {
			s.Fatalf("%d actions, want 5", len(page.Items))
		}
		for _, got := range page.Items {
			want, err := tx.FindAction(got.ID)
			if err != nil {
				return err
			}
			s.same("as found", got, want)
		}
		pushes, err := walk(func(cursor string) (gatehouse.Page[*gatehouse.Push], error) {
			return tx.ListPushes(gatehouse.PushFilter{Status: gatehouse.PushQueued, Limit: 1, Cursor: cursor})
		})
		if err != nil {
			return err
		}
		if len(pushes) != 2 || pushes[0].ID < pushes[1].ID || pushes[1].ID != p.ID {
			s.Fatalf("pushes %+v", pushes)
		}
		sent, err := tx.ListPushes(gatehouse.PushFilter{Status: gatehouse.PushSent})
		s.same("none is sent", len(sent.Items), 0)
		return err
	})
}
