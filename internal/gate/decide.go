package gate

import (
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
	return decideAs(ctx, g, id, d, func(r *ruling) (*gatehouse.Answer, error) { return r.answer() })
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
	if mayVote(c) != nil || d.Validate() != nil {
		if err := r.find(ctx); err != nil {
			return nil, err
		}
		if err := mayVote(c); err != nil {
			return nil, err
		}
		if err := d.Validate(); err != nil {
			return nil, err
		}
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
		if err := r.completeReview(tx); err != nil {
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

// ruling is one decision in progress; each run of rule sets its results again.
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
	// targetUnchanged is true if the target was read, and still is as proposed.
	targetUnchanged bool

	// Set by rule. delegators are the principals by whose right the caller may vote, from is
	// the one by whose right it votes; both are nil for the caller's own right.
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

// find reads the action and, to approve a pending one, the active policy.
func (r *ruling) find(ctx context.Context) error {
	var policyErr error
	err := r.gate.View(ctx, "action", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		if r.known, err = tx.FindAction(r.id); err == nil && r.approvesPending(r.known) {
			policyErr = r.readActivePolicy(tx, r.known)
		}
		return err
	})
	if err == nil {
		err = policyErr // outside of View, which would report a missing action
	}
	if err != nil {
		return err
	}
	return r.judge(ctx)
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
	matches, expected, actual, checked, err := r.gate.targets.Check(ctx, subject(a))
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

// rule is the only path of a decision: the checks in order, the vote, and the decision
// if the vote settles the question.
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
		return nil // somebody has rejected it: the hold changes nothing for others
	}
	if !tx.Now().Before(ap.End()) {
		a.See(tx.Now())
		r.priorDecision = true
		return nil
	}
	if err := r.gate.voteCounts(tx.Now(), a, person); err != nil {
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
	refusal := entitled(a.Approval, person, tx.Now())
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
		return gatehouse.E(gatehouse.CodeConfirmation, "%s to confirm", c.Prompt).With("prompt", c.Prompt)
	}
	if r.wantsReason() {
		return gatehouse.E(gatehouse.CodeInvalid, "the second approval of %s needs a reason of its own", a.RiskLevel)
	}
	if err := r.stepUp(tx); err != nil {
		return err
	}
	if r.known == nil && !r.needsNoPreparation(a, rights.PolicyVersion) {
		r.known = a
		r.gate.prepared.Store(a.Tenant, true)
		return usecase.ErrStale // prepare runs before the next try
	}
	if r.drift != nil {
		detail := "the target has changed since the proposal"
		if r.drift.gone {
			detail = "the target is not there"
		}
		return gatehouse.E(gatehouse.CodeTargetChanged, "%s", detail).
			With("expected", r.drift.expected).With("actual", r.drift.actual).
			With("can_acknowledge", !r.gate.conditional(a)).With("can_rebase", !r.drift.gone && r.gate.rebases(a))
	}
	if err := r.movedSince(); err != nil {
		return err
	}
	if r.known != nil && rights.PolicyVersion != r.policyVersion {
		return usecase.ErrStale
	}
	if r.veto != "" {
		return revoked("%s", r.veto)
	}
	if err := r.gate.votersStand(tx, a, rights, r.caller.Principal, r.from); err != nil {
		return err
	}
	r.vote(tx)
	if ap.Approvals() < ap.Required {
		r.code = gatehouse.VoteRecorded
		if err := tx.PutVote(ap.ID, r.ballot); err != nil {
			return err
		}
		return r.record(tx, "hitl.voted", gatehouse.StatusPending)
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

// needsNoPreparation reports whether approve needs nothing from prepare: the policy that judged the
// action is active, and the target is not read.
func (r *ruling) needsNoPreparation(a *gatehouse.Action, version int) bool {
	if version == 0 || version != a.Policy.Version {
		return false
	}
	return r.decision.AcknowledgeStale || !r.gate.checks(subject(a))
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

// record appends the leaf of the vote.
func (r *ruling) record(tx gatehouse.Tx, event string, to gatehouse.Status) error {
	return tx.AppendLeaf(r.leaf(event, to))
}

// leaf is the leaf of the vote and of the action's transition.
func (r *ruling) leaf(event string, to gatehouse.Status) *gatehouse.Leaf {
	ap, push := r.action.Approval, r.action.Push
	data := make([]gatehouse.Member, 0, 11)
	put := func(name string, value any) {
		data = append(data, gatehouse.Member{Name: name, Value: usecase.Encode(value)})
	}
	// In alphabetical order, as they are written.
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
		r.gate.HintPush(a.Push.ID)
	}
}

// answer shapes the ruling for decide.
func (r *ruling) answer() (*gatehouse.Answer, error) {
	a := r.action
	if r.priorDecision {
		if by := r.standingFor(r.decision.Decision); by != nil && by.Person == r.caller.Principal.Person {
			r.replayed = true
			r.code = alreadyCode(r.decision.Decision)
			return r.shaped(), nil
		}
		if a.Status == gatehouse.StatusExpired {
			return nil, expiredError(a)
		}
		return nil, alreadyDecided(a)
	}
	return r.shaped(), nil
}

func (r *ruling) shaped() *gatehouse.Answer {
	out := &gatehouse.Answer{Code: r.code, Result: r.code, Action: r.action, Replayed: r.replayed,
		NotesStored: r.notesStored()}
	if ap := r.action.Approval; ap != nil {
		out.Votes, out.Required = ap.Approvals(), ap.Required
	}
	return out
}

// standingFor returns the caller's vote for a standing decision of the given kind, else
// the first vote for it; nil if people have taken no such decision.
func (r *ruling) standingFor(d gatehouse.DecisionKind) *gatehouse.Vote {
	a := r.action
	ap := a.Approval
	if ap == nil || a.Status == gatehouse.StatusCanceled || a.Status == gatehouse.StatusSuperseded {
		return nil
	}
	want := gatehouse.ApprovalApproved
	if d == gatehouse.Reject {
		want = gatehouse.ApprovalRejected
	}
	if v, _ := a.HeldRejection(); ap.Status != want && (v == nil || d == gatehouse.Approve) {
		return nil
	}
	var first *gatehouse.Vote
	for i := range ap.Votes {
		v := &ap.Votes[i]
		if v.Decision != d {
			continue
		}
		if v.Person == r.caller.Principal.Person {
			return v
		}
		if first == nil {
			first = v
		}
	}
	return first
}

func alreadyCode(d gatehouse.DecisionKind) string {
	if d == gatehouse.Reject {
		return gatehouse.AlreadyRejected
	}
	return gatehouse.AlreadyApproved
}

func alreadyDecided(a *gatehouse.Action) error {
	if v, _ := a.HeldRejection(); v != nil {
		return gatehouse.E(gatehouse.CodeAlreadyDecided, "%s has rejected it", v.Name).
			With("current_status", gatehouse.StatusRejected).With("decided_by", v.Name).With("decided_at", v.At)
	}
	e := gatehouse.E(gatehouse.CodeAlreadyDecided, "the action is %s", a.Status).
		With("current_status", a.Status).With("decided_by", a.DecidedBy).With("decided_at", a.DecidedAt)
	if a.Superseded != "" {
		e = e.With("superseded_by", a.Superseded)
	}
	return e
}

func expiredError(a *gatehouse.Action) error {
	return gatehouse.E(gatehouse.CodeExpired, "the approval expired at %s", a.Approval.ExpiresAt.Format(time.RFC3339)).
		With("current_status", gatehouse.StatusExpired).With("expires_at", a.Approval.ExpiresAt)
}

func revoked(format string, args ...any) *gatehouse.Error {
	return gatehouse.E(gatehouse.CodeAuthorityRevoked, format, args...)
}
