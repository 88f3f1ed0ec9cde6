package telemetry

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-dev/gatehouse"
)

// Notifications counts the work of this process's notifier.
type Notifications struct {
	attempts *prometheus.CounterVec
	failing  *prometheus.GaugeVec
}

// NewNotifications creates and registers the metrics of messages to people.
func NewNotifications(r prometheus.Registerer, store gatehouse.Store) *Notifications {
	n := &Notifications{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_notifications_total",
			Help: "Attempts to send a message, by channel and result: accepted, delivered, failed, muted, retry, or bounced " +
				"later.",
		}, []string{"channel", "result"}),
		failing: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "gatehouse_channel_failing", Help: "1 while a channel fails or is off.",
		}, []string{"channel"}),
	}
	r.MustRegister(n.attempts, n.failing, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gatehouse_notifications_open",
		Help: "Messages of all tenants that wait or are being sent; -1 if unknown.",
	}, func() float64 {
		ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
		defer cancel()
		var open int
		err := store.ViewQueues(ctx, func(q gatehouse.ReadQueues) (err error) {
			open, err = q.OpenNotifications()
			return err
		})
		if err != nil {
			return -1
		}
		return float64(open)
	}))
	return n
}

// Notified counts one attempt.
func (n *Notifications) Notified(channel, result string) {
	n.attempts.WithLabelValues(channel, result).Inc()
}

// ChannelFailing records whether a channel is failing.
func (n *Notifications) ChannelFailing(channel string, failing bool) {
	v := 0.0
	if failing {
		v = 1
	}
	n.failing.WithLabelValues(channel).Set(v)
}
