package telemetry

import "github.com/prometheus/client_golang/prometheus"

// RegisterFeed exposes how many entries this process's feed has published, and
// how many the logs have that the stream had not when it last looked.
func RegisterFeed(r prometheus.Registerer, published func() uint64, behind func() int64) {
	r.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "gatehouse_feed_published_total", Help: "Entries of the audit log that this process has published.",
		}, func() float64 { return float64(published()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "gatehouse_feed_behind", Help: "Entries of the audit log that the stream had not when this process last looked.",
		}, func() float64 { return float64(behind()) }),
	)
}
