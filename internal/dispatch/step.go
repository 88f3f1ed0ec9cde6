package dispatch

import (
	"context"
	"strconv"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

// step moves a push and its action within one transaction. The first error is
// kept in err, and later operations do nothing.
type step struct {
	tx     gatehouse.Tx
	push   *gatehouse.Push
	action *gatehouse.Action
	// rights and prior come with the query; prior is a receipt of this action that proves
	// the effect, nil for none.
	rights gatehouse.Rights
	prior  *gatehouse.Receipt
	actor  string
	err    error
	// from is the status of action and push at the last leaf.
	from struct {
		action gatehouse.Status
		push   gatehouse.PushStatus
	}
}

// queryOf returns the query that opens a push and its action, and reads nothing else.
func queryOf(p *gatehouse.Push) gatehouse.PushQuery {
	return gatehouse.PushQuery{ActionID: p.ActionID, PushID: p.ID}
}

// update runs fn in a transaction if the push still belongs to this worker and
// has the status from; otherwise it fails with errLost. It also stores the
// read-back's proof.
func (j *job) update(ctx context.Context, from gatehouse.PushStatus, fn func(*step)) error {
	return j.store.Update(ctx, j.push.Tenant, func(tx gatehouse.Tx) error {
		s, err := begin(tx, j.query(from), j.owner)
		if err != nil {
			return err
		}
		if s.push.Status != from || s.push.Generation != j.push.Generation {
			return errLost
		}
		if j.proof != nil {
			s.receipt(j.proof)
		}
		fn(s)
		return s.err
	})
}

// query returns the query that opens a transaction on the push. Before the call, the
// query includes the rights, and also the success receipt if load has not read that
// receipt, or if the worker of an earlier attempt may have stored it since.
func (j *job) query(from gatehouse.PushStatus) gatehouse.PushQuery {
	q := queryOf(j.push)
	q.Rights = from == gatehouse.PushPicking
	if q.Rights && (j.push.Attempts > 0 || j.action == nil) {
		q.ReceiptKey = j.push.IdempotencyKey
	}
	return q
}

// begin locks action and push, in the usual lock order.
func begin(tx gatehouse.Tx, q gatehouse.PushQuery, actor string) (*step, error) {
	o, err := tx.OpenPush(q)
	if err != nil {
		return nil, err
	}
	a, p := o.Action, o.Push
	if a.Push == nil || a.Push.Status != p.Status {
		// Another worker committed between the two locks of OpenPush: after
		// resume, a worker does not lock the action.
		if a, err = tx.LockAction(q.ActionID); err != nil {
			return nil, err
		}
	}
	s := &step{tx: tx, push: p, action: a, rights: o.Rights, actor: actor}
	if r := o.Receipt; r != nil && r.ActionID == q.ActionID {
		s.prior = r
	}
	s.from.action, s.from.push = a.Status, p.Status
	return s, nil
}

// resume continues without locks from the state that this worker wrote with the
// intent: every later write is guarded by the status and, for the push, by the
// generation. A write fails with ErrConflict if another worker has moved
// either.
func resume(tx gatehouse.Tx, p *gatehouse.Push, a *gatehouse.Action, actor string) *step {
	push, action := *p, *a
	s := &step{tx: tx, push: &push, action: &action, actor: actor}
	s.from.action, s.from.push = a.Status, p.Status
	return s
}

func (s *step) do(fn func() error) {
	if s.err == nil {
		s.err = fn()
	}
}

// movePush moves the push to another status, guarded by the present one. Its
// lease ends when the push leaves its worker.
func (s *step) movePush(to gatehouse.PushStatus) {
	s.do(func() error {
		p, from, now := s.push, s.push.Status, s.tx.Now()
		if !from.CanMove(to) {
			return gatehouse.ErrConflict
		}
		p.Status = to
		if to != gatehouse.PushSent {
			p.LeaseOwner, p.LeaseUntil = "", nil
		}
		if to != gatehouse.PushQueued {
			p.NextAttempt = nil
		}
		switch to {
		case gatehouse.PushApplied:
			p.AppliedAt, p.FinishedAt = &now, &now
			p.LastError, p.ErrorCode = "", ""
		case gatehouse.PushFailed, gatehouse.PushUnknown:
			p.FinishedAt = &now
		}
		return s.tx.UpdatePush(p, from, p.Generation)
	})
}

// throughSent moves a push that needs no call through the states between
// picking and its end.
func (s *step) throughSent() {
	if s.push.Status != gatehouse.PushPicking {
		return
	}
	s.push.Attempts = max(s.push.Attempts, 1)
	s.movePush(gatehouse.PushSent)
	if s.action.Status == gatehouse.StatusApproved {
		s.moveAction(gatehouse.StatusPushing, nil)
	}
	s.leaf("push.picked")
}

// moveAction moves the action, unless it already has the status.
func (s *step) moveAction(to gatehouse.Status, failure *gatehouse.Failure) {
	if s.action.Status == to {
		return
	}
	s.do(func() error {
		from := s.action.Status
		s.action.Status = to
		return s.tx.MoveAction(gatehouse.ActionMove{
			ID: s.action.ID, From: from, To: to, Finished: to.Finished(), Failure: failure,
		})
	})
}

// retry puts the push back until next.
func (s *step) retry(next time.Time, code, detail string) {
	s.push.NextAttempt = &next
	s.push.ErrorCode, s.push.LastError = code, clip(detail)
	s.movePush(gatehouse.PushQueued)
}

// applied settles push and action with the receipt that proves the effect.
func (s *step) applied(r *gatehouse.Receipt) {
	s.throughSent()
	// Keep the order of locks. LockAction comes before LockPush, and locks the approval's row, which
	// is not written here; without an approval, it locks the action's row, which therefore goes first.
	hasApproval := s.action.Approval != nil
	if hasApproval {
		s.movePush(gatehouse.PushApplied)
	}
	s.moveAction(gatehouse.StatusApplied, nil)
	if !hasApproval {
		s.movePush(gatehouse.PushApplied)
	}
	s.receipt(r)
	s.leaf("push.applied", text("receipt", r.ID), text("source", r.Source))
	s.do(func() error { return gate.Applied(s.tx, s.action, r, s.actor) })
}

// end closes the push without success: as failed, with the ceilings released, if every
// attempt is proven to be without effect; otherwise as unknown. says is the target's
// own text, "" for none.
func (s *step) end(proven bool, code, detail, says string, more ...gatehouse.Member) {
	detail = clip(detail)
	s.push.ErrorCode, s.push.LastError, s.push.TargetSays = code, detail, clipTo(says, gatehouse.MaxTargetSays)
	more = append(more, text("code", code))
	if !proven {
		s.throughSent()
		s.movePush(gatehouse.PushUnknown)
		s.markDeadLetter()
		if !s.action.Status.Finished() {
			s.moveAction(gatehouse.StatusUnknown, nil)
			s.do(func() error { return gate.PauseFailed(s.tx, s.action, s.actor) })
		}
		s.leaf("push.unknown", more...)
		return
	}
	s.movePush(gatehouse.PushFailed)
	s.markDeadLetter()
	if s.action.Status.CanMove(gatehouse.StatusFailed) {
		s.moveAction(gatehouse.StatusFailed, &gatehouse.Failure{Code: code, Detail: detail})
		// Before the ceilings: a use of the mandate locks the mandate first, too.
		s.do(func() error { return gate.PauseFailed(s.tx, s.action, s.actor) })
		s.do(func() error { return s.tx.ReleaseCeilings(s.action.ID) })
	}
	s.leaf("push.failed", more...)
}

func (s *step) markDeadLetter() {
	s.do(func() error { return s.tx.MarkDeadLetter(s.push, s.action.EffectHash()) })
}

func (s *step) receipt(r *gatehouse.Receipt) {
	s.do(func() error {
		c := *r
		c.At = s.tx.Now()
		return s.tx.InsertReceipt(&c)
	})
}

// leaf records the moves of action and push since the last leaf. As everywhere
// in the log, from and to are those of the action.
func (s *step) leaf(event string, more ...gatehouse.Member) {
	s.do(func() error {
		p, a, from := s.push, s.action, s.from
		s.from.action, s.from.push = a.Status, p.Status
		return s.tx.AppendLeaf(&gatehouse.Leaf{
			Tenant: a.Tenant, Type: event, Subject: a.ID, ActionID: a.ID, Actor: s.actor,
			From: string(from.action), To: string(a.Status), Digest: p.Digest,
			Data: gatehouse.ObjectJSON(append(more,
				text("push", p.ID), text("push_from", string(from.push)), text("push_to", string(p.Status)),
				number("attempt", p.Attempts), number("generation", p.Generation),
			)...),
		})
	})
}

func text(name, value string) gatehouse.Member {
	return gatehouse.Member{Name: name, Value: gatehouse.StringJSON(value)}
}

func number(name string, n int) gatehouse.Member {
	return gatehouse.Member{Name: name, Value: gatehouse.JSON(strconv.Itoa(n))}
}
