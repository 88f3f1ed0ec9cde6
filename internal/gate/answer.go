package gate

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

// Answer is the idempotent form of Decide. If the same decision has already been
// taken, by any person who may take it, that is an answer and not a conflict.
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

func (r *ruling) shortAnswer() (*gatehouse.ShortAnswer, error) {
	a := r.action
	out := &gatehouse.ShortAnswer{ActionID: a.ID}
	switch {
	case r.priorDecision:
		by := r.standingFor(r.decision.Decision)
		if by == nil {
			if a.Status == gatehouse.StatusExpired {
				return nil, expiredError(a)
			}
			return nil, gatehouse.E(gatehouse.CodeNotAwaitingApproval, "the action is %s", a.Status).
				With("current_status", a.Status)
		}
		r.replayed = true
		r.code = alreadyCode(r.decision.Decision)
		out.Status = r.code
		if r.decision.Decision == gatehouse.Approve {
			out.ApprovedBy, out.ApprovedAt = a.DecidedBy, a.DecidedAt
		} else {
			out.RejectedBy, out.RejectedAt = a.DecidedBy, a.DecidedAt
			if v, _ := a.HeldRejection(); v != nil {
				out.RejectedBy, out.RejectedAt = v.Name, &v.At
			}
		}
	case r.code == gatehouse.VoteRecorded:
		out.Status, out.Replayed = r.code, r.replayed
		out.Votes, out.Required = a.Approval.Approvals(), a.Approval.Required
	default:
		out.Status = string(r.decision.Decision)
	}
	out.NotesStored = r.notesStored()
	return out, nil
}

// notesStored returns false when a repeated vote came with notes that differ from
// the stored ones; nil in all other cases.
func (r *ruling) notesStored() *bool {
	if !r.replayed || r.decision.Notes == "" {
		return nil
	}
	if ap := r.action.Approval; ap != nil {
		for i := range ap.Votes {
			if v := &ap.Votes[i]; v.Person == r.caller.Principal.Person && v.Decision == r.decision.Decision &&
				v.Notes == r.decision.Notes {
				return nil
			}
		}
	}
	return new(bool)
}
