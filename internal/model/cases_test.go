package model

import (
	"fmt"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// The use cases before the push, in the model.

const (
	pending    = gatehouse.StatusPending
	approved   = gatehouse.StatusApproved
	rejected   = gatehouse.StatusRejected
	denied     = gatehouse.StatusDenied
	expired    = gatehouse.StatusExpired
	canceled   = gatehouse.StatusCanceled
	superseded = gatehouse.StatusSuperseded
	pushing    = gatehouse.StatusPushing
	applied    = gatehouse.StatusApplied
	failed     = gatehouse.StatusFailed
	unknown    = gatehouse.StatusUnknown
	reversed   = gatehouse.StatusReversed
)

func (m *model) propose(p proposal) string {
	w := m.people[p.by]
	if w.disabled {
		return "unauthenticated"
	}
	if !w.has(gatehouse.RoleProposer) {
		return "role_required"
	}
	if p.key != "" {
		if known := m.keys[p.key]; known != nil {
			if !w.reads(known) || known.content() != p.content() {
				return "duplicate_key"
			}
			status, _ := m.shown(known)
			return fmt.Sprintf("replayed %s %s", place(known), status)
		}
	}
	a := m.insert(p, &action{revision: 1})
	return fmt.Sprintf("proposed %s", a.status)
}

// insert judges and stores a proposal.
func (m *model) insert(p proposal, a *action) *action {
	a.proposal, a.n, a.version = p, len(m.actions), m.policy
	a.risk = max(riskOf[p.kind], p.claimedRisk)
	allowed := p.kind == note && a.risk <= 2
	if !m.denies(p.kind) {
		a.repeats = m.deadLetterOf(p)
		allowed = allowed && a.repeats == nil
	}
	if allowed && !m.fits(a) {
		allowed = false
	}
	m.actions = append(m.actions, a)
	if p.key != "" {
		m.keys[p.key] = a
	}
	switch {
	case m.denies(p.kind):
		a.status = denied
		a.decidedBy = "policy:never"
		if p.kind != forbidden {
			a.decidedBy = "policy:freeze"
		}
		a.leaves = append(a.leaves, "hitl.denied")
	case allowed:
		a.status, a.decidedBy = approved, "policy:notes"
		a.leaves = append(a.leaves, "hitl.proposed")
		m.reserve(a)
		m.enqueue(a)
	default:
		m.ask(a)
	}
	return a
}

// refuse denies an action that fewer people may answer than required.
func (m *model) refuse(a *action) {
	a.status, a.approval, a.required, a.roles, a.excluded, a.hold, a.expires = denied, "", 0, nil, nil, 0, time.Time{}
	a.decidedBy = "policy"
	switch {
	case a.kind == pair:
		a.decidedBy = "policy:pairs"
	case a.kind == note && a.risk <= 2:
		a.decidedBy = "policy:notes"
	}
	a.leaves = append(a.leaves, "hitl.denied")
}

// answerers counts the people who may answer.
func (m *model) answerers(a *action) int {
	humans := map[string]bool{}
	for _, w := range m.people {
		if a.refusal(w) == "" {
			humans[w.person] = true
		}
	}
	return len(humans)
}

// deadLetterOf returns the newest dead letter with the effect of a proposal.
func (m *model) deadLetterOf(p proposal) (found *action) {
	for _, a := range m.actions {
		dead := a.push != nil &&
			(a.push.status == gatehouse.PushUnknown || a.push.status == gatehouse.PushFailed && a.push.closed.IsZero())
		same := a.connector == p.connector && a.operation == p.operation && a.entity == p.entity && a.amount == p.amount
		if dead && same && (found == nil || a.push.nth > found.push.nth) {
			found = a
		}
	}
	return found
}

func (m *model) ask(a *action) {
	a.status, a.approval = pending, gatehouse.ApprovalRequested
	a.required, a.roles = 1, []gatehouse.Role{gatehouse.RoleApprover}
	expiry := time.Hour
	switch a.risk {
	case 5:
		a.required, expiry = 2, 30*time.Minute
	case 4:
		a.roles = []gatehouse.Role{gatehouse.RoleAdmin}
	}
	if a.kind == pair {
		a.required = 2
	}
	if a.risk <= 3 {
		a.hold = 10 * time.Second
	}
	if a.expiresIn > 0 {
		expiry = min(expiry, a.expiresIn)
	}
	a.expires = m.now.Add(expiry)
	bar := func(name string) {
		if w := m.people[name]; w != nil {
			a.excluded = append(a.excluded, w.name, w.person)
		}
	}
	bar(a.by)
	bar(m.people[a.by].sponsor)
	bar(a.behalf)
	if a.supersedes != nil {
		a.excluded = append(a.excluded, a.supersedes.excluded...)
	}
	if m.answerers(a) < a.required {
		m.refuse(a)
		return
	}
	a.leaves = append(a.leaves, "hitl.proposed")
}

func (m *model) enqueue(a *action) {
	due := m.now.Add(a.hold)
	m.pushes++
	a.push = &push{status: gatehouse.PushQueued, notBefore: due, next: due, created: m.now, nth: m.pushes}
}

// ballot is one decision step.
type ballot struct {
	by       string
	approve  bool
	digest   string // right, wrong or none
	confirm  bool
	stepUp   bool
	ack      bool
	short    bool // the idempotent form
	key      string
	approval bool // named by the approval's id
}

func (b ballot) kind() gatehouse.DecisionKind {
	if b.approve {
		return gatehouse.Approve
	}
	return gatehouse.Reject
}

func (m *model) decide(a *action, b ballot) string {
	w := m.people[b.by]
	switch {
	case w.disabled:
		return "unauthenticated"
	case !w.reads(a):
		return "not_found"
	case !w.has(gatehouse.RoleApprover) || w.kind != gatehouse.KindPerson:
		return "role_required"
	case !b.stepUp:
		return "edit_token_required"
	case b.approve && b.digest == "none":
		return "invalid"
	}
	if b.key == "" {
		out, _ := m.rule(a, w, b)
		return out
	}
	// A stored answer under the same key comes before the state that it
	// produced.
	key, body := b.by+"/"+b.key, fmt.Sprintf("%d %+v", a.n, b)
	if known, ok := m.answers[key]; ok && m.now.Sub(known.at) < gatehouse.IdempotencyWindow {
		if known.body != body {
			return "idempotency_key_reused"
		}
		return "replay of " + known.answer
	}
	out, ok := m.rule(a, w, b)
	if ok {
		m.answers[key] = answered{body, out, m.now}
	}
	return out
}

// rule is the decision path, with its checks in order.
func (m *model) rule(a *action, w *principal, b ballot) (answer string, ok bool) {
	if a.approval == "" {
		return m.standing(a, w, b)
	}
	if code := a.refusal(w); code != "" {
		return code, false
	}
	if status, _ := m.shown(a); status != pending {
		return m.standing(a, w, b)
	}
	own := a.voteOf(w.person)
	switch {
	case own == nil || own.decision == gatehouse.Approve && !b.approve:
	case own.decision == b.kind() && own.by == w.name:
		return fmt.Sprintf("vote_recorded %d/%d replayed", a.approvals(), a.required), true
	default:
		return "already_voted", false
	}
	if b.digest == "wrong" {
		return "digest_mismatch", false
	}
	if !b.approve {
		m.vote(a, w, b)
		m.settle(a, w, rejected, gatehouse.ApprovalRejected, "hitl.rejected")
		return m.decided(a, b), true
	}
	switch {
	case a.risk >= 4 && !b.confirm:
		return "confirmation_required", false
	case a.connector != "mute" && m.drifted[a.entity] && !b.ack:
		return "target_changed", false
	case m.vetoed(a):
		return "authority_revoked", false
	}
	before := slices.Clone(a.votes)
	m.vote(a, w, b)
	if !m.votersStand(a) {
		a.votes = before
		return "authority_revoked", false
	}
	if a.approvals() < a.required {
		a.leaves = append(a.leaves, "hitl.voted")
		return fmt.Sprintf("vote_recorded %d/%d", a.approvals(), a.required), true
	}
	if !m.fits(a) {
		a.votes = before
		return "ceiling_exceeded", false
	}
	m.reserve(a)
	m.settle(a, w, approved, gatehouse.ApprovalApproved, "hitl.approved")
	m.enqueue(a)
	return m.decided(a, b), true
}

func (m *model) vote(a *action, w *principal, b ballot) {
	v := vote{w.person, w.name, b.kind()}
	if own := a.voteOf(w.person); own != nil {
		*own = v
	} else {
		a.votes = append(a.votes, v)
	}
}

func (m *model) settle(a *action, w *principal, s gatehouse.Status, o gatehouse.ApprovalStatus, leaf string) {
	a.status, a.approval, a.decidedBy = s, o, w.name
	m.actor = w.name
	a.leaves = append(a.leaves, leaf)
}

func (m *model) decided(a *action, b ballot) string {
	if b.short {
		return string(b.kind())
	}
	return fmt.Sprintf("decided %d/%d", a.approvals(), a.required)
}

// standing answers if the question has already been decided.
func (m *model) standing(a *action, w *principal, b ballot) (answer string, ok bool) {
	status, _ := m.shown(a)
	want, already := gatehouse.ApprovalApproved, "already_approved"
	if !b.approve {
		want, already = gatehouse.ApprovalRejected, "already_rejected"
	}
	stands := a.approval == want && status != canceled && status != superseded
	own := a.voteOf(w.person)
	switch {
	case stands && b.short:
		return already + " by " + a.decidedBy, true
	case stands && own != nil && own.decision == b.kind():
		return fmt.Sprintf("%s %d/%d replayed", already, a.approvals(), a.required), true
	case status == expired:
		return "expired", false
	case b.short:
		return "not_awaiting_approval", false
	}
	return "already_decided", false
}

// read is what a principal sees of an action, by every way of reading.
func (m *model) read(a *action, by string) string {
	switch w := m.people[by]; {
	case w.disabled:
		return "unauthenticated"
	case !w.reads(a):
		return "not_found"
	}
	return "seen"
}

func (m *model) cancel(a *action, by string, stepUp bool) string {
	w := m.people[by]
	if w.disabled {
		return "unauthenticated"
	}
	if !w.reads(a) {
		return "not_found"
	}
	own := a.by == by
	if !own {
		switch {
		case !w.has(gatehouse.RoleApprover) || w.kind != gatehouse.KindPerson:
			return "role_required"
		case !stepUp:
			return "edit_token_required"
		}
	}
	status, _ := m.shown(a)
	switch {
	case status == canceled:
		return "already_canceled"
	case status == pending && !own:
		return "role_required"
	case status == pending:
		a.approval = gatehouse.ApprovalCanceled
	case status == approved && w.has(gatehouse.RoleApprover) && stepUp &&
		a.push.status == gatehouse.PushQueued && m.now.Before(a.push.notBefore) && a.push.attempts == 0:
		a.push.status = gatehouse.PushCanceled
		a.release()
	default:
		return "too_late"
	}
	a.status = canceled
	m.actor = by
	a.leaves = append(a.leaves, "hitl.canceled")
	return "canceled"
}

func (m *model) revise(old *action, p proposal) string {
	w := m.people[p.by]
	switch {
	case w.disabled:
		return "unauthenticated"
	case !w.reads(old):
		return "not_found"
	case !w.has(gatehouse.RoleProposer):
		return "role_required"
	case old.by != p.by && (w.kind != gatehouse.KindPerson || !w.has(gatehouse.RoleApprover)):
		return "role_required"
	}
	switch status, _ := m.shown(old); status {
	case pending:
	case expired:
		return "expired"
	default:
		return "already_decided"
	}
	if old.reverses != nil && (p.connector != old.connector || p.operation != old.operation || p.entity != old.entity) {
		return "invalid"
	}
	old.status, old.approval = superseded, gatehouse.ApprovalCanceled
	old.leaves = append(old.leaves, "hitl.superseded")
	a := m.insert(p, &action{revision: old.revision + 1, supersedes: old, reverses: old.reverses})
	old.supersededBy = a
	return fmt.Sprintf("proposed %s", a.status)
}

func (m *model) reverse(old *action, by string) string {
	w := m.people[by]
	switch {
	case w.disabled:
		return "unauthenticated"
	case !w.reads(old):
		return "not_found"
	case !w.has(gatehouse.RoleApprover) && !w.has(gatehouse.RoleOperator) &&
		(!w.has(gatehouse.RoleProposer) || old.by != by):
		return "role_required"
	case old.status != applied || old.archived || !old.reversible || m.openReversal(old) != nil:
		return "not_reversible"
	}
	a := m.insert(proposal{
		kind: old.kind, connector: old.connector, operation: old.operation, entity: old.entity, by: by, claimedRisk: old.risk,
	}, &action{revision: 1, reverses: old})
	return fmt.Sprintf("proposed %s", a.status)
}

func (m *model) openReversal(old *action) *action {
	for _, a := range m.actions {
		status, _ := m.shown(a)
		if a.reverses == old &&
			!slices.Contains([]gatehouse.Status{rejected, denied, expired, canceled, superseded, failed}, status) {
			return a
		}
	}
	return nil
}

func (m *model) sweep() string {
	n := 0
	for _, a := range m.actions {
		if status, _ := m.shown(a); status == expired && a.status == pending {
			a.status, a.approval = expired, gatehouse.ApprovalExpired
			a.leaves = append(a.leaves, "hitl.expired")
			n++
		}
	}
	return fmt.Sprintf("swept %d", n)
}
