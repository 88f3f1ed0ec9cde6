package api

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

const tagDispatch = "Pushes and dead letters"

func (s *Server) dispatchRoutes() []route {
	return []route{
		{
			method: "GET", path: "/pushes", name: "listPushes", tag: tagDispatch,
			summary: "List pushes", doc: "The work of carrying approved actions out, newest first.",
			roles: readers, status: http.StatusOK, out: typeOf[gatehouse.Page[*gatehouse.Push]](),
			query: paging(param{name: "status", kind: paramEnum, enum: words(gatehouse.PushStatuses()), doc: "Only pushes in this state."}),
			handler: plain(func(ctx context.Context, c *call) (reply, error) {
				return answer(s.cfg.Dispatch.ListPushes(ctx, gatehouse.PushFilter{
					Status: gatehouse.PushStatus(c.query["status"]), Limit: c.query.limit(), Cursor: c.query["cursor"],
				}))
			}),
		}, {
			method: "POST", path: "/pushes/drain", name: "drain", tag: tagDispatch,
			summary: "Show what is due, or send it now", doc: "A dry run unless dry_run is false.",
			roles: operators, status: http.StatusOK, out: typeOf[gatehouse.DrainAnswer](),
			handler: maybe(body(checkDrain, func(ctx context.Context, _ *call, in *gatehouse.DrainRequest) (reply, error) {
				return answer(s.cfg.Dispatch.Drain(ctx, *in))
			})),
		}, {
			method: "POST", path: "/pushes/{id}/resolve", name: "resolvePush", tag: tagDispatch,
			summary: "Settle an unknown outcome", doc: "An operator's word on what happened at the target, with the reason; only from unknown.",
			roles: operators, thing: ThingPush, status: http.StatusOK, out: typeOf[gatehouse.Push](), idempotent: true,
			codes: []gatehouse.Code{gatehouse.CodeNotUnknown},
			handler: body(checkResolution, func(ctx context.Context, c *call, in *gatehouse.Resolution) (reply, error) {
				return answer(s.cfg.Dispatch.ResolvePush(ctx, c.id, *in))
			}),
		}, {
			method: "GET", path: "/dead-letters", name: "listDeadLetters", tag: tagDispatch,
			summary: "List dead letters", doc: "Pushes that ran out of retries or met a terminal error, with advice. A dead letter's id is its push's.",
			roles: readers, status: http.StatusOK, out: typeOf[gatehouse.Page[*gatehouse.DeadLetter]](), query: paging(),
			handler: plain(func(ctx context.Context, c *call) (reply, error) {
				return answer(s.cfg.Dispatch.ListDeadLetters(ctx, c.query["cursor"], c.query.limit()))
			}),
		}, {
			method: "POST", path: "/dead-letters/replay", name: "replayDeadLetters", tag: tagDispatch,
			summary: "Put dead letters back in the queue",
			doc:     "Either ids or all. Under the same idempotency key, after every check again; what is applied already is skipped as already_applied.",
			roles:   admins, status: http.StatusOK, out: typeOf[gatehouse.ReplayAnswer](), idempotent: true,
			handler: body(checkReplay, func(ctx context.Context, _ *call, in *gatehouse.ReplayRequest) (reply, error) {
				return answer(s.cfg.Dispatch.ReplayDeadLetters(ctx, *in))
			}),
		},
	}
}
