package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/failpoint"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/spelling"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// Propose evaluates the policy for a proposal and stores the action. A denied action is a result, not an error. The
// bool is true if the action was stored earlier, by a proposal with the same idempotency key.
func (g *Gate) Propose(ctx context.Context, p *gatehouse.Proposal) (*gatehouse.Action, bool, error) {
	c, err := Proposer(ctx)
	if err != nil {
		return nil, false, err
	}
	return g.propose(ctx, c, p, lineage{revision: 1})
}

// Proposer returns the caller, who must have the role of a proposer. The caller may come
// from the credential cache: see [gatehouse.CachedCredential].
func Proposer(ctx context.Context) (*gatehouse.Caller, error) {
	c, err := gatehouse.CachedCallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	return c, Require(c, gatehouse.RoleProposer)
}

// lineage is the data that the gate adds to a proposal, such as the action that the proposal revises.
type lineage struct {
	revision int
	// supersedes is the revised action; the same transaction checks and supersedes it.
	supersedes *gatehouse.Action
	// reverses is the action that a reversal undoes; only its id is used.
	reverses *gatehouse.Action
	// asks is true for the question of an approval step.
	asks bool
	// required is the least number of people who must approve. barred are people who
	// cannot decide, besides the proposer and related people.
	required int
	barred   []string
	// starter is the principal that started the proposing run, nil for none. The starter's
	// ceilings per agent apply to the action.
	starter *gatehouse.Principal
	// title is the question of an approval step or of a plan; "" for none. about is the
	// entity whose state an approval step asks about; nil for none.
	title string
	about *gatehouse.About
	// author is the original proposer where the caller rebases, edits or undoes; nil where
	// the caller proposes.
	author *gatehouse.Principal
	// editedBy and edit describe a reviewer's edit of the author's change. editors are all
	// people who have edited the change. editing says that this proposal is the caller's edit.
	editedBy string
	edit     *gatehouse.Edit
	editors  []string
	editing  bool
	// undoing says that the caller takes back the decision of the superseded action.
	undoing bool
	// vote is the caller's approval in the same transaction, nil for none. With dry,
	// nothing is stored.
	vote *ruling
	dry  bool
	// own says that the action changes Gatehouse itself: see ProposePolicy,
	// ProposeMandate and ProposeConnectors.
	own bool
	// opened is what OpenProposal returned in the transaction that stores the action.
	opened *gatehouse.OpenedProposal
}

// find returns a finder that takes the principals of opened.Named from there, and reads all others from the store.
func (from *lineage) find(tx gatehouse.ReadTx) finder {
	return func(idOrName string) (*gatehouse.Principal, error) {
		p, opened := from.opened.Named[idOrName]
		switch {
		case !opened:
			return tx.FindPrincipal(idOrName)
		case p == nil:
			return nil, gatehouse.ErrNotFound
		}
		return p, nil
	}
}

// proposer returns the principal that proposes the action.
func (from *lineage) proposer(c *gatehouse.Caller) *gatehouse.Principal {
	if from.author != nil {
		return from.author
	}
	return c.Principal
}

// draft is an action with its verdict, prepared outside the transaction.
type draft struct {
	action  gatehouse.Action
	verdict judgement
}

func (g *Gate) propose(
	ctx context.Context, c *gatehouse.Caller, p *gatehouse.Proposal, from lineage,
) (*gatehouse.Action, bool, error) {
	if err := p.Validate(); err != nil {
		return nil, false, err
	}
	d, err := g.draft(c, p, from)
	if err != nil {
		return nil, false, err
	}
	facts := policy.Facts{
		Tenant: c.Principal.Tenant, Proposal: p, Proposer: from.proposer(c), Starter: from.starter,
		Floor:    d.action.RiskLevel,
		Declared: d.action.Declared,
	}
	if from.reverses != nil {
		err := g.Store.View(ctx, facts.Tenant, func(tx gatehouse.ReadTx) (err error) {
			facts.Reversal, err = restores(tx, from.reverses.ID, p)
			return err
		})
		if err != nil {
			return nil, false, err
		}
	}
	first := true
	judge := func() error {
		if first {
			first = false
			var known bool
			if d.verdict, known, err = g.judgeAsLast(ctx, facts); known {
				return err
			}
		}
		err := g.Store.View(ctx, facts.Tenant, func(tx gatehouse.ReadTx) (err error) {
			d.verdict, err = g.prepareJudgement(tx, facts)
			return err
		})
		if err != nil {
			return err
		}
		d.verdict, err = d.verdict.evaluate(ctx)
		return err
	}
	prepare := func() error {
		if err := judge(); err != nil {
			return err
		}
		if from.vote != nil {
			return from.vote.prepareDraft(ctx, d, from.about)
		}
		return g.findGrants(ctx, d, facts, &from)
	}
	var tried *gatehouse.Action
	var replayed bool
	u := usecase.Case{By: c, Prepare: prepare, Open: func(tx gatehouse.Tx) (known gatehouse.CallerFacts, err error) {
		// OpenProposal locks the superseded action before the transaction reads the clock, as a
		// decision does. So no revision succeeds after a client has seen the action as expired.
		q := d.query(from.proposer(c))
		q.By, q.Key, q.Supersedes = c, p.IdempotencyKey, d.action.Supersedes
		if from.opened, err = tx.OpenProposal(q); err == nil {
			known = from.opened.CallerFacts
		}
		return known, err
	}}
	out, err := usecase.Perform(ctx, g.Runner, u, func(tx gatehouse.Tx) (*gatehouse.Action, error) {
		known := from.opened.Same
		if replayed = known != nil; replayed {
			return known, g.sameProposal(tx, c, known, &d.action)
		}
		a, err := g.insertDraft(tx, c, d, from)
		if err != nil {
			return nil, err
		}
		failpoint.Here("propose/recorded")
		if from.vote != nil {
			if err := from.vote.approveEdited(tx, a); err != nil {
				return nil, err
			}
		}
		if from.dry {
			tried = a
			return nil, errDry
		}
		return a, nil
	})
	if errors.Is(err, errDry) {
		tried.ID, tried.Digest, tried.Approval.ID, tried.Approval.ActionID = "", "", "", ""
		return tried, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	failpoint.Here("propose/committed")
	if out.Status == gatehouse.StatusApproved && !replayed {
		g.HintPush(out.Push.ID, 0)
	}
	if from.supersedes != nil {
		g.Hints.Notify(from.supersedes.ID)
	}
	return out, replayed, nil
}

// query returns the draft's query for OpenProposal; an empty query for a denied draft.
func (d *draft) query(proposer *gatehouse.Principal) (q gatehouse.ProposalQuery) {
	if d.verdict.Outcome == gatehouse.OutcomeDeny {
		return q
	}
	q.Effect = d.action.EffectHash()
	for _, who := range named(proposer, d.action.OnBehalfOf) {
		q.Names = append(q.Names, spellings(who)...)
	}
	people := fullAudience(d.verdict.Verdict, d.action.ExpiresIn.D())
	q.Asked = &people
	return q
}

// sameProposal checks that the action with the same idempotency_key is a replay of this
// proposal. Revisions are the same only if they revise the same action. If the caller may
// not read the action, the error does not name it.
func (g *Gate) sameProposal(tx gatehouse.ReadTx, c *gatehouse.Caller, known, a *gatehouse.Action) error {
	switch {
	case g.mayRead(tx, c, known.ID, known.ProposerID) != nil:
		return gatehouse.E(gatehouse.CodeDuplicateKey, "another action has this idempotency_key")
	case known.ContentHash != a.ContentHash, a.Supersedes != "" && known.Supersedes != a.Supersedes:
		return gatehouse.E(gatehouse.CodeDuplicateKey, "another action has this idempotency_key").With("action_id",
			known.ID)
	}
	return nil
}

// draft makes the action without the fields that depend on the store.
func (g *Gate) draft(c *gatehouse.Caller, p *gatehouse.Proposal, from lineage) (*draft, error) {
	tenant := c.Principal.Tenant
	if p.Connector == PolicyConnector && !from.own {
		return nil, gatehouse.Violations{{
			Pointer: "/connector", Detail: "is not for proposals: a policy is proposed with POST /policies/propose, " +
				"a plan with POST /mandates, connectors with POST /connector-versions/propose",
		}}.Err()
	}
	if p.Connector == workflow.ApprovalConnector && !from.asks &&
		(from.supersedes == nil || from.supersedes.Connector != workflow.ApprovalConnector) {
		// People would take it for the approval step of a run.
		return nil, gatehouse.Violations{{Pointer: "/connector", Detail: "can be named only by an approval " +
			"step of a run"}}.Err()
	}
	if err := spelling.CheckKeys(p); err != nil {
		return nil, err
	}
	fingerprint, floor, _, err := g.targets.Describe(tenant, p)
	if err != nil {
		return nil, err
	}
	id := NewID("act")
	if p, err = g.withCallback(tenant, id, p, from); err != nil {
		return nil, err
	}
	a := gatehouse.Action{
		ID: id, Revision: from.revision, Tenant: tenant, Proposal: *p,
		ClaimedRisk: p.RiskLevel, Fingerprint: fingerprint, Declared: g.targets.Declared(tenant, p),
		ProposedBy: from.proposer(c).Name, ProposerID: from.proposer(c).ID,
		ContentHash: p.ContentHash(), Title: from.title,
	}
	// RiskLevel carries the connector's floor until the policy has judged.
	a.RiskLevel = floor
	if from.supersedes != nil {
		a.Supersedes = from.supersedes.ID
	}
	if from.reverses != nil {
		a.Reverses = from.reverses.ID
	}
	switch {
	case from.undoing:
		a.UndoneBy = c.Principal.Name
	case from.author != nil && !from.editing:
		a.RebasedBy = c.Principal.Name
	}
	a.EditedBy, a.Edit, a.Editors = from.editedBy, from.edit, from.editors
	if a.IdempotencyKey == "" {
		a.IdempotencyKey = fmt.Sprintf("%s:%d", a.ID, a.Revision)
	}
	a.Digest = a.ComputeDigest()
	if err := g.targets.Validate(&a); err != nil {
		return nil, err
	}
	return &draft{action: a}, nil
}

// insertDraft stores a judged draft. It fails with usecase.ErrStale when the active
// policy version is not the one that judged the draft.
func (g *Gate) insertDraft(
	tx gatehouse.Tx, c *gatehouse.Caller, d *draft, from lineage,
) (*gatehouse.Action, error) {
	if from.opened.PolicyVersion != d.verdict.version {
		return nil, usecase.ErrStale
	}
	a := d.action
	if err := g.insert(tx, c, &a, d.verdict, from); err != nil {
		return nil, err
	}
	return &a, nil
}

// insert stores the judged action, with an approval if people decide, or with its
// push and reservations if it is allowed.
func (g *Gate) insert(tx gatehouse.Tx, c *gatehouse.Caller, a *gatehouse.Action, v judgement, from lineage) error {
	now := tx.Now()
	a.RiskLevel = max(v.RiskLevel, a.RiskLevel, a.ClaimedRisk)
	// If the policy used a time for its verdict, ProposedAt is that time.
	if a.ProposedAt = v.at; v.at.IsZero() {
		a.ProposedAt = now
	}
	if v.policy != nil {
		a.RiskName = v.policy.LevelName(a.RiskLevel)
	}
	a.Policy = gatehouse.PolicyOutcome{Outcome: v.Outcome, Rules: usecase.OrEmpty(v.Rules),
		Reasons: usecase.OrEmpty(v.Reasons), Version: v.version}
	a.Ceilings = v.Ceilings
	if v.Outcome == gatehouse.OutcomeAllow && a.RiskLevel.NeedsPerson() {
		a.Policy.Outcome = gatehouse.OutcomeNeedsApproval
		a.Policy.Reasons = append(a.Policy.Reasons, a.RiskLevel.String()+" always needs a person")
	}
	if a.Policy.Outcome == gatehouse.OutcomeAllow && from.required > 0 {
		a.Policy.Outcome = gatehouse.OutcomeNeedsApproval
		why := "the step asks for " + strconv.Itoa(from.required) + " people"
		switch {
		case from.undoing:
			why = a.UndoneBy + " took the decision back, so people decide again"
		case from.editing:
			why = "a person edited the change, so people approve it"
		case a.RebasedBy != "":
			why = "people were asked about the change before it was rebased"
		case from.supersedes != nil:
			why = "people were asked about the change before it was revised"
		}
		a.Policy.Reasons = append(a.Policy.Reasons, why)
	}
	askRepeated(a, from.opened.DeadLetter)
	if a.Policy.Outcome == gatehouse.OutcomeAllow {
		// If the action exceeds a ceiling, people decide on it instead.
		if err := checkCeilings(tx, a); gatehouse.CodeOf(err) == gatehouse.CodeCeilingExceeded {
			a.Policy.Outcome = gatehouse.OutcomeNeedsApproval
			a.Policy.Reasons = append(a.Policy.Reasons, err.Error())
		} else if err != nil {
			return err
		}
	}
	if from.supersedes != nil {
		var err error
		if from.supersedes, err = supersede(tx, c, from, a); err != nil {
			return err
		}
	}
	if from.reverses != nil {
		if err := checkReversal(tx, a); err != nil {
			return err
		}
	}
	switch a.Policy.Outcome {
	case gatehouse.OutcomeAllow:
		return g.insertAllowed(tx, c, a, v.Verdict, from)
	case gatehouse.OutcomeNeedsApproval:
		if err := g.insertPending(tx, c, a, v.Verdict, from); err != nil {
			return err
		}
	default:
		a.Policy.Outcome = gatehouse.OutcomeDeny
		if err := insertDenied(tx, c, a, from); err != nil {
			return err
		}
	}
	return g.useGrants(tx, a, v)
}

// askRepeated requires approval by people if a dead letter has the same change: a later replay of the dead letter
// would repeat the change. deadLetter is the id of the dead letter's action; "" for none.
func askRepeated(a *gatehouse.Action, deadLetter string) {
	if deadLetter == "" {
		return
	}
	a.Repeats = deadLetter
	a.Policy.Outcome = gatehouse.OutcomeNeedsApproval
	a.Policy.Reasons = append(a.Policy.Reasons,
		"dead letter "+deadLetter+" has the same change: replay, resolve or discard it first")
}

func (g *Gate) insertAllowed(
	tx gatehouse.Tx, c *gatehouse.Caller, a *gatehouse.Action, v gatehouse.Verdict, from lineage,
) error {
	a.Status = gatehouse.StatusApproved
	decidedByPolicy(tx, a)
	a.HoldFor = gatehouse.Duration(g.hold(v, gatehouse.OutcomeAllow, a.RiskLevel))
	if err := tx.InsertAction(a); err != nil {
		return err
	}
	if err := record(tx, a, "hitl.proposed", c.Principal.ID, "", gatehouse.StatusApproved,
		proposedData(a, from)); err != nil {
		return err
	}
	if err := reserve(tx, a); err != nil {
		return err
	}
	return tx.InsertPush(g.newPush(tx, a))
}

func insertDenied(tx gatehouse.Tx, c *gatehouse.Caller, a *gatehouse.Action, from lineage) error {
	if from.editing {
		// The proposer's own change stays open.
		return cannotEdit("denied", "the policy denies the edited change: %s", strings.Join(a.Policy.Reasons, "; "))
	}
	a.Status = gatehouse.StatusDenied
	decidedByPolicy(tx, a)
	a.FinishedAt = new(tx.Now())
	if err := tx.InsertAction(a); err != nil {
		return err
	}
	return record(tx, a, "hitl.denied", c.Principal.ID, "", gatehouse.StatusDenied, proposedData(a, from))
}

func (g *Gate) insertPending(
	tx gatehouse.Tx, c *gatehouse.Caller, a *gatehouse.Action, v gatehouse.Verdict, from lineage,
) error {
	ap, why, err := newApproval(tx, from.proposer(c), a, v, from)
	switch {
	case err != nil:
		return err
	case why != "":
		// Too few people can give this approval, and it would only wait until it expires. So the
		// action is denied.
		a.Policy.Outcome, a.Policy.Reasons = gatehouse.OutcomeDeny,
			slices.Insert(slices.Clone(a.Policy.Reasons), 0, why)
		a.Ceilings = nil
		return insertDenied(tx, c, a, from)
	}
	a.Status = gatehouse.StatusPending
	a.HoldFor = gatehouse.Duration(g.hold(v, gatehouse.OutcomeNeedsApproval, a.RiskLevel))
	ap.ID, ap.ActionID, ap.Status, ap.Confirm, ap.Votes = NewID("apr"), a.ID, gatehouse.ApprovalRequested,
		confirmation(a), []gatehouse.Vote{}
	if from.about != nil {
		ap.About = from.about.Seal(a.CurrentState)
	}
	a.Approval = ap
	if err := tx.InsertAction(a); err != nil {
		return err
	}
	failpoint.Here("propose/inserted")
	if err := copyTargetMark(tx, a, from); err != nil {
		return err
	}
	data := proposedData(a, from)
	data["approval"], data["required"] = a.Approval.ID, a.Approval.Required
	data["expires_at"], data["question"] = a.Approval.ExpiresAt, string(a.Approval.Question())
	if !ap.IsZero() {
		data["timing"] = ap.Frozen()
	}
	if ap.About != nil {
		data["about"] = ap.About
	}
	if err := record(tx, a, "hitl.proposed", c.Principal.ID, "", gatehouse.StatusPending, data); err != nil {
		return err
	}
	ap.See(tx.Now())
	return nil
}

// hold returns how long an action of a risk level waits between its approval and its dispatch, under a verdict.
// outcome is allow if the policy approves the action, and needs_approval if people do.
func (g *Gate) hold(v gatehouse.Verdict, outcome gatehouse.Outcome, risk gatehouse.RiskLevel) time.Duration {
	own := time.Duration(0)
	switch {
	case g.config.Hold != nil:
		own = *g.config.Hold
	case risk <= gatehouse.L3 && outcome != gatehouse.OutcomeAllow:
		own = 10 * time.Second
	}
	switch {
	case v.Hold == nil:
		return own
	case v.HoldAtLeast:
		return max(own, *v.Hold)
	}
	return *v.Hold
}

func decidedByPolicy(tx gatehouse.Tx, a *gatehouse.Action) {
	a.DecidedBy = a.PolicyName()
	a.DecidedVia = gatehouse.ViaPolicy
	a.DecidedAt = new(tx.Now())
}

func proposedData(a *gatehouse.Action, from lineage) map[string]any {
	d := map[string]any{
		"action_type": a.ActionType, "revision": a.Revision, "risk_level": int(a.RiskLevel),
		"policy_version": a.Policy.Version, "outcome": a.Policy.Outcome, "rules": a.Policy.Rules,
	}
	if a.Supersedes != "" {
		d["supersedes"] = a.Supersedes
	}
	if a.Reverses != "" {
		d["reverses"] = a.Reverses
	}
	switch {
	case from.undoing:
		addUndone(d, from.supersedes)
		d["proposer"] = a.ProposerID
	case from.editing:
		d["edited"], d["proposer"] = editData(a), a.ProposerID
	case a.RebasedBy != "":
		d["rebased"], d["proposer"] = rebaseData(from.supersedes, a), a.ProposerID
	}
	return d
}
