package api

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

// targetRoutes take reports of changes in target systems.
func (s *Server) targetRoutes() []route {
	t := s.cfg.Targets
	if t == nil {
		return nil
	}
	return []route{{
		method: "POST", path: "/targets/changed", name: "targetChanged", tag: tagActions,
		summary: "Say that something in a target system is another now",
		doc: "Marks the open actions on it that were proposed on another version: their cards say so, and who approves one gets target_changed, unless the " +
			"connector asks the target itself. Repeated, it changes nothing. action_ids is empty for an agent that reads its own actions only.",
		roles:  []gatehouse.Role{gatehouse.RoleProposer, gatehouse.RoleOperator},
		status: http.StatusOK, out: typeOf[gatehouse.TargetChanges](), idempotent: true,
		handler: body(
			(*gatehouse.TargetChange).Validate,
			func(ctx context.Context, _ *call, in *gatehouse.TargetChange) (reply, error) {
				return answer(t.TargetChanged(ctx, *in))
			},
		),
	}}
}
