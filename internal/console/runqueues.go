package console

import (
	"net/http"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// runQueues shows the queues, the workers and the schedules of runs.
func (c *Console) runQueues(v *view) error {
	q, err := c.cfg.Runs.RunQueues(v.ctx)
	if err != nil {
		return err
	}
	return v.render(http.StatusOK, "Workers and queues", "/runs", runQueuesView(v, q))
}

// toolWord names a tool; built-in steps have none.
func toolWord(tool string) string {
	if tool == "" {
		return "built-in steps"
	}
	return tool
}

// holds counts the steps and pushes that a worker holds.
func holds(w gatehouse.WorkerState) string {
	var parts []string
	if w.Steps > 0 {
		parts = append(parts, plural(w.Steps, "step", "steps"))
	}
	if w.Pushes > 0 {
		parts = append(parts, plural(w.Pushes, "push", "pushes"))
	}
	return strings.Join(parts, ", ")
}
