package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Archive measures the archiver.
type Archive struct {
	archived prometheus.Counter
	behind   prometheus.Gauge
}

// NewArchive registers the metrics of the archiver.
func NewArchive(r prometheus.Registerer) *Archive {
	a := &Archive{
		archived: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gatehouse_archived_actions_total", Help: "Actions moved into the archive by this process.",
		}),
		behind: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "gatehouse_archive_behind_seconds",
			Help: "Seconds by which the oldest archivable action of the last pass exceeds the retention; 0 for none.",
		}),
	}
	r.MustRegister(a.archived, a.behind)
	return a
}

// Archived adds n archived actions.
func (a *Archive) Archived(n int) { a.archived.Add(float64(n)) }

// Behind sets how far the archiver is behind.
func (a *Archive) Behind(d time.Duration) { a.behind.Set(d.Seconds()) }
