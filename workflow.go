package gatehouse

import "time"

// Workflow is one immutable version of a workflow. Runs keep the version that they
// started with.
type Workflow struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
	// Name is the name in the source.
	Name string `json:"name"`
	// Version counts from 1 within the workflow's name.
	Version int `json:"version"`
	// Workspace groups workflows of a tenant; claims are fair between workspaces.
	Workspace string `json:"workspace"`
	// Description is the description in the source, "" for none.
	Description string `json:"description,omitempty"`
	// Source is the text that was applied; lists leave it out.
	Source string `json:"source,omitempty"`
	// Digest is the SHA-256 of the source.
	Digest Digest `json:"digest"`
	// CreatedBy is the name of the principal that applied the version.
	CreatedBy string    `json:"created_by"`
	CreatedAt time.Time `json:"created_at"`
}

// MaxWorkflowBytes bounds the source of a workflow.
const MaxWorkflowBytes = 256 << 10

// Schedule says when a workflow's next scheduled run begins.
type Schedule struct {
	Tenant   string
	Workflow string
	// Version is the version that set the time.
	Version int
	// NextAt is zero for a workflow without a schedule.
	NextAt time.Time
}

// WorkflowSummary is a workflow as lists show it: its newest version, and the
// outcomes of its runs in the last 30 days.
type WorkflowSummary struct {
	*Workflow
	// Versions counts the workflow's versions.
	Versions int `json:"versions"`
	// Runs counts the runs by state.
	Runs map[RunStatus]int `json:"runs"`
}

// FailureRate returns the share of failed runs among the ended ones; ok is false
// when none has ended.
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

// WorkflowProblem is one error in a workflow's source, or one finding of the linter, at a
// line and column that count from 1.
type WorkflowProblem struct {
	Line   int `json:"line"`
	Column int `json:"column"`
	// Detail is a text for the author.
	Detail string `json:"detail"`
}
