package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Breakers are the metrics of the connectors' breakers: the state of each, and how often it was opened.
type Breakers struct {
	open   *prometheus.GaugeVec
	opened *prometheus.CounterVec
}

// NewBreakers creates and registers the metrics, at 0 for the named connectors.
func NewBreakers(r prometheus.Registerer, connectors ...string) *Breakers {
	b := &Breakers{
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "gatehouse_breaker_open",
			Help: "1 while the breaker of the connector is open or half-open in this process, else 0.",
		}, []string{"connector"}),
		opened: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_breaker_opened_total",
			Help: "How often the breaker of a connector opened, including after a failed trial call.",
		}, []string{"connector"}),
	}
	r.MustRegister(b.open, b.opened)
	for _, c := range connectors {
		b.open.WithLabelValues(c)
		b.opened.WithLabelValues(c)
	}
	return b
}

// Moved records the new state of a breaker.
func (b *Breakers) Moved(connector, state string) {
	value := 1.0
	if state == "closed" {
		value = 0
	}
	b.open.WithLabelValues(connector).Set(value)
	if state == "open" {
		b.opened.WithLabelValues(connector).Inc()
	}
}

// Gone removes a connector that is not configured any more.
func (b *Breakers) Gone(connector string) {
	b.open.DeleteLabelValues(connector)
	b.opened.DeleteLabelValues(connector)
}
