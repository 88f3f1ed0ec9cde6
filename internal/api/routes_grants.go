package api

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

// grantReaders may read grants.
var grantReaders = []gatehouse.Role{
	gatehouse.RoleApprover, gatehouse.RoleOperator, gatehouse.RoleAuditor, gatehouse.RoleAdmin,
}

// grantRoutes let people approve an agent's actions in advance.
func (s *Server) grantRoutes() []route {
	g := s.cfg.Grants
	if g == nil {
		return nil
	}
	givers := []gatehouse.Role{gatehouse.RoleApprover, gatehouse.RoleAdmin}
	return []route{
		{
			method: "GET", path: "/grants", name: "listGrants", tag: tagDecisions,
			summary: "List grants",
			doc:     "Lists the newest 500 grants of the tenant, newest first, including ended ones.",
			roles:   grantReaders, status: http.StatusOK, out: typeOf[gatehouse.Page[*gatehouse.Grant]](),
			handler: noBody(func(ctx context.Context, _ *call) (reply, error) { return list(g.ListGrants(ctx)) }),
		}, {
			method: "POST", path: "/grants", name: "createGrant", tag: tagDecisions,
			summary: "Approve the next actions of one agent in advance",
			doc: "The grant covers the actions of one operation of one connector that meet a condition, up to a number, " +
				"an amount of money by currency, and a time. The active policy has to allow grants, and still judges each " +
				"action. With dry_run nothing is stored, and the answer is the grant as it would be: 200, with worst_case, " +
				"without id.",
			roles: givers, changesRights: true, status: http.StatusCreated, out: typeOf[gatehouse.Grant](), idempotent: true,
			example: `{"agent":"bot","connector":"shop","operation":"refund","when":"true","count":3,` +
				`"amounts":[{"amount":"10.00","currency":"EUR"}],"for":"4h"}`,
			codes: []gatehouse.Code{gatehouse.CodeSelfApproval},
			handler: body(nil, func(ctx context.Context, _ *call, in *gatehouse.NewGrant) (reply, error) {
				grant, err := g.CreateGrant(ctx, *in)
				if in.DryRun {
					return reply{status: http.StatusOK, value: grant}, err
				}
				return answer(grant, err)
			}),
		}, {
			method: "GET", path: "/grants/{id}", name: "getGrant", tag: tagDecisions,
			summary: "Read a grant",
			doc:     "Returns the grant with the used part of its budget.",
			roles:   grantReaders, object: ObjectGrant, status: http.StatusOK, out: typeOf[gatehouse.Grant](),
			handler: noBody(func(ctx context.Context, c *call) (reply, error) { return answer(g.FindGrant(ctx, c.id)) }),
		}, {
			method: "POST", path: "/grants/{id}/revoke", name: "revokeGrant", tag: tagDecisions,
			summary: "End a grant at once",
			doc: "Any approver or administrator may end it. Actions that it approved stay approved. Repeating the request " +
				"changes nothing.",
			roles: givers, changesRights: true, object: ObjectGrant, idempotent: true,
			status: http.StatusOK, out: typeOf[gatehouse.Grant](),
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				return answer(g.RevokeGrant(ctx, c.id))
			}),
		},
	}
}
