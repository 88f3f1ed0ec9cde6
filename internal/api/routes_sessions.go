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
			summary: "List sessions",
			doc: "Signed-in browsers, the newest first: the caller's own, or, for an administrator, another principal's " +
				"or everybody's.",
			status: http.StatusOK, out: typeOf[gatehouse.Page[*gatehouse.Session]](),
			codes: []gatehouse.Code{gatehouse.CodeRoleRequired, gatehouse.CodeNotFound},
			query: paging(
				param{name: "principal", max: 128, doc: "The principal, by name or id."},
				param{name: "of", kind: paramEnum, enum: []string{"own", "all"}, doc: "all: the sessions of everybody in the " +
					"tenant."},
				param{name: "state", kind: paramEnum, enum: []string{"live", "any"}, doc: "any: also ended sessions."},
			),
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				return answer(s.cfg.Sessions.ListSessions(ctx, gatehouse.SessionFilter{
					Principal: c.query["principal"], All: c.query["of"] == "all", Ended: c.query["state"] == "any",
					Cursor: c.query["cursor"], Limit: c.query.limit(),
				}))
			}),
		}, {
			method: "POST", path: "/sessions/{id}/revoke", name: "revokeSession", tag: tagAdmin,
			summary: "End a session", doc: "It takes effect at the session's next request. For the caller's own session or, " +
				"for an administrator, anybody's. The server also forgets the session's browser, even if the session " +
				"has expired. It does not change a session that was revoked before.",
			object: ObjectSession, status: http.StatusOK, out: typeOf[gatehouse.Session](),
			codes: []gatehouse.Code{gatehouse.CodeRoleRequired},
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				return answer(s.cfg.Sessions.RevokeSession(ctx, c.id))
			}),
		}, {
			method: "POST", path: "/principals/{id}/setup-link", name: "createSetupLink", tag: tagAdmin,
			summary: "Make a person's set-up link",
			doc: "It signs the person in to the console, once, within 30 minutes. Earlier unused links stop working. " +
				"Shown in this answer only.",
			roles: admins, changesRights: true, object: ObjectPrincipal, status: http.StatusCreated,
			out: typeOf[gatehouse.NewSetupLink](), idempotent: true, secret: true,
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				return answer(s.cfg.Sessions.CreateSetupLink(ctx, c.id))
			}),
		},
	}
}
