package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Targets shows which targets answered when they were last probed.
type Targets struct{ up *prometheus.GaugeVec }

// NewTargets creates and registers the metric.
func NewTargets(r prometheus.Registerer) *Targets {
	t := &Targets{up: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "gatehouse_target_up",
		Help: "1 if the connector's target answered and matched the configuration at the last probe, else 0.",
	}, []string{"connector"})}
	r.MustRegister(t.up)
	return t
}

// Probed records the result of a probe.
func (t *Targets) Probed(connector string, up bool) {
	value := 0.0
	if up {
		value = 1
	}
	t.up.WithLabelValues(connector).Set(value)
}

// Gone removes a connector that is no longer probed.
func (t *Targets) Gone(connector string) { t.up.DeleteLabelValues(connector) }
