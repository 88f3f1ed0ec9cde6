package client

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

// WorkflowSummary reads the newest version of a workflow with its source, and the results of its
// runs of the last 30 days.
func (c *Client) WorkflowSummary(ctx context.Context, name string) (*gatehouse.WorkflowSummary, error) {
	return get[gatehouse.WorkflowSummary](ctx, c, workflow(name, ""), nil)
}

// RunReflexion reads the lessons of a finished run. If the run has not ended, the error has the
// code not_found.
func (c *Client) RunReflexion(ctx context.Context, id string) (*gatehouse.Reflexion, error) {
	return get[gatehouse.Reflexion](ctx, c, run(id, "/reflexion"), nil)
}
