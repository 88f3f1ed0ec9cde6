package api

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

// targetRoutes read targets, and take reports of changes in target systems.
func (s *Server) targetRoutes() []route {
	t := s.cfg.Targets
	if t == nil {
		return nil
	}
	return []route{{
		method: "GET", path: "/proposed-actions/{id}/target", name: "readTarget", tag: tagActions,
		summary: "Read the target of an action now",
		doc: "Asks the target system, through the connector: of a pending action its own target, of an applied one what its reversal would change. " +
			"Changes nothing. A cannot_rebase says that the state cannot be read, a busy that the target did not answer. A program reads for its own actions only.",
		roles: []gatehouse.Role{gatehouse.RoleProposer, gatehouse.RoleApprover, gatehouse.RoleOperator}, thing: ThingAction,
		status: http.StatusOK, out: typeOf[gatehouse.TargetState](),
		codes: []gatehouse.Code{gatehouse.CodeCannotRebase},
		handler: plain(func(ctx context.Context, c *call) (reply, error) {
			return answer(t.ReadTarget(ctx, c.id))
		}),
	}, {
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
