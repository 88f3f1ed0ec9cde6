package telemetry

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-dev/gatehouse"
)

// Runs counts the outcomes of steps and the use of models; see runs.Metrics.
type Runs struct {
	steps       *prometheus.CounterVec
	waitSeconds prometheus.Histogram
	tokens      *prometheus.CounterVec
	cost        *prometheus.CounterVec
}

// NewRuns creates and registers the metrics of runs, and those that are read
// from the store at a scrape. Labels are bounded: outcomes are a fixed set,
// providers are configured.
func NewRuns(r prometheus.Registerer, s gatehouse.Store) *Runs {
	m := &Runs{
		steps: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_steps_total",
			Help: "Ended steps by outcome; failed_retryable is an attempt that is repeated.",
		}, []string{"outcome"}),
		waitSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "gatehouse_step_wait_seconds", Help: "Time from when a step was ready until it was leased.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2.5, 14),
		}),
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_model_tokens_total", Help: "Tokens that models read and wrote for steps.",
		}, []string{"provider", "direction"}),
		cost: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_model_cost_total", Help: "Cost of the model calls of steps.",
		}, []string{"provider", "currency"}),
	}
	r.MustRegister(m.steps, m.waitSeconds, m.tokens, m.cost, newRunCollector(s))
	for _, outcome := range []gatehouse.StepStatus{
		gatehouse.StepSucceeded, gatehouse.StepFailed, gatehouse.StepCanceled, gatehouse.StepRetrying,
	} {
		m.steps.WithLabelValues(string(outcome))
	}
	return m
}

// StepEnded counts the outcome of a step or of an attempt that is retried.
func (m *Runs) StepEnded(outcome gatehouse.StepStatus) {
	m.steps.WithLabelValues(string(outcome)).Inc()
}

// StepLeased records how long a step was ready before it was leased.
func (m *Runs) StepLeased(waited time.Duration) { m.waitSeconds.Observe(max(waited, 0).Seconds()) }

// ModelUsed counts the use of a model call. The cost is a float for graphs and
// not exact.
func (m *Runs) ModelUsed(u *gatehouse.ModelUsage) {
	m.tokens.WithLabelValues(u.Provider, "input").Add(float64(u.InputTokens))
	m.tokens.WithLabelValues(u.Provider, "output").Add(float64(u.OutputTokens))
	if cost, err := strconv.ParseFloat(string(u.Cost), 64); err == nil && cost > 0 {
		m.cost.WithLabelValues(u.Provider, u.Currency).Add(cost)
	}
}

// runCollector counts the open runs at most once a minute, since that walks all of
// them, and the ready steps at each scrape.
type runCollector struct {
	store gatehouse.Store
	runs  *prometheus.Desc
	ready *prometheus.Desc
	lanes *prometheus.Desc

	mu     sync.Mutex
	counts map[gatehouse.RunStatus]int
	until  time.Time
}

const (
	// countsAge is how long the number of open runs is reused.
	countsAge = time.Minute
	// maxReadyLanes bounds the lanes that are counted, maxReady the ready steps
	// of each.
	maxReadyLanes, maxReady = 64, 1000
)

func newRunCollector(s gatehouse.Store) *runCollector {
	return &runCollector{
		store: s,
		runs: prometheus.NewDesc("gatehouse_runs", "Open runs by status, up to a minute old.",
			[]string{"status"}, nil),
		ready: prometheus.NewDesc("gatehouse_steps_ready",
			"Built-in steps that wait for a worker; at most 64 workflows, and at most 1000 steps of each.", nil, nil),
		lanes: prometheus.NewDesc("gatehouse_step_lanes_waiting",
			"Workflows with built-in steps that wait for a worker, counted per tenant; at most 64.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (o *runCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- o.runs
	ch <- o.ready
	ch <- o.lanes
}

// Collect implements prometheus.Collector.
func (o *runCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	o.mu.Lock()
	defer o.mu.Unlock()
	ready, waiting := 0, 0
	err := o.store.ViewQueues(ctx, func(q gatehouse.ReadQueues) error {
		lanes, err := q.DueLanes("", "", gatehouse.Lane{}, maxReadyLanes, maxReady)
		if err != nil {
			return err
		}
		ready, waiting = 0, 0
		for _, l := range lanes {
			ready += l.Ready
			if l.Ready > 0 {
				waiting++
			}
		}
		if now := time.Now(); !now.Before(o.until) {
			o.counts, o.until = nil, now.Add(countsAge) // also when the count takes too long
			counts, err := q.RunCounts()
			if err != nil {
				return err
			}
			o.counts = counts
		}
		return nil
	})
	if err != nil {
		ch <- prometheus.NewInvalidMetric(o.runs, err)
		return
	}
	for _, s := range gatehouse.RunStatuses() {
		if !s.Final() && o.counts != nil {
			ch <- prometheus.MustNewConstMetric(o.runs, prometheus.GaugeValue, float64(o.counts[s]), string(s))
		}
	}
	ch <- prometheus.MustNewConstMetric(o.ready, prometheus.GaugeValue, float64(ready))
	ch <- prometheus.MustNewConstMetric(o.lanes, prometheus.GaugeValue, float64(waiting))
}
