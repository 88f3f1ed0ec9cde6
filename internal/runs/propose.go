package runs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/failpoint"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// proposeSpec proposes the action of a connector or approval step.
func (r *Runs) proposeSpec(ctx context.Context, w *work, worker string) error {
	p, err := w.spec.Proposal(w.with)
	if err != nil {
		return r.mistaken(ctx, w, worker, mistake("proposal", "%v", err))
	}
	_, err = r.propose(ctx, w, worker, p, nil)
	var e *gatehouse.Error
	if errors.As(err, &e) && !e.Code.Retryable() && e.Code != gatehouse.CodeLeaseLost {
		// The proposal itself is wrong, so a retry would fail again.
		return r.mistaken(ctx, w, worker, &gatehouse.Failure{Code: string(e.Code), Detail: e.Error()})
	}
	return err
}

// propose proposes a step's action to the gate, and parks the step, in one
// transaction: the gate's decision always finds the step parked. The proposer is
// the workflow's own principal; no contributor to the run can decide. caller is the
// outside worker that proposes the action, nil for the runtime.
func (r *Runs) propose(
	ctx context.Context, w *work, worker string, p *gatehouse.Proposal, caller *gatehouse.Caller,
) (*gatehouse.Action, error) {
	from, err := r.proposerOf(ctx, w, worker)
	if err != nil {
		return nil, err
	}
	p = r.completeProposal(w, p)
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if from.Title, err = w.spec.Title(w.with); err != nil {
		return nil, err
	}
	if from.About, err = w.spec.About(w.with); err != nil {
		return nil, err
	}
	if w.spec.TwoPerson {
		from.Required = 2
	}
	from.Asks = w.spec.Kind == workflow.KindApproval

	var d *gate.Draft
	judge := func() (err error) {
		if d == nil || d.Action().IdempotencyKey != p.IdempotencyKey {
			if d, err = r.gate.DraftFor(p, from); err != nil {
				return err
			}
		}
		return d.Judge(ctx)
	}

	var out *gatehouse.Action
	var last *runTx
	put := func(tx gatehouse.Tx) (*gatehouse.Action, error) {
		last = nil
		above, err := lockAncestors(tx, w.run)
		if err != nil {
			return nil, err
		}
		m, err := r.begin(tx, w.step.Tenant, w.step.RunID, w.step.ID, worker)
		if err != nil {
			return nil, err
		}
		last, m.ancestors = m, above
		s, err := m.held(w.step.ID, w.step.Generation)
		if err == nil && caller != nil {
			s, err = m.heldBy(caller, w.step.ID, w.step.Generation)
		}
		if err != nil {
			return nil, err
		}
		if caller != nil {
			m.actor = s.LeaseOwner
			if err := m.addContributor(caller.Principal.ID); err != nil {
				return nil, err
			}
		}
		key, known, err := keyToUse(tx, w.key)
		if err != nil {
			return nil, err
		}
		if known == nil && key != p.IdempotencyKey {
			p.IdempotencyKey = key
			return nil, usecase.ErrStale // the draft's digest covers its key
		}
		out, err := r.proposeIn(m, s, w, d, known)
		if err != nil {
			return nil, err
		}
		failpoint.Here("step/proposed")
		return out, m.advance()
	}

	err = r.Update(ctx, w.step.Tenant, judge, func(tx gatehouse.Tx) (err error) {
		out, err = usecase.Once(tx, caller, func() (*gatehouse.Action, error) { return put(tx) })
		return err
	})
	if err != nil {
		return nil, err
	}

	r.notifyChanges(last)
	if out != nil && out.Status == gatehouse.StatusApproved {
		r.gate.HintPush(out.Push.ID, 0)
	}
	return out, nil
}

// maxKeys bounds the keys that a step tries, in a transaction: agents can propose, and withdraw, actions with them.
const maxKeys = 100

// keyToUse returns the key under which a step proposes, and the action that already has it, nil for none. An
// action that ended without an effect leaves its key used: the step then proposes under the next of the keys
// K, K~2, K~3, and so on, at most maxKeys. These depend only on stored actions, so all steps with the key K agree on
// them.
func keyToUse(tx gatehouse.ReadTx, own string) (key string, known *gatehouse.Action, err error) {
	for n := 1; ; n++ {
		if n > maxKeys {
			return "", nil, gatehouse.E(gatehouse.CodeDuplicateKey, "%d actions with the key %s have ended without an effect",
				maxKeys, gatehouse.Quote(own))
		}
		key = nthKey(own, n)
		known, err = tx.FindActionByKey(key)
		if errors.Is(err, gatehouse.ErrNotFound) {
			return key, nil, nil
		}
		if err != nil {
			return "", nil, err
		}
		last, err := latestRevision(tx, known)
		if err != nil {
			return "", nil, err
		}
		switch last.Status {
		case gatehouse.StatusRejected, gatehouse.StatusDenied, gatehouse.StatusExpired, gatehouse.StatusCanceled,
			gatehouse.StatusFailed:
		default:
			return key, known, nil
		}
	}
}

// nthKey returns the nth key of a step. A key that would be too long is replaced by its hash.
func nthKey(own string, n int) string {
	if n == 1 {
		return own
	}
	suffix := "~" + strconv.Itoa(n)
	if len(own)+len(suffix) > workflow.MaxKey {
		sum := sha256.Sum256([]byte(own))
		own = hex.EncodeToString(sum[:])
	}
	return own + suffix
}

// latestRevision follows an action to the revision that replaced it last.
func latestRevision(tx gatehouse.ReadTx, a *gatehouse.Action) (_ *gatehouse.Action, err error) {
	for err == nil && a.Superseded != "" {
		a, err = tx.FindAction(a.Superseded)
	}
	return a, err
}

// proposeIn proposes within the run's transaction, or adopts the known action of the step's key. It returns no
// action when the step has closed without one.
func (r *Runs) proposeIn(
	m *runTx, s *gatehouse.Step, w *work, d *gate.Draft, known *gatehouse.Action,
) (*gatehouse.Action, error) {
	if m.run.Stop != "" {
		return nil, m.canceled(s, m.actor)
	}
	var earlier *gatehouse.Action
	if known == nil {
		var err error
		if earlier, err = m.proposedBefore(w, d.Action()); err != nil {
			return nil, err
		}
	}
	if known == nil && earlier == nil {
		if over, err := r.overWrites(m); err != nil {
			return nil, err
		} else if over != nil {
			return nil, m.failed(s, m.actor, *over)
		}
	}

	s.Input, s.IdempotencyKey = w.with, w.key
	if known != nil || d.Action().IdempotencyKey != w.key {
		if other, err := m.tx.FindStepByKey(w.key); err == nil && other.ID != s.ID {
			s.IdempotencyKey = "" // the key belongs to the other step
		} else if err != nil && !errors.Is(err, gatehouse.ErrNotFound) {
			return nil, err
		}
	}
	if known != nil {
		return m.adopt(s, known, d)
	}
	if earlier != nil {
		return earlier, m.await(s, earlier)
	}

	a, err := d.Insert(m.tx)
	if err != nil {
		return nil, err
	}
	if err := m.tx.Inherit(a.ID, m.run.ID); err != nil {
		return nil, err
	}

	m.run.Writes++
	for _, run := range m.ancestors {
		run.Writes++
		if err := m.tx.MoveRun(run, run.Status); err != nil {
			return nil, err
		}
	}
	return a, m.await(s, a)
}

// lockAncestors locks the ancestors of a child run, the topmost first, which is the
// order of every transaction that locks a run and its child. The result has the
// direct parent first.
func lockAncestors(tx gatehouse.Tx, run *gatehouse.Run) (above []*gatehouse.Run, err error) {
	for run.ParentRun != "" {
		if run, err = tx.FindRunHead(run.ParentRun); err != nil {
			return nil, err
		}
		above = append(above, run)
	}
	for i := len(above) - 1; i >= 0; i-- {
		if above[i], err = tx.LockRunHead(above[i].ID); err != nil {
			return nil, err
		}
	}
	return above, nil
}

// overWrites returns a failure when the run, or one of its ancestors, has reached its
// limit of actions. The actions of descendant runs count.
func (r *Runs) overWrites(m *runTx) (*gatehouse.StepFailure, error) {
	most := func(def *workflow.Definition) int {
		own, tenant := def.Limits.MaxWritesPerRun, r.config.Limits(m.run.Tenant).MaxWritesPerRun
		if own == 0 || tenant != 0 && tenant < own {
			return tenant
		}
		return own
	}
	if full(most(m.def), m.run.Writes) {
		return &gatehouse.StepFailure{Code: "too_many_writes", Detail: "the run has reached its limit of changes"}, nil
	}
	for _, run := range m.ancestors {
		def, err := r.definition(m.tx, run.Tenant, run.Workflow, run.Version)
		if err != nil {
			return nil, err
		}
		if full(most(def), run.Writes) {
			return &gatehouse.StepFailure{
				Code:   "too_many_writes",
				Detail: "the run " + run.ID + " and the runs that it started have reached the limit of changes",
			}, nil
		}
	}
	return nil, nil
}

// await parks a step until its action settles.
func (m *runTx) await(s *gatehouse.Step, a *gatehouse.Action) error {
	s.ActionID = a.ID
	if err := m.attempt(s, m.actor, string(gatehouse.StepWaitingApproval), nil); err != nil {
		return err
	}
	return m.park(s, gatehouse.StepWaitingApproval, member("action", a.ID), member("status", string(a.Status)))
}

// adopt adopts an action that was already proposed under the step's key: the step waits for the
// action, or takes its result. adopt returns no action if the step fails instead.
func (m *runTx) adopt(s *gatehouse.Step, known *gatehouse.Action, d *gate.Draft) (*gatehouse.Action, error) {
	wanted := d.Action()
	last, err := latestRevision(m.tx, known)
	if err != nil {
		return nil, err
	}
	others := known.ProposerID != wanted.ProposerID
	// An approval step adopts only an approval for its own run, whose id is the target: only then are all
	// contributors to the run barred from deciding.
	forged := wanted.Connector == workflow.ApprovalConnector && others
	why := ""
	switch {
	case forged || !sameChange(known, wanted) || others && !sameChange(last, wanted):
		why = "proposes another change"
	case others || last.Status != gatehouse.StatusApplied && last.Status != gatehouse.StatusReversed:
		// An applied action of the workflow itself is adopted even if this step demands more approval.
		if less := d.AsksMore(last); less != "" {
			why = "asked for less than this step demands: " + less
		}
	}
	if why != "" {
		s.IdempotencyKey = ""
		return nil, m.failed(s, m.actor, gatehouse.StepFailure{
			Code: string(gatehouse.CodeDuplicateKey), Detail: "the action " + known.ID + " has this idempotency key, but " + why,
		})
	}
	return known, m.await(s, known)
}

func sameChange(a, b *gatehouse.Action) bool {
	return a.Connector == b.Connector && a.Operation == b.Operation &&
		gatehouse.MustJSON(a.Target) == gatehouse.MustJSON(b.Target) && a.ProposedChange.Equal(b.ProposedChange)
}

// proposedBefore returns the action that the same step proposed in a run that this one retries, if the action makes
// the wanted change, and has had its effect or still may have it, for example as a dead letter that was replayed.
func (m *runTx) proposedBefore(w *work, wanted *gatehouse.Action) (*gatehouse.Action, error) {
	for id := m.run.RetryOf; id != ""; {
		old, step, err := earlierStep(m.tx, w.step, id)
		if err != nil {
			return nil, err
		}
		id = old.RetryOf
		if step == nil || step.ActionID == "" {
			continue
		}
		a, err := m.tx.FindAction(step.ActionID)
		if err != nil {
			return nil, err
		}
		switch a.Status {
		case gatehouse.StatusApproved, gatehouse.StatusPushing, gatehouse.StatusUnknown, gatehouse.StatusApplied:
			if sameChange(a, wanted) {
				return a, nil
			}
		}
	}
	return nil, nil
}

// contributors lists the principals that contributed to a run, to its ancestors and to the runs that it retries:
// the starter, the author of the version, the sender of the webhook, the senders of events, the workers that
// completed steps or pushes or proposed actions, the proposers of adopted or revised actions, the editors of
// actions, and the contributors of other runs whose output the run uses.
func (r *Runs) contributors(tx gatehouse.ReadTx, run *gatehouse.Run) (principals []string, err error) {
	line := []*gatehouse.Run{run}
	if run.ParentRun != "" || run.RetryOf != "" {
		if line, err = tx.ListLineage(run.ID); err != nil {
			return nil, err
		}
	}
	seen := make(map[definitionKey]bool)
	for _, run := range line {
		stored, err := tx.ListRunContributors(run.ID)
		if err != nil {
			return nil, err
		}
		principals = append(append(principals, run.StarterID), stored...)
		version := definitionKey{run.Tenant, run.Workflow, run.Version}
		if seen[version] {
			continue
		}
		seen[version] = true
		author, err := r.author(tx, version)
		if err != nil {
			return nil, err
		}
		principals = append(principals, author)
	}
	slices.Sort(principals)
	return slices.DeleteFunc(slices.Compact(principals), func(s string) bool { return s == "" }), nil
}

// proposerOf returns the principals that matter for a run's proposals: the proposer,
// which is the workflow's principal; the run's starter; and the principals that can
// never decide, which are all contributors to the run, the worker that proposes, and
// their sponsors.
func (r *Runs) proposerOf(ctx context.Context, w *work, worker string) (from gate.RunProposal, err error) {
	err = r.Store.View(ctx, w.step.Tenant, func(tx gatehouse.ReadTx) error {
		p, err := tx.FindPrincipal(actorName(w.run.Workflow))
		if err != nil {
			return err
		}
		involved, err := r.contributors(tx, w.run)
		if err != nil {
			return err
		}
		from = gate.RunProposal{By: &gatehouse.Caller{Principal: p}, Barred: involved}
		for _, id := range append(slices.Clone(involved), worker) {
			who, err := tx.FindPrincipal(id)
			switch {
			case err == nil:
				from.Barred = append(from.Barred, who.ID, who.Sponsor)
				if id == w.run.StarterID {
					from.Starter = who
				}
			case !errors.Is(err, gatehouse.ErrNotFound):
				return err
			}
		}
		return nil
	})
	if err == nil && from.By.Principal.Disabled {
		err = gatehouse.E(gatehouse.CodeRoleRequired, "the principal %s is disabled: its runs propose nothing",
			from.By.Principal.Name)
	}
	return from, err
}

// completeProposal completes a proposal with the values that the runtime sets.
func (r *Runs) completeProposal(w *work, p *gatehouse.Proposal) *gatehouse.Proposal {
	q := *p
	q.IdempotencyKey = w.key
	if q.ActionType == "" {
		q.ActionType = w.spec.ActionType
	}
	q.RiskLevel = max(q.RiskLevel, w.spec.Risk)
	if w.spec.Kind == workflow.KindApproval {
		q.Connector, q.Operation = workflow.ApprovalConnector, workflow.ApprovalOperation
		q.Target = gatehouse.Target{EntityType: "run", EntityRef: w.run.ID}
		q.RiskLevel = max(q.RiskLevel, gatehouse.L3)
		if q.ActionType == "" {
			q.ActionType = workflow.ApprovalType
		}
	}
	members := []gatehouse.Member{
		member("run", w.run.ID), member("step", w.step.Key), member("trigger", string(w.run.Trigger)),
		member("workflow", w.run.Workflow),
		{Name: "workflow_version", Value: usecase.Encode(w.run.Version)},
	}
	repeated := w.def.Repeated(w.spec.ID)
	if repeated {
		_, n := w.step.Iteration()
		members = append(members, gatehouse.Member{Name: "iteration", Value: usecase.Encode(n)})
		if w.previousAction != "" {
			members = append(members, member("previous_action", w.previousAction))
		}
	}
	if given, err := p.Context.Fields(); err == nil {
		for _, g := range given {
			if !reserved(g.Name) && (!repeated || g.Name != "iteration") {
				members = append(members, g)
			}
		}
	}
	q.Context = gatehouse.ObjectJSON(members...)
	return &q
}

// reserved reports whether the runtime itself sets this member of an action's
// context.
func reserved(name string) bool {
	switch name {
	case "run", "step", "trigger", "workflow", "workflow_version", "previous_action":
		return true
	}
	return false
}
