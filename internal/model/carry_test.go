package model

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
)

// The push in the model.

// nextDue is the push that a worker claims: the earliest due one, then the
// oldest.
func (m *model) nextDue() *action {
	var first *action
	for _, a := range m.actions {
		p := a.push
		if p == nil || p.status != gatehouse.PushQueued || p.due().After(m.now) {
			continue
		}
		if first == nil || p.due().Before(first.push.due()) || p.due().Equal(first.push.due()) &&
			p.created.Before(first.push.created) {
			first = a
		}
	}
	return first
}

// untilDue is the time until a push can be claimed; 0 when there is no push.
func (m *model) untilDue() time.Duration {
	var wait time.Duration
	for _, a := range m.actions {
		if p := a.push; p != nil && p.status == gatehouse.PushQueued && p.due().After(m.now) {
			if d := p.due().Sub(m.now); wait == 0 || d < wait {
				wait = d
			}
		}
	}
	return wait
}

// dispatch lets one worker carry one push, with a fault of the call, and
// possibly the worker's death at a point of the path.
func (m *model) dispatch(f fault, crash dispatch.Point) string {
	a := m.nextDue()
	if a == nil {
		return "nothing due"
	}
	p := a.push
	p.status, p.lease = gatehouse.PushPicking, m.now.Add(lease)
	p.generation++
	if crash != dispatch.PointClaimed {
		m.carry(a, f, crash)
	}
	return place(a) + " " + string(p.status)
}

func (m *model) carry(a *action, f fault, crash dispatch.Point) {
	p, tells, once := a.push, a.connector == "tell", a.operation == "c"
	if p.generation-p.attempts > maxClaims*(1+p.replays) {
		m.stop(a, "poison")
		return
	}
	clean, proven := !p.doubt, false
	if p.attempts > 0 {
		if tells && m.effects[a] > 0 {
			m.apply(a, "applied/read_back")
			return
		}
		if tells && !clean {
			clean, proven = true, true
		}
		if !clean && once {
			m.stop(a, "ambiguous")
			return
		}
		if !clean && a.operation == "a" && m.now.Sub(p.firstDue()) >= keyRetention {
			m.stop(a, "too_old")
			return
		}
	}
	if proven { // the next transaction stores the proof first
		p.doubt = false
		a.receipts = append(a.receipts, "not_sent/read_back")
	}
	if clean && a.connector != "mute" && m.drifted[a.entity] {
		m.stop(a, "target_changed")
		return
	}
	if m.vetoed(a) || a.approval != "" && !m.votersStand(a) {
		m.stop(a, "authority_revoked")
		return
	}
	p.attempts++
	p.status, p.sent = gatehouse.PushSent, m.now
	p.next = time.Time{}
	doubt := p.doubt
	p.doubt = true // until a receipt says otherwise
	a.status = pushing
	a.leaves = append(a.leaves, "push.sent")
	if crash == dispatch.PointSent {
		return
	}
	outcome, code := m.call(a, f)
	if crash == dispatch.PointCalled {
		return
	}
	if outcome == "applied" {
		m.apply(a, "applied/call")
		return
	}
	if outcome != "ambiguous" {
		p.doubt = doubt
	}
	m.conclude(a, outcome, code, clean)
}

// call is the target: its effect and its answer.
func (m *model) call(a *action, f fault) (outcome, code string) {
	m.calls[a]++
	switch f {
	case notSent:
		return "not_sent", "unreachable"
	case transient:
		return "transient", "http_503"
	case terminal:
		return "terminal", "http_422"
	case requestLost:
		return "ambiguous", "timeout"
	}
	refused := false
	switch a.operation {
	case "a":
		m.effects[a] = 1
	case "b":
		if refused = m.effects[a] > 0 || m.drifted[a.entity]; !refused {
			m.effects[a] = 1
		}
	default:
		m.effects[a]++
	}
	switch {
	case f == answerLost:
		return "ambiguous", "timeout"
	case refused:
		return "terminal", "target_changed"
	}
	return "applied", ""
}

// conclude judges a failed call.
func (m *model) conclude(a *action, outcome, code string, clean bool) {
	p, tells, once := a.push, a.connector == "tell", a.operation == "c"
	n := p.attempts - p.base
	spent := n > retries
	end := unknown
	if clean && outcome != "ambiguous" {
		end = failed
	}
	retry := !spent &&
		(outcome == "not_sent" && (clean || !once) || outcome == "transient" && !once || outcome == "ambiguous" && !once)
	switch {
	case retry:
		a.receipts = append(a.receipts, outcome+"/call")
		p.status, p.code = gatehouse.PushQueued, code
		p.next = m.now.Add(backoffs[min(n, len(backoffs))-1])
		a.leaves = append(a.leaves, "push.retry")
		return
	case end == unknown && tells && m.effects[a] > 0: // a last look
		a.receipts = append(a.receipts, outcome+"/call")
		m.apply(a, "applied/read_back")
		return
	case end == unknown && tells && !once:
		p.doubt, end = false, failed
		a.receipts = append(a.receipts, "not_sent/read_back")
	}
	a.receipts = append(a.receipts, outcome+"/call")
	m.end(a, end, code)
}

// stop ends a push without a call of this claim.
func (m *model) stop(a *action, code string) {
	if a.push.doubt {
		m.end(a, unknown, code)
	} else {
		m.end(a, failed, code)
	}
}

func (m *model) end(a *action, s gatehouse.Status, code string) {
	p := a.push
	p.code = code
	if s == failed {
		p.status, a.status, a.failure = gatehouse.PushFailed, failed, code
		a.release()
		a.leaves = append(a.leaves, "push.failed")
		return
	}
	m.throughSent(a)
	p.status, a.status, a.failure = gatehouse.PushUnknown, unknown, code
	a.leaves = append(a.leaves, "push.unknown")
}

func (m *model) apply(a *action, receipt string) {
	m.throughSent(a)
	a.push.status, a.push.code, a.status = gatehouse.PushApplied, "", applied
	a.failure = "" // an action with an unknown outcome has one
	a.receipts = append(a.receipts, receipt)
	a.reversible = receipt != "applied/operator"
	a.leaves = append(a.leaves, "push.applied")
	m.undone(a)
}

// undone: an applied reversal ends the original action, and an applied
// repetition of the same change closes the dead letter.
func (m *model) undone(a *action) {
	if old := a.repeats; old != nil && old.push.status == gatehouse.PushFailed && old.push.closed.IsZero() {
		old.push.closed = m.now
		old.leaves = append(old.leaves, "push.discarded")
	}
	if old := a.reverses; old != nil && old.status == applied {
		old.status, old.reversedBy = reversed, a
		old.leaves = append(old.leaves, "action.reversed")
	}
}

func (m *model) throughSent(a *action) {
	if a.push.status == gatehouse.PushPicking {
		a.push.attempts = max(a.push.attempts, 1)
		a.leaves = append(a.leaves, "push.picked")
	}
}

func (m *model) rescue() string {
	for _, a := range m.actions {
		p := a.push
		if p == nil || p.status != gatehouse.PushPicking && p.status != gatehouse.PushSent || p.lease.After(m.now) {
			continue
		}
		n, next := p.attempts-p.base, m.now
		if p.status == gatehouse.PushSent {
			if a.operation == "c" || n > retries {
				m.end(a, unknown, "lease_expired")
				continue
			}
			if at := p.sent.Add(backoffs[min(n, len(backoffs))-1]); at.After(next) {
				next = at
			}
		}
		p.status, p.next, p.code = gatehouse.PushQueued, next, "lease_expired"
		a.leaves = append(a.leaves, "push.rescued")
	}
	return "rescued"
}

// resolve is an operator's resolution.
func (m *model) resolve(a *action, ok bool) string {
	switch {
	case a.push == nil:
		return "not_found"
	case a.push.status != gatehouse.PushUnknown:
		return "not_unknown"
	}
	p := a.push
	if ok {
		p.status, p.code, a.status, a.failure = gatehouse.PushApplied, "", applied, ""
		a.receipts = append(a.receipts, "applied/operator")
		m.undone(a)
		a.leaves = append(a.leaves, "push.resolved")
		return "applied"
	}
	p.status, p.code, p.doubt = gatehouse.PushFailed, "resolved_failed", false
	a.status, a.failure = failed, "resolved_failed"
	a.receipts = append(a.receipts, "terminal/operator")
	a.release()
	a.leaves = append(a.leaves, "push.resolved")
	return "failed"
}

// replay requeues a dead letter after all checks.
func (m *model) replay(a *action) string {
	p := a.push
	switch {
	case p == nil:
		return "skipped not_found"
	case !p.closed.IsZero():
		return "too_late"
	case p.status == gatehouse.PushApplied:
		return "skipped already_applied"
	case p.status == gatehouse.PushUnknown:
		return m.replayUnknown(a)
	case p.status != gatehouse.PushFailed:
		return "skipped not_failed"
	}
	last := p.created
	if !p.sent.IsZero() {
		last = p.sent
	}
	switch {
	case a.operation == "a" && m.now.Sub(last) > keyRetention:
		return "skipped too_old"
	case m.vetoed(a) || a.approval != "" && !m.votersStand(a):
		return "skipped authority_revoked"
	case a.reverses != nil && (a.reverses.status != applied || m.openReversal(a.reverses) != nil):
		return "skipped not_reversible"
	case !m.fits(a):
		return "skipped ceiling_exceeded"
	}
	m.reserve(a)
	return m.requeue(a)
}

// discard closes a failed push permanently.
func (m *model) discard(a *action) string {
	p := a.push
	switch {
	case p == nil:
		return "skipped not_found"
	case !p.closed.IsZero():
		return "skipped already_discarded"
	case p.status == gatehouse.PushUnknown:
		return "skipped resolve_first"
	case p.status != gatehouse.PushFailed:
		return "skipped not_failed"
	}
	p.closed = m.now
	a.leaves = append(a.leaves, "push.discarded")
	return "discarded"
}

// replayUnknown replays an unknown push: a second call must be harmless. Its
// ceilings are still reserved.
func (m *model) replayUnknown(a *action) string {
	p := a.push
	switch known := m.now.Sub(p.firstDue()) < keyRetention; {
	case p.doubt && (a.operation == "c" || a.operation == "a" && !known):
		return "skipped resolve_first"
	case m.vetoed(a) || a.approval != "" && !m.votersStand(a):
		return "skipped authority_revoked"
	}
	return m.requeue(a)
}

func (m *model) requeue(a *action) string {
	p := a.push
	p.status, p.next, p.base = gatehouse.PushQueued, m.now, p.attempts
	p.replays++
	a.status, a.failure = approved, ""
	a.leaves = append(a.leaves, "push.replayed")
	return "queued"
}

// firstDue is the earliest time at which the push can have been sent.
func (p *push) firstDue() time.Time {
	if p.notBefore.After(p.created) {
		return p.notBefore
	}
	return p.created
}
