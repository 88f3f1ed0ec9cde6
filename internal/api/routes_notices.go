package api

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

// noticeIDs lists the notices to dismiss.
type noticeIDs struct {
	IDs []string `json:"ids"`
}

// dismissed counts the notices that the request dismissed, without those that were dismissed before.
type dismissed struct {
	Dismissed int `json:"dismissed"`
}

func (s *Server) noticeRoutes() []route {
	n := s.cfg.Notices
	if n == nil {
		return nil
	}
	return []route{
		{
			method: "GET", path: "/notices", name: "listNotices", tag: tagAdmin,
			summary: "List changes to rights and rules",
			doc: "Changes of rights, credentials and rules since the caller was created, such as those of principals, keys, " +
				"secrets, grants, policies and connectors. Each notice names the actor, the subject and the time. The newest " +
				"comes first; dismissed notices are left out.",
			roles: admins, status: http.StatusOK, out: typeOf[gatehouse.Page[*gatehouse.Notice]](),
			query: paging(
				param{name: "state", kind: paramEnum, enum: []string{"open", "all"},
					doc: "all: also notices that the caller has dismissed."}),
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				return answer(
					n.ListNotices(ctx,
						gatehouse.NoticeFilter{All: c.query["state"] == "all", Cursor: c.query["cursor"], Limit: c.query.limit()}))
			}),
		}, {
			method: "POST", path: "/notices/dismiss", name: "dismissNotices", tag: tagAdmin,
			summary: "Hide notices from oneself",
			doc:     "1 to 200 ids. Every other administrator still sees them, and the audit log keeps the events.",
			roles:   admins, status: http.StatusOK, out: typeOf[dismissed](),
			example: `{"ids":["ntc_1"]}`,
			handler: body(nil, func(ctx context.Context, _ *call, in *noticeIDs) (reply, error) {
				count, err := n.DismissNotices(ctx, in.IDs)
				return reply{value: dismissed{count}}, err
			}),
		},
	}
}
