// Package telemetry provides the metrics for /metrics, and tracing.
package telemetry

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-dev/gatehouse"
)

// Pushes counts calls and outcomes of pushes; see dispatch.Metrics.
type Pushes struct {
	calls       *prometheus.CounterVec
	settled     *prometheus.CounterVec
	waitSeconds prometheus.Histogram
	callSeconds *prometheus.HistogramVec
}

// NewPushes creates and registers the metrics of the dispatcher. Labels are
// bounded: connectors are configured, outcomes are a fixed set. The named
// connectors start at 0, so that a rate includes the first event.
func NewPushes(r prometheus.Registerer, connectors ...string) *Pushes {
	buckets := prometheus.ExponentialBuckets(0.0005, 2.5, 14)
	p := &Pushes{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_push_calls_total", Help: "Calls to targets whose intent was recorded.",
		}, []string{"connector"}),
		settled: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_push_outcomes_total",
			Help: "Results of claims of pushes: how the push ended, or retry, released, late, rescued or quarantined.",
		}, []string{"connector", "outcome"}),
		waitSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "gatehouse_push_wait_seconds", Help: "Time from when a push was due until its intent was recorded.",
			Buckets: buckets,
		}),
		callSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gatehouse_push_call_seconds", Help: "Time of the calls to targets.", Buckets: buckets,
		}, []string{"connector"}),
	}
	r.MustRegister(p.calls, p.settled, p.waitSeconds, p.callSeconds)
	for _, c := range connectors {
		p.calls.WithLabelValues(c)
		p.callSeconds.WithLabelValues(c)
		for _, outcome := range []gatehouse.PushStatus{gatehouse.PushApplied, gatehouse.PushFailed, gatehouse.PushUnknown} {
			p.settled.WithLabelValues(c, string(outcome))
		}
	}
	return p
}

// PushSent counts a call. waited is the time from the push's due time to the commit of the call's intent.
func (p *Pushes) PushSent(connector string, waited time.Duration) {
	p.calls.WithLabelValues(connector).Inc()
	p.waitSeconds.Observe(waited.Seconds())
}

// PushSettled counts a result of a push, such as applied or retry. took is 0 if
// this process made no call.
func (p *Pushes) PushSettled(connector, outcome string, took time.Duration) {
	p.settled.WithLabelValues(connector, outcome).Inc()
	if took > 0 {
		p.callSeconds.WithLabelValues(connector).Observe(took.Seconds())
	}
}

// clocked is a store with a clock other than this machine's. ClockBehind
// returns how far the last reading of that clock was behind an earlier one; 0
// for a lag that the store tolerates.
type clocked interface{ ClockBehind() time.Duration }

// storeCollector reads the state of the queue from the store at each scrape.
type storeCollector struct {
	store  gatehouse.Store
	pushes *prometheus.Desc
	dead   *prometheus.Desc
	leaves *prometheus.Desc
	behind *prometheus.Desc
}

// scrapeTimeout bounds the reads of one scrape.
const scrapeTimeout = 2 * time.Second

// RegisterQueue exposes the pushes by status, and the audit leaves that wait
// for their number (at most 1000 are counted).
func RegisterQueue(r prometheus.Registerer, s gatehouse.Store) {
	r.MustRegister(&storeCollector{
		store:  s,
		pushes: prometheus.NewDesc("gatehouse_pushes", "Pushes by status.", []string{"status"}, nil),
		dead: prometheus.NewDesc("gatehouse_dead_letters",
			"Pushes that need a person: failed and not discarded, or of an unknown outcome.", []string{"status"}, nil),
		behind: prometheus.NewDesc("gatehouse_clock_behind_seconds",
			"Seconds by which the wall clock is behind the store's clock, which does not advance meanwhile.", nil, nil),
		leaves: prometheus.NewDesc("gatehouse_audit_unnumbered", "Audit leaves that wait for their number, at most 1000.",
			nil, nil),
	})
}

// Describe implements prometheus.Collector.
func (q *storeCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- q.pushes
	ch <- q.dead
	ch <- q.leaves
	ch <- q.behind
}

// Collect implements prometheus.Collector.
func (q *storeCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	var counts map[gatehouse.PushStatus]int
	waiting, dead := 0, 0
	var behind time.Duration
	err := q.store.ViewQueues(ctx, func(all gatehouse.ReadQueues) (err error) {
		behind = max(0, time.Until(all.Now()))
		if own, ok := q.store.(clocked); ok {
			behind = own.ClockBehind()
		}
		if counts, err = all.PushCounts(); err != nil {
			return err
		}
		if dead, err = all.CountAllDeadLetters(); err != nil {
			return err
		}
		leaves, err := all.UnnumberedLeaves(1000)
		waiting = len(leaves)
		return err
	})
	if err != nil {
		ch <- prometheus.NewInvalidMetric(q.pushes, err)
		return
	}
	for _, s := range gatehouse.PushStatuses() {
		ch <- prometheus.MustNewConstMetric(q.pushes, prometheus.GaugeValue, float64(counts[s]), string(s))
	}
	unknown := counts[gatehouse.PushUnknown]
	ch <- prometheus.MustNewConstMetric(q.dead, prometheus.GaugeValue, float64(unknown), string(gatehouse.PushUnknown))
	ch <- prometheus.MustNewConstMetric(q.dead, prometheus.GaugeValue, float64(dead-unknown), string(gatehouse.PushFailed))
	ch <- prometheus.MustNewConstMetric(q.behind, prometheus.GaugeValue, behind.Seconds())
	ch <- prometheus.MustNewConstMetric(q.leaves, prometheus.GaugeValue, float64(waiting))
}

// Audit shows whether the last check of the whole log found a tenant's log
// damaged.
type Audit struct{ damaged *prometheus.GaugeVec }

// NewAudit creates and registers the metric.
func NewAudit(r prometheus.Registerer) *Audit {
	a := &Audit{damaged: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "gatehouse_audit_damaged", Help: "1 if the last check of the whole log found damage.",
	}, []string{"tenant"})}
	r.MustRegister(a.damaged)
	return a
}

// Checked records the outcome of a check.
func (a *Audit) Checked(tenant string, damaged bool) {
	value := 0.0
	if damaged {
		value = 1
	}
	a.damaged.WithLabelValues(tenant).Set(value)
}
