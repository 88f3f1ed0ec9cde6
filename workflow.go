package gatehouse

import "time"

// Workflow is one immutable version of a workflow. Runs keep the version that
// they began with.
type Workflow struct {
	ID      string `json:"id"`
	Tenant  string `json:"tenant"`
	Name    string `json:"name"`
	Version int    `json:"version"`
	// Workspace groups workflows of a tenant; claims are fair between them.
	Workspace   string `json:"workspace"`
	Description string `json:"description,omitempty"`
	// Source is the text that was applied; lists leave it out.
	Source string `json:"source,omitempty"`
	// Digest is the SHA-256 of the source.
	Digest    Digest    `json:"digest"`
	CreatedBy string    `json:"created_by"`
	CreatedAt time.Time `json:"created_at"`
}

// MaxWorkflowBytes bounds the source of a workflow.
const MaxWorkflowBytes = 256 << 10

// Schedule says when a workflow's next run by the clock begins.
type Schedule struct {
	Tenant   string
	Workflow string
	Version  int
	NextAt   time.Time
}

// WorkflowSummary is a workflow as lists show it: its newest version, and what
// its runs of the last 30 days came to.
type WorkflowSummary struct {
	*Workflow
	Versions int               `json:"versions"`
	Runs     map[RunStatus]int `json:"runs"`
}

// FailureRate is the share of failed runs among those that have ended; ok is
// false when none has.
func (w *WorkflowSummary) FailureRate() (share float64, ok bool) {
	ended := 0
	for status, n := range w.Runs {
		if status.Final() {
			ended += n
		}
	}
	if ended == 0 {
		return 0, false
	}
	return float64(w.Runs[RunFailed]) / float64(ended), true
}

// WorkflowProblem is one thing that is wrong with a workflow's source.
type WorkflowProblem struct {
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Detail string `json:"detail"`
}
