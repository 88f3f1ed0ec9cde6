package api

import (
	"context"
	"math"
	"net/http"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
)

const tagAudit = "Audit"

func (s *Server) auditRoutes() []route {
	return []route{
		{
			method: "GET", path: "/audit/entries", name: "listEntries", tag: tagAudit,
			summary: "Read the audit log",
			doc: "In the order of the log, from its beginning or after an entry; no reader ever skips one. leaf holds the " +
				"canonical bytes that are hashed.",
			roles: auditors, status: http.StatusOK, out: typeOf[gatehouse.Page[*gatehouse.Entry]](),
			query: []param{
				{name: "after", kind: paramInteger, min: 0, max: math.MaxInt64 - 1,
					doc: "The index of the last entry that was read; absent: from the beginning."},
				{name: "limit", kind: paramInteger, min: 1, max: gatehouse.MaxLimit, doc: "The maximum number of items; 50 by " +
					"default."},
				{name: "cursor", kind: paramInteger, min: 0, max: math.MaxInt64 - 1,
					doc: "next_cursor of the page before: another name of after."},
			},
			handler: plain(s.listEntries),
		}, {
			method: "GET", path: "/audit/head", name: "getLogHead", tag: tagAudit,
			summary: "Read size and root hash of the log", doc: "The tree head of RFC 6962.",
			roles: auditors, status: http.StatusOK, out: typeOf[gatehouse.LogHead](),
			handler: plain(func(ctx context.Context, _ *call) (reply, error) {
				return answer(s.cfg.Audit.Head(ctx))
			}),
		},
	}
}

func (s *Server) listEntries(ctx context.Context, c *call) (reply, error) {
	after := c.query.integer("cursor", c.query.integer("after", -1))
	limit := c.query.limit()
	entries, err := s.cfg.Audit.ListEntries(ctx, after+1, limit)
	if err != nil {
		return reply{}, err
	}
	page := gatehouse.Page[*gatehouse.Entry]{Items: entries}
	if len(entries) == limit {
		page.NextCursor = strconv.FormatInt(entries[limit-1].Index, 10)
	}
	return reply{value: page}, nil
}
