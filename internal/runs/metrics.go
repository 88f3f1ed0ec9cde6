package runs

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// Metrics receives counts of what was committed.
type Metrics interface {
	// StepEnded counts an outcome of a step, or of an attempt that will be retried.
	StepEnded(outcome gatehouse.StepStatus)
	// StepLeased records how long a step was ready before a worker leased it.
	StepLeased(waited time.Duration)
	// ModelUsed records usage and cost of a model call.
	ModelUsed(u *gatehouse.ModelUsage)
}

// SetMetrics sets the receiver of metrics. Call it before serving.
func (r *Runs) SetMetrics(m Metrics) { r.metrics = m }

// announceLeased announces steps that were just leased, because a lease has no log
// entry, and records how long the steps had been ready. It sends one hint per tenant,
// whatever the number of steps.
func (r *Runs) announceLeased(steps []*gatehouse.Step) {
	last := ""
	for _, s := range steps {
		if s.Tenant != last {
			last = s.Tenant
			r.Hints.Notify(usecase.TopicLog(last))
		}
	}
	if r.metrics == nil {
		return
	}
	now := time.Now()
	for _, s := range steps {
		if s.ReadyAt != nil {
			r.metrics.StepLeased(now.Sub(*s.ReadyAt))
		}
	}
}

// count records the outcomes of one transaction.
func (r *Runs) count(m *runTx) {
	if r.metrics == nil {
		return
	}
	for range m.inlineDone {
		r.metrics.StepLeased(0)
	}
	for _, outcome := range m.outcomes {
		r.metrics.StepEnded(outcome)
	}
	for i := range m.used {
		r.metrics.ModelUsed(&m.used[i])
	}
}
