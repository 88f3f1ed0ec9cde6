package api

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

func (s *Server) evaluationRoutes() []route {
	e := s.cfg.Evaluations
	if e == nil {
		return nil
	}
	return []route{{
		method: "POST", path: "/proposed-actions/{id}/evaluations", name: "evaluateAction", tag: tagActions,
		summary: "Evaluate a pending action, as a registered evaluator",
		doc: "Only for a service whose only role is evaluator. The card shows the result under the evaluator's " +
			"name, apart from the proposer's words, and the result decides nothing. An evaluator evaluates each revision once.",
		roles: []gatehouse.Role{gatehouse.RoleEvaluator}, object: ObjectAction, status: http.StatusCreated,
		out: typeOf[gatehouse.Evaluated](), idempotent: true,
		codes:   []gatehouse.Code{gatehouse.CodeDigestMismatch, gatehouse.CodeAlreadyExists, gatehouse.CodeTooLate},
		example: `{"digest":"sha256:…","result":"warn"}`,
		handler: body(
			(*gatehouse.NewEvaluated).Validate,
			func(ctx context.Context, c *call, in *gatehouse.NewEvaluated) (reply, error) {
				return answer(e.Evaluate(ctx, c.id, *in))
			},
		),
	}}
}
