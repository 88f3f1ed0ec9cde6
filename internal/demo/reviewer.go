package demo

import (
	"context"
	"fmt"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
)

// reviewer decides through the API, and writes each decision with the exact change to the
// journal.
type reviewer struct {
	name    string
	api     *client.Client
	journal *journal
}

// see reads an action and verifies its digest.
func (r *reviewer) see(ctx context.Context, id string) (*gatehouse.Action, error) {
	a, err := r.api.FindAction(ctx, id)
	if err != nil {
		return nil, err
	}
	if got := a.ComputeDigest(); got != a.Digest {
		return nil, fmt.Errorf("%s says that its digest is %s, but its content gives %s", a.ID, a.Digest, got)
	}
	return a, nil
}

// decide sends a decision on an action that see has returned. The journal gets the gate's answer or
// refusal.
func (r *reviewer) decide(ctx context.Context, a *gatehouse.Action, d gatehouse.Decision) (*gatehouse.Answer, error) {
	d.Digest = a.Digest
	answer, err := r.api.Decide(ctx, a.ID, d)
	said := string(gatehouse.CodeOf(err))
	if err == nil {
		said = answer.Code
	}
	if werr := r.note(a, d.Decision, said); werr != nil {
		return nil, werr
	}
	return answer, err
}

func (r *reviewer) note(a *gatehouse.Action, d gatehouse.DecisionKind, said string) error {
	return r.journal.write(entry{
		By: r.name, Kind: kindDecision, Decision: d, Answer: said, ActionID: a.ID, Digest: a.Digest,
		Connector: a.Connector, Operation: a.Operation, Target: a.Target, Before: a.CurrentState, Change: a.ProposedChange,
	})
}

// approve reads and approves an action. It fails unless this approval decides the action.
func (r *reviewer) approve(ctx context.Context, l *Line, id, notes string) error {
	a, err := r.see(ctx, id)
	if err != nil {
		return err
	}
	return r.settle(ctx, l, a, gatehouse.Decision{Decision: gatehouse.Approve, Notes: notes, Confirm: retyped(a)})
}

// settle sends a decision and counts it. It fails unless this decision decides the action.
func (r *reviewer) settle(ctx context.Context, l *Line, a *gatehouse.Action, d gatehouse.Decision) error {
	answer, err := r.decide(ctx, a, d)
	if err != nil {
		return fmt.Errorf("%s by %s: %w", d.Decision, r.name, err)
	}
	if answer.Code != gatehouse.Decided {
		return fmt.Errorf("%s by %s ended as %s", d.Decision, r.name, answer.Code)
	}
	l.Decided++
	if d.Decision == gatehouse.Reject {
		l.Refused++
	}
	return nil
}

// retyped is what a person must type to confirm, "" for nothing.
func retyped(a *gatehouse.Action) string {
	if a.Approval == nil || a.Approval.Confirm == nil {
		return ""
	}
	return a.Approval.Confirm.Value
}

// refused checks that err is the gate's refusal of a decision, with the code want, and counts it.
func refused(l *Line, err error, want gatehouse.Code) error {
	if err == nil {
		return fmt.Errorf("the gate accepted a request that it should have refused as %s", want)
	}
	if gatehouse.CodeOf(err) != want {
		return fmt.Errorf("refused, but not as %s: %w", want, err)
	}
	l.Refused++
	return nil
}

// ask lets the person who watches decide in the role of r. If they do not, the demo decides. It
// returns the decision.
func (p *play) ask(
	ctx context.Context, l *Line, r *reviewer, id string, otherwise gatehouse.DecisionKind, notes string,
) (gatehouse.DecisionKind, error) {
	a, err := r.see(ctx, id)
	if err != nil {
		return "", err
	}
	choice, err := p.Stage.Ask(ctx, r.name, a)
	if err != nil {
		return "", err
	}
	d := gatehouse.Decision{Decision: otherwise, Notes: notes, Confirm: retyped(a)}
	switch choice {
	case Approved:
		d.Decision, d.Notes = gatehouse.Approve, ""
	case Rejected:
		d.Decision, d.Notes = gatehouse.Reject, ""
	}
	return d.Decision, r.settle(ctx, l, a, d)
}
