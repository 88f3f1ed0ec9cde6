package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-dev/gatehouse"
)

// RegisterConnectors exposes two versions of the connectors in the store: the one that
// this process runs, and the newest one. state returns nil when the store has none.
func RegisterConnectors(r prometheus.Registerer, state func() *gatehouse.ConnectorState) {
	gauge := func(name, help string, value func(*gatehouse.ConnectorState) int) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			if s := state(); s != nil {
				return float64(value(s))
			}
			return 0
		}))
	}
	gauge("gatehouse_connectors_running_version", "The stored version of connectors that this process runs.",
		func(s *gatehouse.ConnectorState) int { return s.Running })
	gauge("gatehouse_connectors_stored_version", "The newest stored version of connectors.",
		func(s *gatehouse.ConnectorState) int { return s.Stored })
}
