package sqlite

import (
	"cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// OpenCaller finds the caller's credential and stored answer.
func (t *readTx) OpenCaller(by *gatehouse.Caller) (facts gatehouse.CallerFacts, err error) {
	if by == nil {
		return facts, nil
	}
	if by.Cached != nil {
		p, token, err := t.credential(by.Cached.Key)
		if facts.Principal, err = shared.OrNone(p, err); err != nil {
			return facts, err
		}
		facts.EditToken = token
	}
	if a := by.Idempotency; a != nil {
		facts.Answer, err = shared.OrNone(t.answer(by.Principal.ID, a.Route, a.Key))
	}
	return facts, err
}

// OpenDecision reads the action and the caller. If the decision approves a pending action, OpenDecision also reads the
// rights.
func (t *tx) OpenDecision(q gatehouse.DecisionQuery) (*gatehouse.OpenedDecision, error) {
	o, errs := new(gatehouse.OpenedDecision), [3]error{}
	o.Action, errs[0] = shared.OrNone(t.LockAction(q.ActionID))
	o.CallerFacts, errs[1] = t.OpenCaller(q.By)
	if q.Approve && o.Action != nil && o.Action.Status == gatehouse.StatusPending {
		o.Rights, errs[2] = t.rights(o.Action, q.By.Principal.ID)
	}
	return o, cmp.Or(errs[:]...)
}

// SettleDecision writes the parts of a decision, one after another.
func (t *tx) SettleDecision(d *gatehouse.Settlement) error {
	if err := shared.CheckSettlement(t.tenant, d); err != nil {
		return err
	}
	if t.knownByID(t.tenant, d.ActionID) == nil {
		if _, err := t.LockAction(d.ActionID); err != nil {
			return err
		}
	}
	if t.known.approval != d.ApprovalID {
		return gatehouse.ErrConflict
	}
	return shared.SettleByParts(t, d)
}

// rights reads the active policy version, the proposer, the proposer's sponsor, and
// as voters the principals who voted to approve and those with the ids in voters.
func (t *tx) rights(a *gatehouse.Action, voters ...string) (o gatehouse.Rights, err error) {
	if a.Approval != nil {
		for _, v := range a.Approval.Votes {
			if v.Decision == gatehouse.Approve {
				voters = append(voters, v.PrincipalID)
			}
		}
	}
	var errs [4]error
	o.PolicyVersion, errs[0] = t.ActivePolicyVersion()
	o.Voters, errs[1] = t.LockPrincipals(voters)
	o.Proposer, errs[2] = shared.OrNone(t.FindPrincipal(a.ProposerID))
	if o.Proposer != nil && o.Proposer.Sponsor != "" {
		o.Sponsor, errs[3] = shared.OrNone(t.FindPrincipal(o.Proposer.Sponsor))
	}
	return o, cmp.Or(errs[:]...)
}

// FindDecision reads the action, the caller, the active version and the proposer.
func (t *readTx) FindDecision(q gatehouse.DecisionQuery) (*gatehouse.OpenedDecision, error) {
	o, errs := new(gatehouse.OpenedDecision), [4]error{}
	o.CallerFacts, errs[0] = t.OpenCaller(q.By)
	o.Action, errs[1] = shared.OrNone(t.FindAction(q.ActionID))
	o.PolicyVersion, errs[2] = t.ActivePolicyVersion()
	if o.Action != nil {
		o.Proposer, errs[3] = shared.OrNone(t.FindPrincipal(o.Action.ProposerID))
	}
	return o, cmp.Or(errs[:]...)
}

// OpenProposal runs one query after another: no query costs a round trip here.
func (t *tx) OpenProposal(q gatehouse.ProposalQuery) (*gatehouse.OpenedProposal, error) {
	o, errs := &gatehouse.OpenedProposal{Named: make(map[string]*gatehouse.Principal, len(q.Names))}, [6]error{}
	if q.Supersedes != "" {
		_, errs[0] = t.LockAction(q.Supersedes)
	}
	o.CallerFacts, errs[1] = t.OpenCaller(q.By)
	if q.Key != "" {
		o.Same, errs[2] = shared.OrNone(t.FindActionByKey(q.Key))
	}
	o.PolicyVersion, errs[3] = t.ActivePolicyVersion()
	if q.Effect != (gatehouse.Hash{}) {
		o.DeadLetter, errs[4] = t.deadLetterOf(q.Effect)
	}
	if q.Asked != nil {
		o.Answerers, errs[5] = t.firstAnswerers(*q.Asked)
	}
	for _, name := range q.Names {
		var err error
		if o.Named[name], err = shared.OrNone(t.FindPrincipal(name)); err != nil {
			return o, err
		}
	}
	return o, cmp.Or(errs[:]...)
}

// OpenPush reads the action and its push, and the receipt and rights if the query
// asks for them.
func (t *tx) OpenPush(q gatehouse.PushQuery) (*gatehouse.OpenedPush, error) {
	o, errs := new(gatehouse.OpenedPush), [4]error{}
	o.Action, errs[0] = t.LockAction(q.ActionID)
	o.Push, errs[1] = t.LockPush(q.PushID)
	if q.ReceiptKey != "" {
		o.Receipt, errs[2] = shared.OrNone(t.SuccessReceipt(q.ReceiptKey))
	}
	if q.Rights && o.Action != nil {
		o.Rights, errs[3] = t.rights(o.Action)
	}
	return o, cmp.Or(errs[:]...)
}

// OpenStep is LockRun.
func (t *tx) OpenStep(runID, item string) (*gatehouse.Run, error) { return t.LockRun(runID, item) }

// OpenPage lists actions and reads the caller and the saved views.
func (t *readTx) OpenPage(by *gatehouse.Caller, f gatehouse.ActionFilter, views bool) (*gatehouse.OpenedPage, error) {
	o, errs := new(gatehouse.OpenedPage), [3]error{}
	o.CallerFacts, errs[0] = t.OpenCaller(by)
	if views {
		o.Views, errs[1] = t.ListViews(by.Principal.ID)
	}
	o.Page, errs[2] = t.ListActions(f)
	return o, cmp.Or(errs[:]...)
}
