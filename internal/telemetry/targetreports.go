package telemetry

import "github.com/prometheus/client_golang/prometheus"

// TargetReports counts the signed reports of changed targets.
type TargetReports struct{ count *prometheus.CounterVec }

// The results of a report.
const (
	ReportAccepted = "accepted"
	ReportReplayed = "replayed"
	ReportRefused  = "refused"
	ReportFailed   = "failed"
)

// NewTargetReports creates and registers the metric, at 0 for the named sources.
func NewTargetReports(r prometheus.Registerer, sources ...string) *TargetReports {
	t := &TargetReports{count: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gatehouse_target_reports_total",
		Help: "Signed reports of changed targets, by source and result: accepted, replayed, refused or failed.",
	}, []string{"source", "result"})}
	r.MustRegister(t.count)
	for _, s := range sources {
		for _, result := range []string{ReportAccepted, ReportReplayed, ReportRefused, ReportFailed} {
			t.count.WithLabelValues(s, result)
		}
	}
	return t
}

// Received records one report of a known source.
func (t *TargetReports) Received(source, result string) {
	t.count.WithLabelValues(source, result).Inc()
}
