package api

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

const tagAdmin = "Identity"

// newTenant is the request to create a tenant.
type newTenant struct {
	ID string `json:"id"`
}

// revoked is the answer to the revocation of a key.
type revoked struct {
	ID      string `json:"id"`
	Revoked bool   `json:"revoked"`
}

func (s *Server) adminRoutes() []route {
	return []route{
		{
			method: "GET", path: "/whoami", name: "whoAmI", tag: tagAdmin,
			summary: "Show the principal of the key", doc: "The principal of the key, with its roles.",
			status: http.StatusOK, out: typeOf[gatehouse.Principal](),
			handler: noBody(func(ctx context.Context, _ *call) (reply, error) {
				return answer(s.cfg.Admin.WhoAmI(ctx))
			}),
		}, {
			method: "POST", path: "/principals", name: "createPrincipal", tag: tagAdmin,
			summary: "Create a person, agent or service",
			doc:     "The key, and a person's edit token, are shown in this answer only.",
			roles:   admins, changesRights: true, status: http.StatusCreated, out: typeOf[gatehouse.Credentials](),
			idempotent: true, secret: true,
			codes:   []gatehouse.Code{gatehouse.CodeAlreadyExists},
			example: `{"name":"eve","kind":"person","roles":["approver"]}`,
			handler: body(nil, func(ctx context.Context, _ *call, in *gatehouse.NewPrincipal) (reply, error) {
				return answer(s.cfg.Admin.CreatePrincipal(ctx, *in))
			}),
		}, {
			method: "GET", path: "/principals", name: "listPrincipals", tag: tagAdmin,
			summary: "List principals", doc: "Lists the principals of the caller's tenant.",
			roles: admins, status: http.StatusOK, out: typeOf[gatehouse.Page[*gatehouse.Principal]](), query: paging(),
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				return answer(s.cfg.Admin.ListPrincipals(ctx, c.query["cursor"], c.query.limit()))
			}),
		}, {
			method: "GET", path: "/principals/{id}", name: "getPrincipal", tag: tagAdmin,
			summary: "Read a principal", doc: "{id} is its id or its name.",
			roles: admins, object: ObjectPrincipal, status: http.StatusOK, out: typeOf[gatehouse.Principal](),
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				return answer(s.cfg.Admin.FindPrincipal(ctx, c.id))
			}),
		}, {
			method: "PATCH", path: "/principals/{id}", name: "updatePrincipal", tag: tagAdmin,
			summary: "Change roles or sponsor, disable or enable", doc: "Omitted members do not change.",
			roles: admins, changesRights: true, object: ObjectPrincipal, status: http.StatusOK,
			out:     typeOf[gatehouse.Principal](),
			example: `{"disabled":true}`,
			handler: body(nil, func(ctx context.Context, c *call, in *gatehouse.PrincipalChange) (reply, error) {
				return answer(s.cfg.Admin.UpdatePrincipal(ctx, c.id, *in))
			}),
		}, {
			method: "POST", path: "/principals/{id}/keys", name: "createKey", tag: tagAdmin,
			summary: "Make another API key", doc: "The key is shown in this answer only.",
			roles: admins, changesRights: true, object: ObjectPrincipal, status: http.StatusCreated,
			out: typeOf[gatehouse.Credentials](), idempotent: true, secret: true,
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				return answer(s.cfg.Admin.CreateKey(ctx, c.id))
			}),
		}, {
			method: "GET", path: "/principals/{id}/keys", name: "listKeys", tag: tagAdmin,
			summary: "List a principal's keys", doc: "Lists the keys without their secrets, which are not stored.",
			roles: admins, object: ObjectPrincipal, status: http.StatusOK, out: typeOf[gatehouse.Page[*gatehouse.Key]](),
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				return list(s.cfg.Admin.ListKeys(ctx, c.id))
			}),
		}, {
			method: "POST", path: "/keys/{id}/revoke", name: "revokeKey", tag: tagAdmin,
			summary: "End an API key", doc: "The key stops working at once, permanently.",
			roles: admins, changesRights: true, object: ObjectKey, status: http.StatusOK, out: typeOf[revoked](),
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				return reply{value: revoked{c.id, true}}, s.cfg.Admin.RevokeKey(ctx, c.id)
			}),
		}, {
			method: "POST", path: "/principals/{id}/edit-token", name: "rotateEditToken", tag: tagAdmin,
			summary: "Make a new edit token", doc: "The old token ends. The new one is shown in this answer only.",
			roles: admins, changesRights: true, object: ObjectPrincipal, status: http.StatusCreated,
			out: typeOf[gatehouse.Credentials](), idempotent: true, secret: true,
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				return answer(s.cfg.Admin.RotateEditToken(ctx, c.id))
			}),
		}, {
			method: "POST", path: "/tenants", name: "createTenant", tag: tagAdmin,
			summary: "Create a tenant", doc: "Only for administrators of the tenant default.",
			roles: admins, changesRights: true, status: http.StatusCreated, out: typeOf[gatehouse.Tenant](), idempotent: true,
			codes:   []gatehouse.Code{gatehouse.CodeAlreadyExists},
			example: `{"id":"acme"}`,
			handler: body(checkTenant, func(ctx context.Context, _ *call, in *newTenant) (reply, error) {
				return answer(s.cfg.Admin.CreateTenant(ctx, in.ID))
			}),
		}, {
			method: "GET", path: "/tenants", name: "listTenants", tag: tagAdmin,
			summary: "List tenants", doc: "Only for administrators of the tenant default.",
			roles: admins, status: http.StatusOK, out: typeOf[gatehouse.Page[*gatehouse.Tenant]](),
			handler: noBody(func(ctx context.Context, _ *call) (reply, error) {
				return list(s.cfg.Admin.ListTenants(ctx))
			}),
		},
	}
}
