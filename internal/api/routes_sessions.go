package api

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

func (s *Server) sessionRoutes() []route {
	return []route{
		{
			method: "GET", path: "/sessions", name: "listSessions", tag: tagAdmin,
			summary: "List sessions", doc: "Signed-in browsers, the newest first: the caller's own, or, for an administrator, another principal's or everybody's.",
			status: http.StatusOK, out: typeOf[gatehouse.Page[*gatehouse.Session]](), codes: []gatehouse.Code{gatehouse.CodeRoleRequired, gatehouse.CodeNotFound},
			query: paging(
				param{name: "principal", max: 128, doc: "Name or id."},
				param{name: "of", kind: paramEnum, enum: []string{"own", "all"}, doc: "all: everybody's in the tenant."},
				param{name: "state", kind: paramEnum, enum: []string{"live", "any"}, doc: "any: those that have ended, too."},
			),
			handler: plain(func(ctx context.Context, c *call) (reply, error) {
				return answer(s.cfg.Sessions.ListSessions(ctx, gatehouse.SessionFilter{
					Principal: c.query["principal"], All: c.query["of"] == "all", Ended: c.query["state"] == "any",
					Cursor: c.query["cursor"], Limit: c.query.limit(),
				}))
			}),
		}, {
			method: "POST", path: "/sessions/{id}/revoke", name: "revokeSession", tag: tagAdmin,
			summary: "End a session", doc: "From its next request on: the caller's own, or, for an administrator, anybody's. Of an ended one it changes nothing.",
			object: ObjectSession, status: http.StatusOK, out: typeOf[gatehouse.Session](), codes: []gatehouse.Code{gatehouse.CodeRoleRequired},
			handler: plain(func(ctx context.Context, c *call) (reply, error) {
				return answer(s.cfg.Sessions.RevokeSession(ctx, c.id))
			}),
		}, {
			method: "POST", path: "/principals/{id}/setup-link", name: "createSetupLink", tag: tagAdmin,
			summary: "Make a person's set-up link",
			doc:     "It signs that person in to the console, once, within 30 minutes; earlier ones that were not used end. Shown in this answer only.",
			roles:   admins, changesRights: true, object: ObjectPrincipal, status: http.StatusCreated, out: typeOf[gatehouse.NewSetupLink](), idempotent: true, secret: true,
			handler: plain(func(ctx context.Context, c *call) (reply, error) {
				return answer(s.cfg.Sessions.CreateSetupLink(ctx, c.id))
			}),
		},
	}
}
