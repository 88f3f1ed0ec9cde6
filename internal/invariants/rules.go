package invariants

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// check applies the rules to one action.
func (f *actionRows) check(r *Report) {
	for n := range r.Invariants {
		ofOthers := n == 0 || n >= 18 && n <= 22 // of the store, runs, steps and the archive
		if !ofOthers && r.Invariants[n].NotChecked == "" {
			r.examined(n, 1)
		}
	}
	say := func(n int, format string, args ...any) { r.violated(n, f.tenant, f.id, format, args...) }
	f.checkFit(say)
	f.checkHeld(say)
	f.checkPushes(say)
	f.checkDigests(say)
	f.checkDecision(say)
	f.checkProposed(say)
	f.checkQuestion(say)
	f.checkVotes(say)
	f.checkClaims(say)
	f.checkReceipts(say)
	f.checkTenants(say)
	h := f.replay(say)
	f.checkHistory(h, say)
	f.checkConversation(say)
}

// sayer reports the violation of a rule.
type sayer func(n int, format string, args ...any)

// allowed reports whether the policy or people allowed the action.
func (f *actionRows) allowed() bool {
	switch f.status {
	case gatehouse.StatusApproved, gatehouse.StatusPushing, gatehouse.StatusApplied, gatehouse.StatusFailed,
		gatehouse.StatusUnknown, gatehouse.StatusReversed:
		return true
	case gatehouse.StatusCanceled, gatehouse.StatusSuperseded: // in its hold (allowed), or before its decision
		return f.approval == nil || f.approval.status == gatehouse.ApprovalApproved
	}
	return false
}

func (f *actionRows) push() *push {
	if len(f.pushes) == 0 {
		return nil
	}
	return &f.pushes[0]
}

// checkFit checks rules 11 and 17: the states of action, approval and push are
// consistent.
func (f *actionRows) checkFit(say sayer) {
	ap, ps := gatehouse.ApprovalStatus(""), gatehouse.PushStatus("")
	if f.approval != nil {
		ap = f.approval.status
	}
	if p := f.push(); p != nil {
		ps = p.status
	}
	allowed := f.approval == nil || ap == gatehouse.ApprovalApproved
	asked := func(want gatehouse.ApprovalStatus) bool { return f.approval != nil && ap == want && ps == "" }
	var fits bool
	switch f.status {
	case gatehouse.StatusPending:
		fits = asked(gatehouse.ApprovalRequested)
	case gatehouse.StatusApproved:
		fits = allowed && (ps == gatehouse.PushQueued || ps == gatehouse.PushPicking)
	case gatehouse.StatusPushing:
		fits = allowed && (ps == gatehouse.PushQueued || ps == gatehouse.PushPicking || ps == gatehouse.PushSent)
	case gatehouse.StatusApplied:
		fits = allowed && ps == gatehouse.PushApplied
	case gatehouse.StatusReversed:
		fits = allowed && ps == gatehouse.PushApplied
	case gatehouse.StatusFailed:
		fits = allowed && ps == gatehouse.PushFailed
	case gatehouse.StatusUnknown:
		fits = allowed && ps == gatehouse.PushUnknown
	case gatehouse.StatusRejected:
		fits = asked(gatehouse.ApprovalRejected) || f.approval != nil && f.approval.timedOut &&
			asked(gatehouse.ApprovalExpired)
	case gatehouse.StatusExpired:
		fits = asked(gatehouse.ApprovalExpired)
	case gatehouse.StatusSuperseded:
		fits = f.superseded != "" && (asked(gatehouse.ApprovalCanceled) || allowed && ps == gatehouse.PushCanceled)
	case gatehouse.StatusCanceled:
		fits = asked(gatehouse.ApprovalCanceled) || allowed && ps == gatehouse.PushCanceled
	case gatehouse.StatusDenied:
		fits = f.approval == nil && ps == ""
	}
	if p := f.proposal; p != nil && (f.status == gatehouse.StatusDenied && p.outcome != gatehouse.OutcomeDeny ||
		f.approval != nil && p.outcome != gatehouse.OutcomeNeedsApproval) {
		say(11, "the action is %s, its approval %q, and its proposal was judged %s", f.status, ap, p.outcome)
	}
	if !fits {
		say(11, "the action is %s, its approval %q, its push %q", f.status, ap, ps)
	}
	if f.status != gatehouse.StatusPending {
		return
	}
	if f.approval == nil {
		say(17, "the queue has it, but it has no approval")
	} else if f.expiresAt.Int64 != f.approval.expiresAt {
		say(17, "the queue's expiry is %d, but the approval's is %d", f.expiresAt.Int64, f.approval.expiresAt)
	}
}

// checkHeld checks rule 17 for a held rejection: it has the time at which it takes effect, by which the sweeper
// finds it.
func (f *actionRows) checkHeld(say sayer) {
	if f.status != gatehouse.StatusPending || f.approval == nil {
		return
	}
	held := slices.ContainsFunc(f.votes, func(v vote) bool { return v.decision == gatehouse.Reject })
	if held != f.approval.rejectsAt.Valid {
		say(17, "the pending action has a vote that rejects: %v; a time at which a rejection takes effect: %v", held,
			f.approval.rejectsAt.Valid)
	}
}

// checkPushes checks rules 3, 4 and 13.
func (f *actionRows) checkPushes(say sayer) {
	if want := map[bool]int{true: 1}[f.allowed()]; len(f.pushes) != want {
		say(3, "the action is %s and has %d pushes", f.status, len(f.pushes))
	}
	for i := range f.pushes {
		p := &f.pushes[i]
		allowed := f.approval == nil && f.proposal != nil && f.proposal.outcome == gatehouse.OutcomeAllow
		approved := f.approval != nil && f.approval.status == gatehouse.ApprovalApproved
		if !allowed && !approved {
			say(4, "push %s (%s) of an action that is %s", p.id, p.status, f.status)
		}
		switch p.status {
		case gatehouse.PushQueued:
			if !p.nextAttempt.Valid {
				say(13, "push %s is queued, but never due", p.id)
			}
		case gatehouse.PushPicking, gatehouse.PushSent:
			if !p.leaseUntil.Valid || p.leaseOwner == "" {
				say(13, "push %s is %s without a lease", p.id, p.status)
			}
		}
	}
}

// checkDigests checks rule 6: it recomputes the digest from the stored content. An action without a proposal
// counts under rule 16.
func (f *actionRows) checkDigests(say sayer) {
	if f.proposal == nil {
		say(16, "the action has no proposal")
		return
	}
	want := f.proposal.digest
	if f.proposal.computed != want {
		say(6, "the stored content has the digest %s, the action says %s", f.proposal.computed, want)
	}
	for _, v := range f.votes {
		if v.decision == gatehouse.Approve && v.digest != want && v.digest != "" {
			say(6, "%s approved the digest %s, the action's is %s", v.name, v.digest, want)
		}
	}
	for _, p := range f.pushes {
		if p.digest != want || p.key != f.key {
			say(6, "push %s has the digest %s and the key %q", p.id, p.digest, p.key)
		}
	}
	for _, c := range f.receipts {
		if c.key != f.key {
			say(6, "receipt %s has the key %q, the action %q", c.id, c.key, f.key)
		}
	}
	for _, l := range f.leaves {
		if l.Digest != want && l.Digest != "" {
			say(6, "the entry %s has the digest %s, the action %s", l.ID, l.Digest, want)
		}
	}
}

// checkDecision checks rules 8 and 9.
func (f *actionRows) checkDecision(say sayer) {
	ap := f.approval
	if ap == nil {
		return
	}
	persons := map[string]bool{}
	for _, v := range f.votes {
		if v.decision == gatehouse.Approve {
			persons[v.person] = true
		}
		if v.principalID == f.proposerID || slices.Contains(ap.excluded, v.person) ||
			slices.Contains(ap.excluded, v.principalID) || slices.Contains(ap.excluded, v.name) {
			say(8, "%s has voted but may not decide it", v.name)
		}
		if v.kind != string(gatehouse.KindPerson) {
			say(8, "%s has voted and is not a person of the tenant", v.name)
		}
		if v.at >= ap.expiresAt {
			say(9, "%s voted at %d, the approval ended at %d", v.name, v.at, ap.expiresAt)
		}
	}
	if ap.status == gatehouse.ApprovalApproved && len(persons) < ap.required {
		say(8, "approved by %d of %d persons", len(persons), ap.required)
	}
	byPeople := ap.status == gatehouse.ApprovalApproved || ap.status == gatehouse.ApprovalRejected
	if byPeople && (!f.decidedAt.Valid || f.decidedAt.Int64 >= ap.expiresAt) {
		say(9, "decided at %d, the approval ended at %d", f.decidedAt.Int64, ap.expiresAt)
	}
}

// checkClaims checks rule 10.
func (f *actionRows) checkClaims(say sayer) {
	over := f.status == gatehouse.StatusFailed || f.status == gatehouse.StatusCanceled ||
		f.status == gatehouse.StatusSuperseded
	effective := f.allowed() && !over
	if f.proposal != nil && effective && len(f.claims) < len(f.proposal.ceilings) {
		say(10, "the action is %s with %d claims on %d ceilings", f.status, len(f.claims), len(f.proposal.ceilings))
	}
	for i := range f.claims {
		l := &f.claims[i]
		if effective == l.released {
			say(10, "the action is %s, its claim on %s released: %v", f.status, l.ceiling, l.released)
		}
		limit := f.ceiling(l)
		if limit == nil {
			say(10, "a claim on %s, which the proposal does not name", l.ceiling)
			continue
		}
		if used := gatehouse.DecimalFromMicros(l.others).Add(limit.Amount); !l.released && used.Cmp(limit.Limit) > 0 {
			say(10, "%s of %s are used in %s (%s)", used, limit.Limit, l.ceiling, l.scope)
		}
	}
}

// checkReceipts checks rules 5, 7 and 12, and rule 14 for mirrors.
func (f *actionRows) checkReceipts(say sayer) {
	calls, proofs := 0, 0
	for _, c := range f.receipts {
		if c.outcome == gatehouse.ReceiptApplied && !c.late {
			proofs++
			if c.source == "call" {
				calls++
			}
		}
		if !f.decidedAt.Valid || c.at < f.decidedAt.Int64 {
			say(7, "receipt %s is from before the decision", c.id)
		}
		if p := f.push(); p == nil || p.id != c.pushID || c.generation > p.generation {
			say(12, "receipt %s is of another push, or of a lease that never existed", c.id)
		}
	}
	for _, p := range f.pushes {
		if p.sentAt.Valid && (!f.decidedAt.Valid || p.sentAt.Int64 < f.decidedAt.Int64) {
			say(7, "push %s was sent before the decision", p.id)
		}
	}
	if calls > 1 {
		say(5, "%d receipts of calls that were applied", calls)
	}
	applied := f.status == gatehouse.StatusApplied || f.status == gatehouse.StatusReversed
	if want := map[bool]int{true: 1}[applied]; proofs != want {
		say(12, "the action is %s with %d receipts of its effect", f.status, proofs)
	}
	if want := map[bool]int{true: 1}[applied]; len(f.mirrors) != want {
		say(14, "the action is %s with %d mirrors", f.status, len(f.mirrors))
	}
}

// checkTenants checks rule 16.
func (f *actionRows) checkTenants(say sayer) {
	if !f.proposer {
		say(16, "its proposer is not in the tenant")
	}
	foreign := func(what, tenant string) {
		if tenant != f.tenant {
			say(16, "its %s is in the tenant %s", what, tenant)
		}
	}
	own := func(what string, c child) {
		if foreign(what, c.tenant); c.actionID != f.id {
			say(16, "its %s names the action %s", what, c.actionID)
		}
	}
	if f.proposal != nil {
		foreign("proposal", f.proposal.tenant)
	}
	if f.approval != nil {
		foreign("approval", f.approval.tenant)
	}
	for _, v := range f.votes {
		foreign("vote", v.tenant)
	}
	for _, c := range f.comments {
		foreign("comment", c.tenant)
	}
	for _, p := range f.pushes {
		own("push", p.child)
	}
	for _, c := range f.receipts {
		own("receipt", c.child)
	}
	for _, l := range f.claims {
		foreign("claim", l.tenant)
	}
	for _, m := range f.mirrors {
		own("mirror", m)
	}
	for _, l := range f.leaves {
		foreign("entry", l.Tenant)
	}
}
