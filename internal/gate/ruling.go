package gate

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/failpoint"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// ruling is one decision in progress. Each try of the transaction calls rule, which sets the results again.
type ruling struct {
	gate     *Gate
	caller   *gatehouse.Caller
	decision gatehouse.Decision

	id string

	// Read before the transaction. known is nil when no action was read.
	known         *gatehouse.Action
	policyKnown   bool
	prepared      bool
	policyVersion int
	vetoInput     *vetoInput
	veto          string
	drift         *drift
	// targetUnchanged is true if the target was read, and still matches the proposal.
	targetUnchanged bool

	// Set by rule. delegators are the principals whose right the caller may use for its vote, from
	// is the delegator whose right the vote uses; both are nil for the caller's own right.
	delegators []*gatehouse.Principal
	from       *gatehouse.Principal
	grant      string // the id of the approving grant or mandate, "" for none
	ballot     gatehouse.Vote
	action     *gatehouse.Action
	proof      *gatehouse.StepUp // the consumed step-up, nil for none
	code       string
	replayed   bool
	// priorDecision is true when a decision stood before this call.
	priorDecision bool
	// held is true if a held rejection takes effect.
	held bool
}

type drift struct {
	expected, actual gatehouse.JSON
	gone             bool
}

// rule makes every decision: it runs the checks in order, stores the vote, and settles the
// action if the vote is a rejection or the last approval that is required.
func (r *ruling) rule(tx gatehouse.Tx, a *gatehouse.Action, rights gatehouse.Rights) error {
	r.code, r.replayed, r.priorDecision, r.proof = "", false, false, nil
	r.delegators, r.from = nil, nil
	person := r.caller.Principal
	r.action = a
	ap := a.Approval
	if ap == nil {
		r.priorDecision = true
		return nil // allowed or denied by policy: nobody was asked
	}
	if err := r.mayAnswer(tx, a); err != nil {
		return err
	}
	if a.Status != gatehouse.StatusPending {
		r.priorDecision = true
		return nil
	}
	if v, _ := a.HeldRejection(); v != nil {
		r.priorDecision = true
		return nil // a held rejection is a decision already; only Undo can take it back
	}
	if !tx.Now().Before(ap.End()) {
		a.See(tx.Now())
		r.priorDecision = true
		return nil
	}
	if err := r.gate.checkApproverDelay(tx.Now(), a, person); err != nil {
		return err
	}
	if done, err := r.ownVote(ap, person); done || err != nil {
		return err
	}
	if err := r.chooseDelegator(tx); err != nil {
		return err
	}
	if r.decision.Digest != "" && r.decision.Digest != a.Digest {
		return gatehouse.E(gatehouse.CodeDigestMismatch, "this is not what you saw: the digest "+
			"differs").With("digest", a.Digest)
	}
	if r.decision.Decision == gatehouse.Reject {
		r.vote(tx)
		if _, at := a.HeldRejection(); r.decision.Hold && at.After(tx.Now()) {
			if err := tx.PutVote(a.Approval.ID, r.ballot); err != nil {
				return err
			}
			return r.holdRejection(tx, at)
		}
		return r.reject(tx)
	}
	return r.approve(tx, &rights)
}

// mayAnswer checks the caller's right, and finds the principals whose right it may use.
func (r *ruling) mayAnswer(tx gatehouse.ReadTx, a *gatehouse.Action) error {
	person := r.caller.Principal
	refusal := MayAnswer(a.Approval, person, tx.Now())
	if refusal == nil {
		return nil
	}
	if own := a.Approval.VoteOf(person.Person); own != nil && own.For != "" && a.Status != gatehouse.StatusPending {
		return nil // the voter learns the decision even if the delegation has ended
	}
	var err error
	if r.delegators, err = r.gate.delegatorsFor(tx, a, person); err != nil {
		return err
	}
	if len(r.delegators) == 0 {
		return refusal
	}
	return nil
}

// ownVote handles a person who voted before. done is true when there is
// nothing left to store.
func (r *ruling) ownVote(ap *gatehouse.Approval, person *gatehouse.Principal) (done bool, err error) {
	own := ap.VoteOf(person.Person)
	switch {
	case own == nil:
		return false, nil
	case own.Decision == gatehouse.Approve && r.decision.Decision == gatehouse.Reject:
		return false, nil // an approval may be changed to a rejection
	case own.Decision == r.decision.Decision && own.PrincipalID == person.ID:
		r.code, r.replayed = gatehouse.VoteRecorded, true
		return true, nil
	}
	return false, gatehouse.E(gatehouse.CodeAlreadyVoted, "this person has voted already, as %s", own.Name).
		With("decision", own.Decision)
}

func (r *ruling) approve(tx gatehouse.Tx, rights *gatehouse.Rights) error {
	a := r.action
	ap := a.Approval
	if c := ap.Confirm; c != nil && r.decision.Confirm != c.Value {
		return gatehouse.E(gatehouse.CodeConfirmation, "to confirm: %s", c.Prompt).With("prompt", c.Prompt)
	}
	if r.wantsReason() {
		return gatehouse.E(gatehouse.CodeInvalid, "the second approval of %s needs a reason of its own", a.RiskLevel)
	}
	if err := r.stepUp(tx); err != nil {
		return err
	}
	if ready, err := r.ready(tx, a, rights); err != nil {
		return err
	} else if !ready {
		r.known = a
		return usecase.ErrStale // prepare runs before the next try
	}
	if r.drift != nil {
		detail := "the target has changed since the proposal"
		if r.drift.gone {
			detail = "the target does not exist any more"
		}
		return gatehouse.E(gatehouse.CodeTargetChanged, "%s", detail).
			With("expected", r.drift.expected).With("actual", r.drift.actual).
			With("can_acknowledge", !r.gate.conditional(a)).With("can_rebase", !r.drift.gone && r.gate.canRebase(a))
	}
	if err := r.checkTargetMark(); err != nil {
		return err
	}
	if r.known != nil && rights.PolicyVersion != r.policyVersion {
		return usecase.ErrStale
	}
	if r.veto != "" {
		return revoked("%s", r.veto)
	}
	if err := r.gate.checkVoters(tx, a, rights, r.caller.Principal, r.from); err != nil {
		return err
	}
	r.vote(tx)
	if ap.Approvals() < ap.Required {
		r.code = gatehouse.VoteRecorded
		if err := tx.PutVote(ap.ID, r.ballot); err != nil {
			return err
		}
		return tx.AppendLeaf(r.leaf("hitl.voted", gatehouse.StatusPending))
	}
	if err := reserve(tx, a); err != nil {
		return err
	}
	failpoint.Here("decide/reserved")
	return r.approved(tx)
}

// approved settles an action that has enough votes and reserved ceilings, and writes
// the push.
func (r *ruling) approved(tx gatehouse.Tx) error {
	push := r.gate.newPush(tx, r.action)
	failpoint.Here("decide/pushed")
	if err := r.settle(tx, gatehouse.StatusApproved, "hitl.approved", push); err != nil {
		return err
	}
	failpoint.Here("decide/settled")
	return nil
}

func (r *ruling) reject(tx gatehouse.Tx) error {
	if err := r.settle(tx, gatehouse.StatusRejected, "hitl.rejected", nil); err != nil {
		return err
	}
	failpoint.Here("reject/settled")
	r.action.FinishedAt = new(tx.Now())
	return nil
}

// vote makes the caller's vote, in the place of an earlier one.
func (r *ruling) vote(tx gatehouse.Tx) {
	p := r.caller.Principal
	v := gatehouse.Vote{
		Person: p.Person, PrincipalID: p.ID, Name: p.Name, Decision: r.decision.Decision,
		Notes: r.decision.Notes, Via: r.caller.Via, Digest: r.decision.Digest, At: tx.Now(),
	}
	if r.from != nil {
		v.For, v.ForName = r.from.ID, r.from.Name
	}
	v.Grant = r.grant
	r.ballot = v
	failpoint.Here("decide/voted")
	ap := r.action.Approval
	if own := ap.VoteOf(p.Person); own != nil {
		*own = v
	} else {
		ap.Votes = append(ap.Votes, v)
	}
}

// settle stores the vote and the decision: of any number of concurrent callers, one succeeds.
func (r *ruling) settle(tx gatehouse.Tx, to gatehouse.Status, event string, push *gatehouse.Push) error {
	a := r.action
	err := tx.SettleDecision(&gatehouse.Settlement{
		ActionID: a.ID, ApprovalID: a.Approval.ID, Vote: r.ballot, To: to, Push: push, Leaf: r.leaf(event, to),
	})
	if err != nil {
		return err
	}
	a.Status, a.Approval.Status = to, gatehouse.ApprovalStatus(to)
	a.DecidedBy, a.DecidedVia, a.DecidedAt = r.ballot.Name, r.ballot.Via, new(r.ballot.At)
	r.code = gatehouse.Decided
	return nil
}

// leaf is the leaf of the vote and of the action's transition.
func (r *ruling) leaf(event string, to gatehouse.Status) *gatehouse.Leaf {
	ap, push := r.action.Approval, r.action.Push
	data := make([]gatehouse.Member, 0, 11)
	put := func(name string, value any) {
		data = append(data, gatehouse.Member{Name: name, Value: usecase.Encode(value)})
	}
	// In alphabetical order, so that ObjectJSON need not sort them.
	if r.decision.AcknowledgeStale {
		put("acknowledge_stale", true)
	}
	put("approval", ap.ID)
	put("decision", r.decision.Decision)
	if r.from != nil {
		put("for", r.from.ID)
	}
	if r.grant != "" {
		put("grant", r.grant)
	}
	if r.held {
		put("hold", r.action.HoldFor)
	}
	if push != nil {
		put("not_before", push.NextAttempt)
	}
	if r.decision.Notes != "" {
		put("notes", r.decision.Notes)
	}
	if push != nil {
		put("push", push.ID)
	}
	if ap.RejectsAt != nil {
		put("rejects_at", ap.RejectsAt)
	}
	put("required", ap.Required)
	if r.proof != nil {
		put("step_up", r.proof.ID)
	}
	put("via", r.caller.Via)
	put("votes", ap.Approvals())
	return leafOf(r.action, event, r.caller.Principal.ID, gatehouse.StatusPending, to, gatehouse.ObjectJSON(data...))
}
