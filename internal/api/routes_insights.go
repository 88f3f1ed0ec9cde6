package api

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

func (s *Server) insightRoutes() []route {
	service := s.cfg.Insights
	if service == nil {
		return nil
	}
	return []route{{
		method: "GET", path: "/insights", name: "getInsights", tag: tagActions,
		summary: "Summarize the use of the gate",
		doc: "Sums up at most the newest 50,000 proposals: how many were approved, rejected, allowed, denied, expired or " +
			"are pending, and how long people took. " +
			"waiting counts the pending actions that have waited up to 15m, 1h, 4h, 1d, and longer. decisions counts the " +
			"requests for a decision " +
			"over all replicas, from the UTC day of since on; the other parameters do not affect them. A caller who may read " +
			"only its " +
			"own actions gets their sums, and no decisions.",
		roles: readers, status: http.StatusOK, out: typeOf[gatehouse.Insights](),
		query: []param{
			{name: "since", kind: paramTime,
				doc: "Only actions proposed at this time or later; by default, those of the last 7 days."},
			{name: "action_type", max: 128, doc: "Only actions of this type."},
			{name: "proposed_by", max: 128, doc: "Only actions of the principal with this name."},
		},
		handler: noBody(func(ctx context.Context, c *call) (reply, error) {
			f := gatehouse.InsightFilter{ActionType: c.query["action_type"], ProposedBy: c.query["proposed_by"]}
			if since := c.query.time("since"); since != nil {
				f.Since = *since
			}
			return answer(service.Insights(ctx, f))
		}),
	}}
}
