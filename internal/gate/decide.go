package gate

import (
	"cmp"
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/failpoint"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// Decide stores one person's answer and, when it settles the question, the
// decision with its push.
func (g *Gate) Decide(ctx context.Context, id string, d gatehouse.Decision) (*gatehouse.Answer, error) {
	a, err := g.decide(ctx, id, d)
	if err != nil {
		g.countDecision(ctx, endpointDecide, gatehouse.FailedResult(err))
	} else {
		g.countDecision(ctx, endpointDecide, gatehouse.DecisionResultOf(a.Code, a.Replayed))
	}
	return a, err
}

// decide is Decide without the counting.
func (g *Gate) decide(ctx context.Context, id string, d gatehouse.Decision) (*gatehouse.Answer, error) {
	return decideAs(ctx, g, id, d, (*ruling).answer)
}

// Answer is the idempotent form of Decide. If people have already taken the same
// decision, with or without the caller, Answer returns that decision, not a conflict.
func (g *Gate) Answer(ctx context.Context, id string, d gatehouse.Decision) (*gatehouse.ShortAnswer, error) {
	endpoint := endpointApprove
	if d.Decision == gatehouse.Reject {
		endpoint = endpointReject
	}
	a, err := decideAs(ctx, g, id, d, (*ruling).shortAnswer)
	if err != nil {
		g.countDecision(ctx, endpoint, gatehouse.FailedResult(err))
	} else {
		g.countDecision(ctx, endpoint, gatehouse.DecisionResultOf(a.Status, a.Replayed))
	}
	return a, err
}

// decideAs runs a decision. Inside the transaction, shape makes the endpoint's answer,
// which is stored under the Idempotency-Key.
func decideAs[T any](
	ctx context.Context, g *Gate, id string, d gatehouse.Decision, shape func(*ruling) (*T, error),
) (*T, error) {
	c, err := gatehouse.CachedCallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	r := &ruling{gate: g, caller: c, decision: d, id: id}
	if refusal := cmp.Or(mayVote(c), d.Validate()); refusal != nil {
		return nil, cmp.Or(g.Exists(ctx, "action", id), refusal)
	}
	if err := r.readAhead(ctx); err != nil {
		return nil, err
	}
	var o *gatehouse.OpenedDecision
	u := usecase.Case{
		By: c, Prepare: func() error { return r.prepare(ctx) },
		Open: func(tx gatehouse.Tx) (known gatehouse.CallerFacts, err error) {
			q := gatehouse.DecisionQuery{By: c, ActionID: id, Approve: d.Decision == gatehouse.Approve}
			if o, err = tx.OpenDecision(q); err == nil {
				known = o.CallerFacts
			}
			return known, err
		},
	}
	out, err := usecase.Perform(ctx, g.Runner, u, func(tx gatehouse.Tx) (*T, error) {
		if o.Action == nil {
			return nil, usecase.NotFound(gatehouse.ErrNotFound, "action")
		}
		if err := checkLinkKey(tx, c); err != nil {
			return nil, err
		}
		if err := r.rule(tx, o.Action, o.Rights); err != nil {
			return nil, err
		}
		if err := r.logReviewCompleted(tx); err != nil {
			return nil, err
		}
		out, err := shape(r)
		if err != nil {
			return nil, err
		}
		failpoint.Here("decide/recorded")
		return out, nil
	})
	if err != nil {
		return nil, err
	}
	failpoint.Here("decide/committed")
	r.sendHints()
	return out, nil
}

// readAhead reads the action and the policy before the transaction of an approval that reads its target, so
// that the transaction need not run twice. It refuses nothing: the transaction reports what
// cannot be read. It fails when the caller has changed, or when the context ends.
func (r *ruling) readAhead(ctx context.Context) error {
	c := r.caller
	if r.decision.Decision != gatehouse.Approve || !r.gate.targets.ChecksAny() {
		return nil
	}
	var o *gatehouse.OpenedDecision
	var now time.Time
	decides := func() bool {
		a := o.Action
		return a != nil && r.approvesPending(a) && r.readsTarget(a) && !r.refused(a, now)
	}
	_ = r.gate.Store.Read(ctx, c.Principal.Tenant, func(tx gatehouse.ReadTx) error {
		r.policyKnown = false
		found, err := tx.FindDecision(gatehouse.DecisionQuery{By: c, ActionID: r.id})
		if err != nil {
			return err
		}
		if o, now = found, tx.Now(); decides() {
			return r.readPolicy(tx, o.Action, o.PolicyVersion, o.Proposer)
		}
		return nil
	})
	if o == nil {
		return nil
	}
	if err := usecase.Verify(c, o.CallerFacts); err != nil {
		return err
	}
	if !decides() {
		return nil
	}
	r.known = o.Action
	if !r.policyKnown {
		return nil // prepare reads it
	}
	return r.judge(ctx)
}

// refused reports whether the transaction will refuse an answer before it needs the target, judged
// by the action as it was read. It is also true for delegates, since it does not read delegations.
func (r *ruling) refused(a *gatehouse.Action, now time.Time) bool {
	ap, person := a.Approval, r.caller.Principal
	return ap == nil || MayAnswer(ap, person, now) != nil || ap.VoteOf(person.Person) != nil ||
		r.decision.Digest != a.Digest
}

// approvesPending reports whether the decision approves a pending action.
func (r *ruling) approvesPending(a *gatehouse.Action) bool {
	return r.decision.Decision == gatehouse.Approve && a.Status == gatehouse.StatusPending
}

func (r *ruling) readActivePolicy(tx gatehouse.ReadTx, a *gatehouse.Action) error {
	version, err := tx.ActivePolicyVersion()
	if err != nil {
		return err
	}
	return r.readPolicy(tx, a, version, nil)
}

func (r *ruling) readPolicy(
	tx gatehouse.ReadTx, a *gatehouse.Action, version int, proposer *gatehouse.Principal,
) (err error) {
	r.policyVersion = version
	r.vetoInput, err = r.gate.readVetoInput(tx, a, version, proposer)
	r.policyKnown = err == nil
	return err
}

// judge evaluates the veto whose input readPolicy has read, outside that transaction.
func (r *ruling) judge(ctx context.Context) (err error) {
	if r.vetoInput == nil {
		return nil
	}
	if err = r.gate.judgeVeto(ctx, r.vetoInput); err == nil {
		r.veto = r.vetoInput.veto
	}
	return err
}

// prepare does the slow work outside the transaction: it judges the veto of the active policy, and
// reads the target. A target that does not answer is not a reason to refuse: dispatch reads it
// again before it sends.
func (r *ruling) prepare(ctx context.Context) (err error) {
	a := r.known
	if a == nil {
		return nil // approve restarts with ErrStale if it needs the policy or the target
	}
	again := r.prepared || !r.policyKnown
	r.prepared, r.drift, r.targetUnchanged = true, nil, false
	if !r.approvesPending(a) {
		return nil
	}
	if again {
		err := r.gate.Store.View(ctx, a.Tenant, func(tx gatehouse.ReadTx) error { return r.readActivePolicy(tx, a) })
		if err == nil {
			err = r.judge(ctx)
		}
		if err != nil {
			return err
		}
	}
	if r.decision.AcknowledgeStale {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.gate.config.CheckTimeout)
	defer cancel()
	matches, expected, actual, checked, err := r.gate.targets.Check(ctx, targetSubject(a))
	switch {
	case err != nil:
		r.gate.Log.Warn("target not read before a decision", "action", a.ID, "error", err)
	case checked && !matches:
		r.drift = &drift{expected, actual, r.gate.targetGone(ctx, a)}
	case checked:
		r.targetUnchanged = true
	}
	return nil
}

// readsTarget reports whether an approval reads the target.
func (r *ruling) readsTarget(a *gatehouse.Action) bool {
	return !r.decision.AcknowledgeStale && r.gate.targets.Checks(targetSubject(a))
}

// ready reports whether the transaction of an approval has all that it needs: the veto of the active policy and,
// if the approval reads the target, the result of prepare. ready evaluates the veto itself if that is quick.
func (r *ruling) ready(tx gatehouse.Tx, a *gatehouse.Action, rights *gatehouse.Rights) (bool, error) {
	if r.known != nil {
		return true, nil
	}
	version := rights.PolicyVersion
	if r.readsTarget(a) {
		return false, nil
	}
	if version != 0 && version != a.Policy.Version && r.gate.policies.get(policyKey{a.Tenant, version}) == nil {
		return false, nil // parsing may be slow
	}
	h, err := r.gate.readVetoInput(tx, a, version, rights.Proposer)
	if err != nil || !h.judgeQuickly() {
		return false, err
	}
	r.veto = h.veto
	return true, nil
}

// sendHints sends the hints after the commit.
func (r *ruling) sendHints() {
	if r.replayed || r.priorDecision {
		return
	}
	h := r.gate.Hints
	h.Notify(r.action.ID)
	// A push held for longer than a poll interval needs no hint: the dispatcher finds its time
	// in the store, and each hint costs it a query.
	if a := r.action; a.Status == gatehouse.StatusApproved && a.HoldFor.D() < usecase.PollInterval {
		r.gate.HintPush(a.Push.ID, 0)
	}
}
