package gate

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// answer returns the ruling as the answer of Decide.
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

// notesStored returns false when the answer is replayed and the caller has no vote of
// this kind with the request's notes; nil in all other cases.
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
