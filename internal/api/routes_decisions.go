package api

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

const tagDecisions = "Decisions"

// refusals are the errors that decide, edit, approve and reject have in common; those of links are decideCodes.
var refusals = []gatehouse.Code{
	gatehouse.CodeDigestMismatch, gatehouse.CodeTargetChanged, gatehouse.CodeExpired,
	gatehouse.CodeConfirmation, gatehouse.CodeSelfApproval, gatehouse.CodeAlreadyVoted,
	gatehouse.CodeCeilingExceeded, gatehouse.CodeAuthorityRevoked,
}

// shortDecision is the body of a decision in the short, idempotent form.
type shortDecision struct {
	Notes   string           `json:"notes,omitempty"`
	Digest  gatehouse.Digest `json:"digest,omitempty"`
	Confirm string           `json:"confirm,omitempty"`
	Hold    bool             `json:"hold,omitempty"`
}

func (d *shortDecision) decision(kind gatehouse.DecisionKind) gatehouse.Decision {
	return gatehouse.Decision{Decision: kind, Notes: d.Notes, Digest: d.Digest, Confirm: d.Confirm, Hold: d.Hold}
}

func (s *Server) decisionRoutes() []route {
	return []route{
		{
			method: "POST", path: "/proposed-actions/{id}/decide", name: "decide", tag: tagDecisions,
			summary: "Approve or reject an action",
			doc: "code is the outcome: decided, vote_recorded (the quorum is not met yet), or already_approved / " +
				"already_rejected when the person repeats the standing decision. digest is required to approve. " +
				"An approved action waits for its hold before it is sent. " +
				"A rejection takes effect at once or, with hold: true, after the same time: until then the action " +
				"is pending, approval.rejects_at says when, and undo takes it back.",
			roles: approvers, token: tokenRequired, cached: true, object: ObjectAction, decides: "decide",
			status: http.StatusOK, out: typeOf[gatehouse.Answer](), idempotent: true,
			codes:   append([]gatehouse.Code{gatehouse.CodeAlreadyDecided}, refusals...),
			example: `{"decision":"approved","digest":"sha256:…"}`,
			handler: body((*gatehouse.Decision).Validate, func(
				ctx context.Context, c *call, in *gatehouse.Decision,
			) (reply, error) {
				return answer(s.cfg.Actions.Decide(ctx, c.id, *in))
			}),
		}, {
			method: "POST", path: "/proposed-actions/bulk-decide", name: "bulkDecide", tag: tagDecisions,
			summary: "Give many actions the same answer",
			doc: "At most 500 items, at most 30 calls a minute for each person. Each item is decided or skipped separately: " +
				"lost races are skipped as already_decided, L4 and L5 as individual_decision_required.",
			roles: approvers, token: tokenRequired, decides: "bulk-decide", bulk: true, via: gatehouse.ViaBulk,
			status: http.StatusOK, out: typeOf[gatehouse.BulkAnswer](), idempotent: true,
			example: `{"decision":"rejected","items":[{"action_id":"act_1"}]}`,
			handler: body((*gatehouse.BulkDecision).Validate, func(
				ctx context.Context, _ *call, in *gatehouse.BulkDecision,
			) (reply, error) {
				return answer(s.cfg.Actions.BulkDecide(ctx, *in))
			}),
		},
		s.shortForm("approve", gatehouse.Approve),
		s.shortForm("reject", gatehouse.Reject),
	}
}

// shortForm approves or rejects by action or approval id. A repeat by anybody
// gets 200 as long as the requested decision stands.
func (s *Server) shortForm(verb string, kind gatehouse.DecisionKind) route {
	return route{
		method: "POST", path: "/approvals/{id}/" + verb, name: verb, tag: tagDecisions,
		summary: "The idempotent form: " + verb,
		doc: "{id} is an action's or an approval's. If people have already taken the same decision, the answer is " +
			"200 with status already_" + string(kind) + ", regardless of who took it and of later changes. " +
			"If the action was decided the other way or by policy, canceled or superseded: 409 not_awaiting_approval.",
		roles: approvers, token: tokenRequired, cached: true, object: ObjectAction, decides: verb,
		status: http.StatusOK, out: typeOf[gatehouse.ShortAnswer](), idempotent: true,
		codes:   append([]gatehouse.Code{gatehouse.CodeNotAwaitingApproval}, refusals...),
		example: `{"digest":"sha256:…"}`,
		handler: maybe(
			body(func(in *shortDecision) error { d := in.decision(kind); return d.Validate() },
				func(ctx context.Context, c *call, in *shortDecision) (reply, error) {
					return answer(s.cfg.Actions.Answer(ctx, c.id, in.decision(kind)))
				})),
	}
}
