package api

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

// delegators may create delegations.
var delegators = []gatehouse.Role{gatehouse.RoleApprover, gatehouse.RoleAdmin}

// delegationRoutes let people delegate their decisions while they are away.
func (s *Server) delegationRoutes() []route {
	d := s.cfg.Delegations
	if d == nil {
		return nil
	}
	return []route{
		{
			method: "GET", path: "/delegations", name: "listDelegations", tag: tagAdmin,
			summary: "List delegations",
			doc: "The newest 500 delegations from and to the caller or, for an administrator, of the tenant, " +
				"newest first, including ended ones; then any others in force to the caller.",
			roles: delegators, status: http.StatusOK, out: typeOf[gatehouse.Page[*gatehouse.Delegation]](),
			handler: noBody(func(ctx context.Context, _ *call) (reply, error) { return list(d.ListDelegations(ctx)) }),
		}, {
			method: "POST", path: "/delegations", name: "createDelegation", tag: tagAdmin,
			summary: "Let somebody answer for a person",
			doc: "From one person with the role approver to another, until a time, for all or some action types and up to a " +
				"risk level. The delegate votes in " +
				"their own name, for that person. Without from, it is from the caller; only administrators create those of others.",
			roles: delegators, changesRights: true, status: http.StatusCreated,
			out: typeOf[gatehouse.Delegation](), idempotent: true,
			example: `{"to":"ben","ends_at":"2026-12-01T08:00:00Z","action_types":["price_change"],"max_level":3}`,
			handler: body(nil, func(ctx context.Context, _ *call, in *gatehouse.NewDelegation) (reply, error) {
				return answer(d.CreateDelegation(ctx, *in))
			}),
		}, {
			method: "POST", path: "/delegations/{id}/end", name: "endDelegation", tag: tagAdmin,
			summary: "End a delegation early",
			doc: "Either of the two persons, or an administrator, may end it. Votes that were given stay valid. Repeating the " +
				"request changes nothing.",
			roles: delegators, changesRights: true, object: ObjectDelegation, status: http.StatusOK,
			out: typeOf[gatehouse.Delegation](), idempotent: true,
			handler: noBody(
				func(ctx context.Context, c *call) (reply, error) { return answer(d.EndDelegation(ctx, c.id)) },
			),
		},
	}
}
