package api

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-dev/gatehouse"
)

// The results of gatehouse_decisions_total. A client's bug shows as a shift
// between replayed and conflict.
const (
	resultWon      = "won"      // this call decided
	resultVoted    = "voted"    // counted, quorum not met
	resultReplayed = "replayed" // stood already, the same way
	resultConflict = "conflict" // stood already, another way or by another
	resultRefused  = "refused"  // any other refusal
)

var decisionResults = []string{resultWon, resultVoted, resultReplayed, resultConflict, resultRefused}

type metrics struct {
	requests  *prometheus.HistogramVec
	decisions map[string]map[string]prometheus.Counter // endpoint, result
}

func newMetrics(reg prometheus.Registerer, routes []route) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gatehouse_http_request_duration_seconds", Help: "Duration of API requests; long polls stand apart, as route …?wait.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60},
		}, []string{"route", "method", "status"}),
		decisions: make(map[string]map[string]prometheus.Counter),
	}
	decisions := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gatehouse_decisions_total", Help: "Decisions asked for, by endpoint and by what they came to.",
	}, []string{"endpoint", "result"})
	for _, rt := range routes {
		if rt.decides == "" {
			continue
		}
		m.decisions[rt.decides] = make(map[string]prometheus.Counter)
		for _, result := range decisionResults {
			m.decisions[rt.decides][result] = decisions.WithLabelValues(rt.decides, result)
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

// observer returns what records the requests of one route. Statuses are those
// of the code table and 2xx, so the labels are bounded.
func (m *metrics) observer(rt *route) func(*http.Request, int, time.Duration) {
	type observers [600]atomic.Pointer[prometheus.Observer]
	// Made when a route is first asked: of all routes together they are a megabyte.
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

// decided counts what a decision came to.
func (m *metrics) decided(rt *route, value any, err error) {
	if rt.decides == "" {
		return
	}
	count := m.decisions[rt.decides]
	if err != nil {
		var replay *gatehouse.Replay
		switch code := gatehouse.CodeOf(err); {
		case errors.As(err, &replay):
			count[resultReplayed].Inc()
		case code == gatehouse.CodeAlreadyDecided, code == gatehouse.CodeNotAwaitingApproval, code == gatehouse.CodeAlreadyVoted:
			count[resultConflict].Inc()
		default:
			count[resultRefused].Inc()
		}
		return
	}
	switch a := value.(type) {
	case *gatehouse.Answer:
		count[resultOf(a.Code, a.Replayed)].Inc()
	case *gatehouse.ShortAnswer:
		count[resultOf(a.Status, a.Replayed)].Inc()
	case *gatehouse.BulkAnswer:
		for i := range a.Results {
			count[bulkResult(&a.Results[i])].Inc()
		}
	}
}

func resultOf(code string, replayed bool) string {
	switch {
	case replayed, code == gatehouse.AlreadyApproved, code == gatehouse.AlreadyRejected:
		return resultReplayed
	case code == gatehouse.VoteRecorded:
		return resultVoted
	}
	return resultWon
}

func bulkResult(r *gatehouse.BulkResult) string {
	switch gatehouse.Code(r.Skipped) {
	case "":
		return resultOf(r.Result, false)
	case gatehouse.CodeAlreadyDecided, gatehouse.CodeNotAwaitingApproval, gatehouse.CodeAlreadyVoted:
		return resultConflict
	}
	return resultRefused
}
