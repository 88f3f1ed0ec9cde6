package api

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-dev/gatehouse"
)

type metrics struct {
	requests  *prometheus.HistogramVec
	decisions map[string]map[gatehouse.DecisionResult]prometheus.Counter // by endpoint
}

func newMetrics(reg prometheus.Registerer, routes []route) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gatehouse_http_request_duration_seconds",
			Help: "Duration of API requests; requests with the query parameter wait have their own route label, " +
				"which ends in ?wait.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60},
		}, []string{"route", "method", "status"}),
		decisions: make(map[string]map[gatehouse.DecisionResult]prometheus.Counter),
	}
	decisions := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gatehouse_decisions_total", Help: "Requests for a decision, by endpoint and result.",
	}, []string{"endpoint", "result"})
	for _, rt := range slices.Concat(routes, reviewRoutes) {
		if rt.decides == "" || m.decisions[rt.decides] != nil {
			continue
		}
		m.decisions[rt.decides] = make(map[gatehouse.DecisionResult]prometheus.Counter)
		for _, result := range gatehouse.DecisionResults() {
			m.decisions[rt.decides][result] = decisions.WithLabelValues(rt.decides, string(result))
		}
	}
	if reg == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.requests, decisions} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("api: register metrics: %w", err)
		}
	}
	return m, nil
}

// observer returns a function that records the requests of one route. Statuses
// are 2xx or from the code table, so the labels are bounded.
func (m *metrics) observer(rt *route) func(*http.Request, int, time.Duration) {
	type observers [600]atomic.Pointer[prometheus.Observer]
	// Allocated on a route's first request: for all routes together they take a
	// megabyte.
	byStatus := sync.OnceValue(func() *observers { return new(observers) })
	waits := sync.OnceValue(func() *observers { return new(observers) })
	return func(r *http.Request, status int, took time.Duration) {
		of, route := byStatus, rt.path
		if r.URL.RawQuery != "" && r.URL.Query().Get("wait") != "" {
			of, route = waits, rt.path+"?wait"
		}
		slots := of()
		if status < 100 || status >= len(slots) {
			status = http.StatusInternalServerError
		}
		slot := &slots[status]
		o := slot.Load()
		if o == nil {
			made := m.requests.WithLabelValues(route, rt.method, strconv.Itoa(status))
			o = &made
			slot.Store(o)
		}
		(*o).Observe(took.Seconds())
	}
}

// decided counts the result of a decision at an endpoint, "" for none. The value of an edit with approve is its
// revision.
func (m *metrics) decided(endpoint string, value any, err error) {
	if endpoint == "" {
		return
	}
	count := m.decisions[endpoint]
	if err != nil {
		count[gatehouse.FailedResult(err)].Inc()
		return
	}
	switch a := value.(type) {
	case *gatehouse.Action:
		count[gatehouse.EditResult(a, nil)].Inc()
	case *gatehouse.Answer:
		count[gatehouse.DecisionResultOf(a.Code, a.Replayed)].Inc()
	case *gatehouse.ShortAnswer:
		count[gatehouse.DecisionResultOf(a.Status, a.Replayed)].Inc()
	case *gatehouse.BulkAnswer:
		for i := range a.Results {
			count[a.Results[i].Outcome()].Inc()
		}
	}
}
