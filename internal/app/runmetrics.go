package app

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// RunMetrics is told of what was committed.
type RunMetrics interface {
	// StepEnded: what a step, or an attempt that is made again, came to.
	StepEnded(outcome gatehouse.StepStatus)
	// StepLeased: how long a step was ready before a worker had it.
	StepLeased(waited time.Duration)
	// ModelUsed: what a model call used, and cost.
	ModelUsed(u *gatehouse.ModelUsage)
}

// SetMetrics sets who is told. Call it before serving.
func (r *Runs) SetMetrics(m RunMetrics) { r.metrics = m }

// leased hints at steps that were just leased, of which the log has no entry, and
// tells how long they had been ready. However many they are, and however often,
// each tenant is one hint, and those are carried together.
func (r *Runs) leased(steps []*gatehouse.Step) {
	told := ""
	for _, s := range steps {
		if s.Tenant != told {
			told = s.Tenant
			r.gate.hints.Notify(TopicLog(told))
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

// count tells what one transaction came to.
func (r *Runs) count(m *moving) {
	if r.metrics == nil {
		return
	}
	for range m.passed {
		r.metrics.StepLeased(0)
	}
	for _, outcome := range m.outcomes {
		r.metrics.StepEnded(outcome)
	}
	for i := range m.used {
		r.metrics.ModelUsed(&m.used[i])
	}
}
