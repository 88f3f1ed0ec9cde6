package api

import (
	"context"
	"net/http"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

func (s *Server) keeperRoutes() []route {
	k := s.cfg.Keeper
	if k == nil {
		return nil
	}
	return []route{
		{
			method: "GET", path: "/archive/preview", name: "previewArchive", tag: tagAudit,
			summary: "Show what would be archived now",
			doc: "Counts the finished actions of the caller's tenant that the archiver could move now. Nothing is changed. " +
				"It reads the whole store, " +
				"for at most 20 seconds: complete is false if it did not finish.",
			roles: admins, status: http.StatusOK, out: typeOf[gatehouse.ArchivePreview](),
			query: []param{{name: "retention", max: 16, doc: "The retention, such as 180d; the server's own by default."}},
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				var retention time.Duration
				if text := c.query["retention"]; text != "" {
					d, err := gatehouse.ParseDuration(text)
					if err != nil {
						return reply{},
							gatehouse.Violations{{Pointer: "/query/retention", Detail: "must be a duration such as 180d"}}.Err()
					}
					retention = d.D()
				}
				c.outlast(gatehouse.PreviewTime)
				return answer(k.PreviewArchive(ctx, retention))
			}),
		}, {
			method: "GET", path: "/doctor/roles", name: "checkRoles", tag: tagAudit,
			summary: "Show work that no process with the needed role has done in time",
			doc: "Lists, over all tenants, by the store's clock: entries of the audit log without a number, due pushes, " +
				"expired approvals that are not closed, and ready steps of runs. With the role worker, also lists, of the " +
				"caller's tenant, the ready steps of each tool that is not built in, and the due pushes of each connector of " +
				"type worker or mcp. Each item has the waiting time of the oldest. Work that is not late is left out.",
			roles: operators, status: http.StatusOK, out: typeOf[gatehouse.RoleCheck](),
			handler: noBody(func(ctx context.Context, _ *call) (reply, error) { return answer(k.CheckRoles(ctx)) }),
		}, {
			method: "POST", path: "/pushes/mark-unknown", name: "markUnknown", tag: tagDispatch,
			summary: "Hold back pushes that a restored backup would send again",
			doc: "Marks the queued and leased pushes that were made before a time as unknown, with the error code " +
				"`restored`, so that none is sent before its outcome is resolved. A dry run unless dry_run is false. Only " +
				"pushes of the caller's tenant are marked; another tenant is not_found.",
			roles: admins, status: http.StatusOK, out: typeOf[gatehouse.MarkUnknownAnswer](),
			example: `{"before":"2026-11-21T08:00:00Z","dry_run":false}`,
			codes:   []gatehouse.Code{gatehouse.CodeNotFound},
			handler: body((*gatehouse.MarkUnknownRequest).Validate,
				func(ctx context.Context, _ *call, in *gatehouse.MarkUnknownRequest) (reply, error) {
					return answer(k.MarkUnknown(ctx, *in))
				}),
		}, {
			method: "POST", path: "/pushes/ask", name: "askTargets", tag: tagDispatch,
			summary: "Ask targets about unknown outcomes",
			doc:     "Settles the unknown pushes whose targets can prove what happened, by read-back. Nothing is sent.",
			roles:   operators, status: http.StatusOK, out: typeOf[gatehouse.AskAnswer](),
			codes: []gatehouse.Code{gatehouse.CodeNotFound},
			handler: maybe(
				body((*gatehouse.AskRequest).Validate, func(ctx context.Context, _ *call, in *gatehouse.AskRequest) (reply, error) {
					return answer(k.AskTargets(ctx, *in))
				})),
		},
	}
}
