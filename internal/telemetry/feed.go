package telemetry

import "github.com/prometheus/client_golang/prometheus"

// RegisterFeed exposes the number of entries that this process has published,
// and the number of log entries that the stream lacked when the feed last
// looked.
func RegisterFeed(r prometheus.Registerer, published func() uint64, behind func() int64) {
	r.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "gatehouse_feed_published_total", Help: "Published entries of the audit log.",
		}, func() float64 { return float64(published()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "gatehouse_feed_behind",
			Help: "Entries of the audit log missing from the stream, at the last check.",
		}, func() float64 { return float64(behind()) }),
	)
}
