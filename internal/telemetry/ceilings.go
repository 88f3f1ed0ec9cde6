package telemetry

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-dev/gatehouse"
)

const (
	// ceilingsAge is how long a reading of the ceilings is reused.
	ceilingsAge = time.Minute
	// maxCeilingTenants bounds the tenants whose ceilings are shown.
	maxCeilingTenants = 100
)

// CeilingSource returns the fullest account of each ceiling, for at most maxTenants
// tenants.
type CeilingSource interface {
	FullestCeilings(ctx context.Context, maxTenants int) (map[string][]*gatehouse.CeilingAccount, error)
}

// ceilings exposes the use of ceilings. It shows only the fullest account of each
// ceiling, and has no label for the scope: proposers can create any number of agents
// and targets, so such a label would be unbounded.
type ceilings struct {
	source      CeilingSource
	used, limit *prometheus.Desc

	mu    sync.Mutex
	last  map[string][]*gatehouse.CeilingAccount
	until time.Time
}

// RegisterCeilings exposes the fullest account of each ceiling.
func RegisterCeilings(r prometheus.Registerer, source CeilingSource) {
	labels := []string{"tenant", "ceiling"}
	r.MustRegister(&ceilings{
		source: source,
		used: prometheus.NewDesc("gatehouse_ceiling_used",
			"The used amount or count of a ceiling's fullest account, up to a minute old.", labels, nil),
		limit: prometheus.NewDesc("gatehouse_ceiling_limit",
			"The limit of a ceiling of the active policy, up to a minute old.", labels, nil),
	})
}

// Describe implements prometheus.Collector.
func (c *ceilings) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.used
	ch <- c.limit
}

// Collect implements prometheus.Collector.
func (c *ceilings) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); !now.Before(c.until) {
		ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
		defer cancel()
		found, err := c.source.FullestCeilings(ctx, maxCeilingTenants)
		if err != nil {
			ch <- prometheus.NewInvalidMetric(c.used, err)
			return
		}
		c.last, c.until = found, now.Add(ceilingsAge)
	}
	for tenant, accounts := range c.last {
		for _, a := range accounts {
			ch <- prometheus.MustNewConstMetric(c.used, prometheus.GaugeValue, number(a.Used), tenant, a.Ceiling)
			ch <- prometheus.MustNewConstMetric(c.limit, prometheus.GaugeValue, number(a.Limit), tenant, a.Ceiling)
		}
	}
}

// number converts a decimal to the inexact float of a metric.
func number(d gatehouse.Decimal) float64 {
	f, _ := strconv.ParseFloat(string(d), 64)
	return f
}
