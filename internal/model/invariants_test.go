package model

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

func decodeLeaf(t testing.TB, body gatehouse.JSON) gatehouse.Leaf {
	t.Helper()
	var l gatehouse.Leaf
	if err := json.Unmarshal([]byte(body), &l); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return l
}

// checkInvariants checks one store after a sequence, without knowledge of the
// model: the invariants of docs/proof/README.md, by number.
func (s *side) checkInvariants() {
	leaves := s.log()
	corpus := s.corpus()
	s.checkNames()
	for _, id := range s.ids {
		a, err := s.gate.FindAction(s.admin, id)
		s.must(err)
		var p *gatehouse.Push
		var receipts []*gatehouse.Receipt
		s.must(s.store.View(context.Background(), a.Tenant, func(tx gatehouse.ReadTx) (err error) {
			p = nil
			if a.Push != nil {
				if p, err = tx.FindPush(a.Push.ID); err != nil {
					return err
				}
			}
			receipts, err = s.recorded(tx, a)
			return err
		}))
		s.checkDecision(a, corpus[id])
		s.checkPush(a, p, receipts)
		s.checkLog(a, p, leaves[id])
	}
	for id := range corpus {
		if _, known := s.places[id]; !known {
			s.t.Errorf("%s: a lesson of %s, which is not there", s.name, id)
		}
	}
}

// checkDecision checks invariants 1, 6, 8 and 9.
func (s *side) checkDecision(a *gatehouse.Action, lessons int) {
	ap := a.Approval
	if ap == nil {
		if a.Policy.Outcome == gatehouse.OutcomeNeedsApproval || a.RiskLevel.NeedsPerson() &&
			a.Status != gatehouse.StatusDenied {
			s.t.Errorf("%s: %s of %s was never asked", s.name, a.ID, a.RiskLevel)
		}
		return
	}
	byPeople := ap.Status == gatehouse.ApprovalApproved || ap.Status == gatehouse.ApprovalRejected
	// The corpus entry disappears with its action.
	if want := map[bool]int{true: 1}[byPeople && a.ArchivedAt == nil]; lessons != want {
		s.t.Errorf("%s: 1: %s has %d decisions, approval %s", s.name, a.ID, lessons, ap.Status)
	}
	if byPeople && !a.DecidedAt.Before(ap.ExpiresAt) {
		s.t.Errorf("%s: 9: %s was decided at %s, expired at %s", s.name, a.ID, a.DecidedAt, ap.ExpiresAt)
	}
	persons := map[string]bool{}
	for _, v := range ap.Votes {
		if persons[v.Person] {
			s.t.Errorf("%s: 8: %s: two votes of one person", s.name, a.ID)
		}
		persons[v.Person] = true
		if slices.Contains(ap.Excluded, v.Person) || slices.Contains(ap.Excluded, v.PrincipalID) ||
			slices.Contains(ap.Excluded, v.Name) {
			s.t.Errorf("%s: 8: %s: %s voted, who is excluded", s.name, a.ID, v.Name)
		}
		if v.Decision == gatehouse.Approve && v.Digest != a.Digest {
			s.t.Errorf("%s: 6: %s: a vote on %s, not on %s", s.name, a.ID, v.Digest, a.Digest)
		}
	}
	if ap.Status == gatehouse.ApprovalApproved && ap.Approvals() < ap.Required {
		s.t.Errorf("%s: 8: %s was approved by %d of %d", s.name, a.ID, ap.Approvals(), ap.Required)
	}
}

// checkPush checks invariants 3, 4, 5, 6, 13 and 15.
func (s *side) checkPush(a *gatehouse.Action, p *gatehouse.Push, receipts []*gatehouse.Receipt) {
	allowed := a.Approval == nil && a.Status != gatehouse.StatusDenied || a.Approval != nil &&
		a.Approval.Status == gatehouse.ApprovalApproved
	if allowed != (p != nil) {
		s.t.Errorf("%s: 3, 4: %s: let through %v, push %v", s.name, a.ID, allowed, p != nil)
	}
	if p == nil {
		return
	}
	if p.Digest != a.Digest || a.ComputeDigest() != a.Digest {
		s.t.Errorf("%s: 6: %s: digests differ", s.name, a.ID)
	}
	calls, effects := s.target.calls[a.IdempotencyKey], s.target.effects[a.IdempotencyKey]
	if effects > 1 {
		s.t.Errorf("%s: 5: %s has %d effects", s.name, a.ID, effects)
	}
	if calls > p.Attempts {
		s.t.Errorf("%s: 15: %s: %d calls, %d intents", s.name, a.ID, calls, p.Attempts)
	}
	switch p.Status {
	case gatehouse.PushFailed:
		if effects != 0 {
			s.t.Errorf("%s: %s is failed, and has its effect", s.name, a.ID)
		}
	case gatehouse.PushApplied:
		if effects != 1 {
			s.t.Errorf("%s: %s is applied with %d effects", s.name, a.ID, effects)
		}
		if !slices.ContainsFunc(receipts, func(r *gatehouse.Receipt) bool { return r.Outcome == gatehouse.ReceiptApplied }) {
			s.t.Errorf("%s: %s is applied without a receipt", s.name, a.ID)
		}
	case gatehouse.PushPicking, gatehouse.PushSent:
		if p.LeaseUntil == nil || p.LeaseOwner == "" {
			s.t.Errorf("%s: 13: %s is %s, and nobody's", s.name, a.ID, p.Status)
		}
	case gatehouse.PushQueued:
		if p.NextAttempt == nil {
			s.t.Errorf("%s: 13: %s waits for nothing", s.name, a.ID)
		}
	}
}

// checkLog checks invariants 6, 11, 14, 15 and 16: the log leads to the action's
// state by moves of the tables.
func (s *side) checkLog(a *gatehouse.Action, p *gatehouse.Push, leaves []gatehouse.Leaf) {
	var at gatehouse.Status
	sent := 0
	for _, l := range leaves {
		from, to := gatehouse.Status(l.From), gatehouse.Status(l.To)
		if from != at || to != from && !from.CanMove(to) {
			s.t.Errorf("%s: 11: %s: %s moves from %q to %q, it was %q", s.name, a.ID, l.Type, from, to, at)
		}
		if l.Digest != a.Digest || l.Tenant != a.Tenant {
			s.t.Errorf("%s: 6, 16: %s: a leaf of %s with %s", s.name, a.ID, l.Tenant, l.Digest)
		}
		if l.Type == "push.sent" {
			sent++
		}
		at = to
	}
	stored := a.Status
	if stored == gatehouse.StatusExpired && at == gatehouse.StatusPending {
		at = stored // past its expiry, not swept yet
	}
	if at != stored {
		s.t.Errorf("%s: 14: the log leads %s to %q, the tables say %q", s.name, a.ID, at, stored)
	}
	if calls := s.target.calls[a.IdempotencyKey]; p != nil && calls > sent {
		s.t.Errorf("%s: 15: %s: %d calls, %d intents in the log", s.name, a.ID, calls, sent)
	}
}

// corpus counts the corpus entries per action.
func (s *side) corpus() map[string]int {
	out := map[string]int{}
	for cursor := ""; ; {
		page, err := s.gate.ListCorpus(s.admin, cursor, gatehouse.MaxLimit)
		s.must(err)
		for _, c := range page.Items {
			out[c.ActionID]++
		}
		if cursor = page.NextCursor; cursor == "" {
			return out
		}
	}
}
