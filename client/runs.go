package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

var _ gatehouse.RunService = (*Client)(nil)

func workflow(name, more string) string { return "/workflows/" + segment(name) + more }

func run(id, verb string) string { return "/runs/" + segment(id) + verb }

// ApplyWorkflow stores a source as the next version of the named workflow. After a connection
// error, changed can be false although this call has created the version.
func (c *Client) ApplyWorkflow(
	ctx context.Context, name, source string,
) (w *gatehouse.Workflow, changed bool, err error) {
	w = new(gatehouse.Workflow)
	a, err := c.do(ctx, request{method: http.MethodPut, path: workflow(name, ""), yaml: source, out: w, idempotent: true})
	if err != nil {
		return nil, false, err
	}
	return w, a.status == http.StatusCreated, nil
}

// FindWorkflow reads a version with its source; version 0 is the newest.
func (c *Client) FindWorkflow(ctx context.Context, name string, version int) (*gatehouse.Workflow, error) {
	q := url.Values{}
	if version != 0 {
		q.Set("version", strconv.Itoa(version))
	}
	return get[gatehouse.Workflow](ctx, c, workflow(name, ""), q)
}

// ListWorkflows returns a page of workflows, sorted by name.
func (c *Client) ListWorkflows(
	ctx context.Context, cursor string, limit int,
) (gatehouse.Page[*gatehouse.WorkflowSummary], error) {
	return page[*gatehouse.WorkflowSummary](ctx, c, "/workflows", paging(cursor, limit))
}

// ListWorkflowVersions returns all versions, newest first, without their sources.
func (c *Client) ListWorkflowVersions(ctx context.Context, name string) ([]*gatehouse.Workflow, error) {
	return list[*gatehouse.Workflow](ctx, c, workflow(name, "/versions"), nil)
}

// StartRun starts a run of the newest version. existed is true if the server already knows the
// trigger_ref. After a connection error, existed can be false although the run already existed.
func (c *Client) StartRun(
	ctx context.Context, name string, r gatehouse.NewRun,
) (out *gatehouse.Run, existed bool, err error) {
	out, a, err := posted[gatehouse.Run](ctx, c, workflow(name, "/runs"), r)
	return out, err == nil && a.status == http.StatusOK && !a.replayed, err
}

// FindRun reads a run with its steps.
func (c *Client) FindRun(ctx context.Context, id string) (*gatehouse.Run, error) {
	return get[gatehouse.Run](ctx, c, run(id, ""), nil)
}

// ListRuns returns a page of runs, newest first.
func (c *Client) ListRuns(ctx context.Context, f gatehouse.RunFilter) (gatehouse.Page[*gatehouse.Run], error) {
	q := paging(f.Cursor, f.Limit)
	set(q, "status", string(f.Status))
	set(q, "workflow", f.Workflow)
	if !f.Since.IsZero() {
		set(q, "since", f.Since.UTC().Format(time.RFC3339Nano))
	}
	if !f.Until.IsZero() {
		set(q, "until", f.Until.UTC().Format(time.RFC3339Nano))
	}
	if f.InputField != "" {
		set(q, "input", f.InputField+"="+f.InputValue)
	}
	return page[*gatehouse.Run](ctx, c, "/runs", q)
}

// RunQueues returns the queues, the workers and the schedules of runs.
func (c *Client) RunQueues(ctx context.Context) (*gatehouse.RunQueues, error) {
	return get[gatehouse.RunQueues](ctx, c, "/runs/queues", nil)
}

// RunDetail reads everything that is known about a run.
func (c *Client) RunDetail(ctx context.Context, id string) (*gatehouse.RunDetail, error) {
	return get[gatehouse.RunDetail](ctx, c, run(id, "/detail"), nil)
}

// WaitRun waits until the run has ended or changed, with as many long polls as necessary. When the
// time is over, it returns the run's present state, or the last error if the server still does not
// answer.
func (c *Client) WaitRun(ctx context.Context, id string, wait time.Duration) (*gatehouse.Run, error) {
	return c.WatchRun(ctx, id, "", wait)
}

// WatchRun is WaitRun for changes after a position of the run: a change that has already happened
// is returned at once. A caller that passes the position of the previously returned run misses
// nothing. Without a position, a server that stops within the first minute ends the wait early.
func (c *Client) WatchRun(ctx context.Context, id, since string, wait time.Duration) (*gatehouse.Run, error) {
	deadline := time.Now().Add(wait)
	for try := 0; ; try++ {
		start := time.Now()
		poll := pollUntil(start, deadline)
		q := url.Values{}
		if poll > 0 {
			q.Set("wait", poll.String())
			set(q, "since", since)
		}
		r, err := get[gatehouse.Run](ctx, c, run(id, ""), q)
		if err != nil {
			if err := c.retry.outlast(ctx, try, time.Until(deadline), err); err != nil {
				return nil, err
			}
			continue
		}
		// Without a known position, an answer before the end of the poll means that something has changed, or that the
		// server stops.
		changed := since == "" && time.Since(start) < poll || since != "" && r.Position != since
		if changed || r.Status.Final() || !time.Now().Before(deadline) {
			return r, nil
		}
		since = r.Position
		if try, err = c.retry.again(ctx, try, start, poll, deadline); err != nil {
			return nil, err
		}
	}
}

// CancelRun stops a run.
func (c *Client) CancelRun(ctx context.Context, id, reason string) (*gatehouse.Run, error) {
	body := struct {
		Reason string `json:"reason,omitempty"`
	}{reason}
	return post[gatehouse.Run](ctx, c, true, run(id, "/cancel"), body)
}

// RetryRun repeats a failed or canceled run as a new run, with copies of the steps that succeeded.
func (c *Client) RetryRun(ctx context.Context, id string) (*gatehouse.Run, error) {
	return post[gatehouse.Run](ctx, c, true, run(id, "/retry"), nil)
}

// RetryRunFrom repeats an ended run as a new run, which executes a step and the steps that need it again.
func (c *Client) RetryRunFrom(ctx context.Context, id, step string) (*gatehouse.Run, error) {
	body := struct {
		From string `json:"from"`
	}{step}
	return post[gatehouse.Run](ctx, c, true, run(id, "/retry"), body)
}

// SignalRun sends an event to a run.
func (c *Client) SignalRun(ctx context.Context, id, name string, data gatehouse.JSON) (*gatehouse.Signal, error) {
	body := struct {
		Name string         `json:"name"`
		Data gatehouse.JSON `json:"data,omitempty"`
	}{name, data}
	return post[gatehouse.Signal](ctx, c, true, run(id, "/signals"), body)
}

// ListReflexions returns a page of the lessons of finished runs, newest first: of one workflow, or
// of all with "".
func (c *Client) ListReflexions(
	ctx context.Context, workflow, cursor string, limit int,
) (gatehouse.Page[*gatehouse.Reflexion], error) {
	q := paging(cursor, limit)
	set(q, "workflow", workflow)
	return page[*gatehouse.Reflexion](ctx, c, "/reflexions", q)
}

// RunBundle fetches the evidence of a finished run. It fails if the archive does not have the
// SHA-256 that the server stored.
func (c *Client) RunBundle(ctx context.Context, id string) (*gatehouse.Bundle, error) {
	b, err := get[gatehouse.Bundle](ctx, c, run(id, "/evidence"), url.Values{"format": {"manifest"}})
	if err != nil {
		return nil, err
	}
	if _, err := c.do(ctx, request{method: http.MethodGet, path: run(id, "/evidence"), out: &b.Archive}); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(b.Archive)
	if got := hex.EncodeToString(sum[:]); got != b.SHA256 {
		return nil, fmt.Errorf("client: the archive of run %s has the SHA-256 %s, and %s is stored", id, got, b.SHA256)
	}
	return b, nil
}
