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
			doc: "Lists entries in the order of the log, from its beginning or after an entry, without gaps. An agent that " +
				"may read only its own actions gets only the entries about its own actions and runs. leaf holds the canonical " +
				"bytes that are hashed.",
			roles: auditors, status: http.StatusOK, out: typeOf[gatehouse.Page[*gatehouse.Entry]](),
			query: []param{
				{name: "after", kind: paramInteger, min: 0, max: math.MaxInt64 - 1,
					doc: "The index of the last entry that was read; the beginning by default."},
				limitParam,
				{name: "cursor", kind: paramInteger, min: 0, max: math.MaxInt64 - 1,
					doc: "next_cursor of the previous page; the same as after."},
			},
			handler: noBody(s.listEntries),
		}, {
			method: "GET", path: "/audit/head", name: "getLogHead", tag: tagAudit,
			summary: "Read the size and the root hash of the log", doc: "The tree head of RFC 6962.",
			roles: auditors, status: http.StatusOK, out: typeOf[gatehouse.LogHead](),
			handler: noBody(func(ctx context.Context, _ *call) (reply, error) {
				return answer(s.cfg.Audit.Head(ctx))
			}),
		}, {
			method: "GET", path: "/audit/checkpoint", name: "getCheckpoint", tag: tagAudit,
			summary: "Read the signed head of the log",
			doc: "Size and root hash as a signed note, in the format of C2SP tlog-checkpoint. Verify it with a key of " +
				"/audit/keys that you have from earlier.",
			roles: auditors, status: http.StatusOK, media: mediaText,
			codes:   []gatehouse.Code{gatehouse.CodeUnsupported},
			handler: noBody(s.getCheckpoint),
		}, {
			method: "GET", path: "/audit/keys", name: "getLogKeys", tag: tagAudit,
			summary: "Read the public keys of the log",
			doc: "The first one signs checkpoints; the others are of earlier master keys. Without a master key there are " +
				"none. Keep them where nobody who runs Gatehouse can change them.",
			roles: auditors, status: http.StatusOK, out: typeOf[gatehouse.LogKeys](),
			handler: noBody(func(ctx context.Context, _ *call) (reply, error) {
				return answer(s.cfg.Audit.LogKeys(ctx))
			}),
		}, {
			method: "GET", path: "/audit/proof", name: "getEntryProof", tag: tagAudit,
			summary: "Prove that the log has an entry",
			doc:     "The inclusion proof of RFC 6962, section 2.1.1.",
			roles:   auditors, status: http.StatusOK, out: typeOf[gatehouse.EntryProof](),
			query: []param{
				{name: "entry", kind: paramInteger, min: 0, max: math.MaxInt64 - 1, doc: "The index of the entry; required."},
				{name: "size", kind: paramInteger, min: 1, max: math.MaxInt64 - 1,
					doc: "The size of the log, such as that of a checkpoint; the present size by default."},
			},
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				return answer(s.cfg.Audit.ProveEntry(ctx, c.query.integer("entry", -1), c.query.integer("size", 0)))
			}),
		}, {
			method: "GET", path: "/audit/consistency", name: "getGrowthProof", tag: tagAudit,
			summary: "Prove that the log only grew",
			doc:     "The consistency proof of RFC 6962, section 2.1.2: the log of size to begins with the log of size from.",
			roles:   auditors, status: http.StatusOK, out: typeOf[gatehouse.GrowthProof](),
			query: []param{
				{name: "from", kind: paramInteger, min: 1, max: math.MaxInt64 - 1, doc: "The earlier size; required."},
				{name: "to", kind: paramInteger, min: 1, max: math.MaxInt64 - 1,
					doc: "The later size; the present one by default."},
			},
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				return answer(s.cfg.Audit.ProveGrowth(ctx, c.query.integer("from", 0), c.query.integer("to", 0)))
			}),
		},
	}
}

const mediaText = "text/plain"

var headerText = []string{mediaText + "; charset=utf-8"}

func (s *Server) getCheckpoint(ctx context.Context, c *call) (reply, error) {
	b, err := s.cfg.Audit.Checkpoint(ctx)
	if err != nil {
		return reply{}, err
	}
	writeBytes(c.w, http.StatusOK, headerText, b)
	return reply{written: true}, nil
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
