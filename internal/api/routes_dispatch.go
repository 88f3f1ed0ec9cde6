package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

const tagDispatch = "Pushes and dead letters"

func (s *Server) dispatchRoutes() []route {
	return []route{
		{
			method: "GET", path: "/pushes", name: "listPushes", tag: tagDispatch,
			summary: "List pushes", doc: "Lists the pushes of approved actions, the newest first.",
			roles: readers, status: http.StatusOK, out: typeOf[gatehouse.Page[*gatehouse.Push]](),
			query: paging(
				param{name: "status", kind: paramEnum, enum: words(gatehouse.PushStatuses()), doc: "Only pushes in this state."}),
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				return answer(s.cfg.Dispatch.ListPushes(ctx, gatehouse.PushFilter{
					Status: gatehouse.PushStatus(c.query["status"]), Limit: c.query.limit(), Cursor: c.query["cursor"],
				}))
			}),
		}, {
			method: "GET", path: "/connectors", name: "listBreakers", tag: tagDispatch,
			summary: "List connectors with their breakers",
			doc: "Shows whether calls of a connector are suspended because too many in a row have failed: the breakers " +
				"of this replica, and the pushes that wait for those of others.",
			roles: readers, status: http.StatusOK, out: typeOf[gatehouse.Page[gatehouse.BreakerState]](),
			handler: noBody(func(ctx context.Context, _ *call) (reply, error) {
				states, err := s.cfg.Dispatch.ListBreakers(ctx)
				return answer(gatehouse.Page[gatehouse.BreakerState]{Items: states}, err)
			}),
		}, {
			method: "GET", path: "/pushes/health", name: "dispatchHealth", tag: tagDispatch,
			summary: "Show the health of connectors and queue",
			doc: "Each connector has its breaker, the pushes that wait, the outcomes of the last hour, and the last success " +
				"and error of the last 24 hours. The queue has its depth and the age of its oldest push at 48 points of these " +
				"hours.",
			roles: readers, status: http.StatusOK, out: typeOf[gatehouse.DispatchHealth](),
			handler: noBody(func(ctx context.Context, _ *call) (reply, error) {
				return answer(s.cfg.Dispatch.DispatchHealth(ctx))
			}),
		}, {
			method: "POST", path: "/pushes/drain", name: "drain", tag: tagDispatch,
			summary: "Show due pushes, or send them now", doc: "A dry run unless dry_run is false.",
			roles: operators, status: http.StatusOK, out: typeOf[gatehouse.DrainAnswer](),
			handler: maybe(body((*gatehouse.DrainRequest).Validate, func(
				ctx context.Context, _ *call, in *gatehouse.DrainRequest,
			) (reply, error) {
				return answer(s.cfg.Dispatch.Drain(ctx, *in))
			})),
		}, {
			method: "POST", path: "/pushes/{id}/resolve", name: "resolvePush", tag: tagDispatch,
			summary: "Settle an unknown outcome", doc: "An operator's statement about what happened at the target, with the " +
				"reason. The outcome must be unknown.",
			roles: operators, object: ObjectPush, status: http.StatusOK, out: typeOf[gatehouse.Push](), idempotent: true,
			codes:   []gatehouse.Code{gatehouse.CodeNotUnknown},
			example: `{"outcome":"applied","reason":"seen"}`,
			handler: body((*gatehouse.Resolution).Validate,
				func(ctx context.Context, c *call, in *gatehouse.Resolution) (reply, error) {
					return answer(s.cfg.Dispatch.ResolvePush(ctx, c.id, *in))
				}),
		}, {
			method: "GET", path: "/dead-letters", name: "listDeadLetters", tag: tagDispatch,
			summary: "List dead letters",
			doc: "Every push that needs a person: failed and not discarded, or with an unknown outcome. Each has the " +
				"target's answer, and whether a replay is safe, with the reason. A dead letter's id is that of its push.",
			roles: readers, status: http.StatusOK, out: typeOf[gatehouse.Page[*gatehouse.DeadLetter]](),
			query: paging(append(deadLetterParams(),
				param{name: "group", max: 64, doc: "Only dead letters of the group with this key."})...),
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				f := deadLetterFilter(c)
				f.Group, f.Limit, f.Cursor = c.query["group"], c.query.limit(), c.query["cursor"]
				page, err := s.cfg.Dispatch.ListDeadLetters(ctx, f)
				if err == nil && len(page.Items) == 0 && f.Cursor == "" {
					err = s.knownConnector(ctx, pointerTo("connector"), f.Connector)
				}
				return answer(page, err)
			}),
		}, {
			method: "GET", path: "/dead-letters/groups", name: "groupDeadLetters", tag: tagDispatch,
			summary: "Group dead letters by error",
			doc: "A group has one connector, code and status, and the same error text of the target; tokens with a digit, " +
				"such as ids, are not compared. The largest group comes first. Counts at most the newest 5,000 dead letters. The " +
				"key of " +
				"a group selects its dead letters in the list, and in the filter of replay, discard and resolve.",
			roles: readers, status: http.StatusOK, out: typeOf[gatehouse.DeadLetterGroups](),
			query: deadLetterParams(),
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				f := deadLetterFilter(c)
				groups, err := s.cfg.Dispatch.GroupDeadLetters(ctx, f)
				if err == nil && len(groups.Items) == 0 {
					err = s.knownConnector(ctx, pointerTo("connector"), f.Connector)
				}
				return answer(groups, err)
			}),
		}, {
			method: "POST", path: "/dead-letters/replay", name: "replayDeadLetters", tag: tagDispatch,
			summary: "Put dead letters back in the queue",
			doc: "Takes ids, a filter or all. The idempotency key stays the same, and every check is repeated. Applied " +
				"pushes are skipped as already_applied, and pushes that a second call could apply twice as resolve_first.",
			roles: admins, status: http.StatusOK, out: typeOf[gatehouse.ReplayAnswer](), idempotent: true,
			codes:   []gatehouse.Code{gatehouse.CodeTooLate},
			example: `{"all":true}`,
			handler: body((*gatehouse.ReplayRequest).Validate,
				func(ctx context.Context, _ *call, in *gatehouse.ReplayRequest) (reply, error) {
					out, err := s.cfg.Dispatch.ReplayDeadLetters(ctx, *in)
					if err == nil && len(out.Results) == 0 {
						err = s.knownFilter(ctx, in.Filter)
					}
					return answer(out, err)
				}),
		}, {
			method: "POST", path: "/dead-letters/discard", name: "discardDeadLetters", tag: tagDispatch,
			summary: "Close failed dead letters permanently",
			doc: "Takes ids or a filter, and the reason. The dead letters stay failed, and can never be replayed; one " +
				"with an unknown outcome is skipped as resolve_first.",
			roles: operators, status: http.StatusOK, out: typeOf[gatehouse.DeadLetterAnswer](), idempotent: true,
			example: `{"ids":["psh_1"],"reason":"over"}`,
			handler: body((*gatehouse.DiscardRequest).Validate,
				func(ctx context.Context, _ *call, in *gatehouse.DiscardRequest) (reply, error) {
					out, err := s.cfg.Dispatch.DiscardDeadLetters(ctx, *in)
					if err == nil && len(out.Results) == 0 {
						err = s.knownFilter(ctx, in.Filter)
					}
					return answer(out, err)
				}),
		}, {
			method: "POST", path: "/dead-letters/resolve", name: "resolveDeadLetters", tag: tagDispatch,
			summary: "Settle several unknown outcomes",
			doc: "Takes ids or a filter: an operator's statement about what happened at the target, with the reason. " +
				"Other pushes are skipped as not_unknown.",
			roles: operators, status: http.StatusOK, out: typeOf[gatehouse.DeadLetterAnswer](), idempotent: true,
			example: `{"filter":{"connector":"shop"},"outcome":"failed","reason":"seen"}`,
			handler: body((*gatehouse.ResolveRequest).Validate,
				func(ctx context.Context, _ *call, in *gatehouse.ResolveRequest) (reply, error) {
					out, err := s.cfg.Dispatch.ResolveDeadLetters(ctx, *in)
					if err == nil && len(out.Results) == 0 {
						err = s.knownFilter(ctx, in.Filter)
					}
					return answer(out, err)
				}),
		},
	}
}

// deadLetterParams are the parameters that select dead letters.
func deadLetterParams() []param {
	return []param{
		{name: "connector", max: 128, doc: "Only dead letters of this connector."},
		{name: "code", max: 128, doc: "Only dead letters that ended with this code."},
		{
			name: "status", kind: paramEnum, enum: words([]gatehouse.PushStatus{gatehouse.PushFailed, gatehouse.PushUnknown}),
			doc: "Only failed dead letters, or those with an unknown outcome.",
		},
		{name: "since", kind: paramTime, doc: "Only dead letters that ended at this time or later."},
	}
}

func deadLetterFilter(c *call) gatehouse.DeadLetterFilter {
	return gatehouse.DeadLetterFilter{
		Connector: c.query["connector"], Code: c.query["code"], Status: gatehouse.PushStatus(c.query["status"]),
		Since: c.query.time("since"),
	}
}

// knownFilter is knownConnector for the filter of a request, nil for none.
func (s *Server) knownFilter(ctx context.Context, f *gatehouse.DeadLetterFilter) error {
	if f == nil {
		return nil
	}
	return s.knownConnector(ctx, "/filter/connector", f.Connector)
}

// knownConnector returns an error if no connector has the name. It is for empty answers only, because a former
// connector can still have dead letters.
func (s *Server) knownConnector(ctx context.Context, pointer, name string) error {
	// The gate's own connectors have no breakers.
	if name == "" || gate.OwnConnector(name) {
		return nil
	}
	states, err := s.cfg.Dispatch.ListBreakers(ctx)
	if err != nil || slices.ContainsFunc(states, func(b gatehouse.BreakerState) bool { return b.Connector == name }) {
		return err
	}
	return unknownName(pointer, "connector", name)
}
