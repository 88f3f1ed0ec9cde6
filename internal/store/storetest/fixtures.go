package storetest

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// action returns a small pending action, edited by change.
func (s *suite) action(at time.Time, change ...func(*gatehouse.Action)) *gatehouse.Action {
	n := s.next()
	a := &gatehouse.Action{
		ID: "act_" + n, Revision: 1, Tenant: tenant,
		Proposal: gatehouse.Proposal{
			ActionType: "price_change", Connector: "shop", Operation: "update",
			Target:         gatehouse.Target{EntityType: "item", EntityRef: "SKU-" + n},
			ProposedChange: `{"price":"12.50"}`, RiskLevel: gatehouse.L3, IdempotencyKey: "act_" + n + ":1",
		},
		Status: gatehouse.StatusPending, Digest: gatehouse.NewDigest(gatehouse.JSON(n)), Fingerprint: "fp",
		Policy:     gatehouse.PolicyOutcome{Outcome: gatehouse.OutcomeNeedsApproval, Rules: []string{"r"}, Version: 1},
		ProposerID: "prn_bot", ProposedBy: "bot", ProposedAt: at,
		Approval: &gatehouse.Approval{
			ID: "apr_" + n, ActionID: "act_" + n, Status: gatehouse.ApprovalRequested, Required: 1,
			Roles: []gatehouse.Role{gatehouse.RoleApprover}, Excluded: []string{"prn_bot"},
			ExpiresAt: at.Add(8 * time.Hour), CreatedAt: at,
		},
	}
	for _, c := range change {
		c(a)
	}
	return a
}

// pending stores a pending action.
func (s *suite) pending(change ...func(*gatehouse.Action)) *gatehouse.Action {
	s.Helper()
	a := s.action(s.now(), change...)
	s.as(a.Tenant).update(func(tx gatehouse.Tx) error { return tx.InsertAction(a) })
	return a
}

// full returns an action with most fields of a proposal set, and with strings that are hard to store.
func (s *suite) full(at time.Time) *gatehouse.Action {
	added, removed := 3, 1
	return s.action(at, func(a *gatehouse.Action) {
		a.UndoneBy = "ben"
		a.Revision, a.RiskName, a.Title = 2, "Destroys, or changes \"much\"", "Delete these three items?"
		a.ActionType, a.RiskLevel, a.ClaimedRisk = "bulk_delete", gatehouse.L5, gatehouse.L4
		a.Target = gatehouse.Target{EntityType: "item", EntityRefs: []string{"a", `b "quoted" \`, "ü\n"}, Version: "7"}
		a.CurrentState = `{"n":1234567890123456789,"price":"10.00","x":1.10}`
		a.ProposedChange = `{"n":1234567890123456790,"price":1e400}`
		a.Context, a.Metadata = `{"edge":"e"}`, `{}`
		a.Rationale = "because \u2028 <b>&</b> \\ \x01"
		a.OnBehalfOf = "ana"
		a.Magnitude = &gatehouse.Magnitude{Amount: "2.50", Currency: "USD"}
		a.Evaluations = []gatehouse.Evaluation{
			{Name: "schema", Kind: "deterministic", Result: "pass", Confidence: "0.90", Details: "<ok>"},
			{Name: "model", Kind: "probabilistic", Result: "warn"},
		}
		a.ArtifactDiff = &gatehouse.ArtifactDiff{Type: "unified_diff", Text: "-a\n+b\n", Summary: "s", LinesAdded: &added,
			LinesRemoved: &removed}
		a.Callback = &gatehouse.Callback{
			Type: gatehouse.CallbackStepFunctions, TaskTokenHash: gatehouse.HashTaskToken("t"), Sealed: "m:c2VhbGVk",
			ExecutionARN: "arn:aws:states:eu-west-1:123456789012:execution:flow:1", On: gatehouse.CallbackOnFinished,
			Heartbeat: gatehouse.Span(time.Minute),
		}
		a.ExpiresIn, a.HoldFor = gatehouse.Span(4*time.Hour), gatehouse.Duration(10*time.Second)
		a.Policy.Rules, a.Policy.Reasons = []string{"r1", "r2"}, []string{`says "no"`, ""}
		a.Ceilings = []gatehouse.CeilingClaim{
			{Ceiling: "daily", Scope: "agent:prn_bot", Amount: "2.50", Limit: "100", Window: gatehouse.Duration(24 * time.Hour)}}
		a.ContentHash = [32]byte{1, 2, 3, 31: 9}
		a.Approval.Required = 2
		a.Approval.People = []string{"ana", "ben"}
		a.Approval.Groups = []string{"finance", "legal"}
		a.Approval.Confirm = &gatehouse.Confirm{Prompt: "Type the number of items", Value: "3"}
	})
}

func vote(person string, d gatehouse.DecisionKind, at time.Time) gatehouse.Vote {
	return gatehouse.Vote{
		Person: person, PrincipalID: "prn_" + person, Name: person, Decision: d, Notes: "n", Via: gatehouse.ViaAPI,
		Digest: "sha256:00", At: at,
	}
}

// push returns a queued push of an approved action.
func push(a *gatehouse.Action, at time.Time) *gatehouse.Push {
	return &gatehouse.Push{
		ID: "psh_" + a.ID[4:], Tenant: a.Tenant, ActionID: a.ID, Connector: a.Connector, IdempotencyKey: a.IdempotencyKey,
		Digest: a.Digest, Status: gatehouse.PushQueued, NotBefore: at, CreatedAt: at,
	}
}

// approve approves an action and inserts its push, as the use case does.
func approve(tx gatehouse.Tx, a *gatehouse.Action, due time.Time) (*gatehouse.Push, error) {
	return approveInto(tx, a, due, "")
}

// approveInto is approve with a lane for the push.
func approveInto(tx gatehouse.Tx, a *gatehouse.Action, due time.Time, lane string) (*gatehouse.Push, error) {
	locked, err := tx.LockAction(a.ID)
	if err != nil {
		return nil, err
	}
	if locked.Approval != nil {
		if err := tx.PutVote(locked.Approval.ID, vote("ana", gatehouse.Approve, tx.Now())); err != nil {
			return nil, err
		}
		if err := tx.MoveApproval(locked.Approval.ID, gatehouse.ApprovalApproved); err != nil {
			return nil, err
		}
	}
	err = tx.MoveAction(gatehouse.ActionMove{
		ID: a.ID, From: gatehouse.StatusPending, To: gatehouse.StatusApproved,
		DecidedBy: "ana", DecidedVia: gatehouse.ViaAPI, Decided: true,
	})
	if err != nil {
		return nil, err
	}
	p := push(a, due)
	p.CreatedAt, p.Lane = tx.Now(), lane
	return p, tx.InsertPush(p)
}

// queued stores an approved action and its push.
func (s *suite) queued(change ...func(*gatehouse.Action)) (a *gatehouse.Action, p *gatehouse.Push) {
	s.Helper()
	a = s.pending(change...)
	s.as(a.Tenant).update(func(tx gatehouse.Tx) (err error) { p, err = approve(tx, a, tx.Now()); return err })
	return a, p
}

// path returns the states after pending that lead to a state, by moves of the transition table.
func path(to gatehouse.Status) []gatehouse.Status {
	switch to {
	case gatehouse.StatusPending:
		return nil
	case gatehouse.StatusPushing:
		return []gatehouse.Status{gatehouse.StatusApproved, to}
	case gatehouse.StatusApplied, gatehouse.StatusFailed, gatehouse.StatusUnknown:
		return append(path(gatehouse.StatusPushing), to)
	case gatehouse.StatusReversed:
		return append(path(gatehouse.StatusApplied), to)
	}
	return []gatehouse.Status{to}
}

// in stores an action and brings it into a state.
func (s *suite) in(status gatehouse.Status) *gatehouse.Action {
	s.Helper()
	if status == gatehouse.StatusDenied {
		at := s.now()
		return s.pending(func(a *gatehouse.Action) {
			a.Status, a.Approval, a.DecidedAt, a.FinishedAt = status, nil, &at, &at
			a.DecidedBy, a.DecidedVia = "policy", gatehouse.ViaPolicy
		})
	}
	a := s.pending()
	from := gatehouse.StatusPending
	for _, to := range path(status) {
		s.update(func(tx gatehouse.Tx) error { return tx.MoveAction(move(a, from, to)) })
		from = to
	}
	return a
}

// move returns an ActionMove with the flags and the failure that the target state requires. For reversed, a's own id
// stands for the reversal's.
func move(a *gatehouse.Action, from, to gatehouse.Status) gatehouse.ActionMove {
	m := gatehouse.ActionMove{ID: a.ID, From: from, To: to, Decided: from == gatehouse.StatusPending,
		Finished: to.Finished()}
	switch to {
	case gatehouse.StatusFailed:
		m.Failure = &gatehouse.Failure{Code: "boom", Detail: "it did"}
	case gatehouse.StatusReversed:
		m.ReversedBy = a.ID
	}
	return m
}
