package api

import (
	"context"
	"net/http"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

const tagRuns = "Runs"

// steerers may stop and retry a run; signalers may send it an event.
var (
	steerers  = []gatehouse.Role{gatehouse.RoleProposer, gatehouse.RoleOperator}
	signalers = []gatehouse.Role{gatehouse.RoleProposer, gatehouse.RoleOperator, gatehouse.RoleWorker}
)

// cancelRun is the reason for canceling a run.
type cancelRun struct {
	Reason string `json:"reason,omitempty"`
}

// retryRun says from which step to retry a run.
type retryRun struct {
	From string `json:"from,omitempty"`
}

// newSignal is an event for a run.
type newSignal struct {
	Name string         `json:"name"`
	Data gatehouse.JSON `json:"data,omitempty"`
}

// Reading runs needs no role, but a key finds only the runs that its holder may
// read: an agent its own, a principal with only the role worker none.
func (s *Server) runRoutes() []route {
	if s.cfg.Runs == nil {
		return nil
	}
	return []route{
		{
			method: "GET", path: "/runs", name: "listRuns", tag: tagRuns,
			summary: "List runs", doc: "Lists the newest first, without steps, input and output.",
			status: http.StatusOK, out: typeOf[gatehouse.Page[*gatehouse.Run]](),
			query: paging(
				param{name: "status", kind: paramEnum, enum: words(gatehouse.RunStatuses()), doc: "Only runs in this state."},
				param{name: "workflow", max: 128, doc: "Only runs of this workflow."},
				param{name: "since", kind: paramTime, doc: "Only runs created at this time or later."},
				param{name: "until", kind: paramTime, doc: "Only runs created before this time."},
				param{name: "input", max: 512, doc: "Only runs whose input has this member, such as customer=ACME. " +
					"A page examines at most 5,000 runs: it may be short, and next_cursor continues."},
			),
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				f := gatehouse.RunFilter{
					Status: gatehouse.RunStatus(c.query["status"]), Workflow: c.query["workflow"], Limit: c.query.limit(),
					Cursor: c.query["cursor"],
				}
				if since := c.query.time("since"); since != nil {
					f.Since = *since
				}
				if until := c.query.time("until"); until != nil {
					f.Until = *until
				}
				if text := c.query["input"]; text != "" {
					var ok bool
					if f.InputField, f.InputValue, ok = gatehouse.ReadInputFilter(text); !ok {
						return reply{}, gatehouse.Violations{{
							Pointer: "/query/input", Detail: "must be a name and a value, such as customer=ACME",
						}}.Err()
					}
				}
				page, err := s.cfg.Runs.ListRuns(ctx, f)
				if err == nil && len(page.Items) == 0 && f.Cursor == "" {
					err = s.checkNames(ctx, c)
				}
				return answer(page, err)
			}),
		}, {
			method: "GET", path: "/runs/queues", name: "getRunQueues", tag: tagRuns,
			summary: "Show the queues, workers and schedules of runs",
			doc: "Lists the tools with ready steps; the workers that hold steps or pushes, with the end of the latest lease " +
				"of each; and the next run of each schedule. A worker that holds none is not listed. An agent that may read " +
				"only its own runs gets role_required.",
			roles: readers, status: http.StatusOK, out: typeOf[gatehouse.RunQueues](),
			handler: noBody(func(ctx context.Context, _ *call) (reply, error) {
				return answer(s.cfg.Runs.RunQueues(ctx))
			}),
		}, {
			method: "GET", path: "/runs/{id}", name: "getRun", tag: tagRuns,
			summary: "Read a run, or wait for a change of it",
			doc: "Returns the run with its steps. With wait, the server answers when the run has ended or changed, or " +
				"after the given time: 200 with its present state. With since, the member position of an earlier answer, the " +
				"server answers at once if the run has changed since: no change between two waits is missed.",
			object: ObjectRun, status: http.StatusOK, out: typeOf[gatehouse.Run](),
			query: []param{
				{name: "wait", kind: paramWait, doc: "How long to wait, such as 30s; at most 60s."},
				{name: "since", max: 64, doc: "The position after which to wait for a change; now by default."},
			},
			handler: noBody(s.getRun),
		}, {
			method: "GET", path: "/runs/{id}/detail", name: "getRunDetail", tag: tagRuns,
			summary: "Read everything about a run",
			doc: "The run with its steps, every attempt, the costs of models, the events sent to it, the actions that it " +
				"proposed, and the steps that each step needs.",
			object: ObjectRun, status: http.StatusOK, out: typeOf[gatehouse.RunDetail](),
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				return answer(s.cfg.Runs.RunDetail(ctx, c.id))
			}),
		}, {
			method: "POST", path: "/runs/{id}/cancel", name: "cancelRun", tag: tagRuns,
			summary: "Cancel a run",
			doc: "No step starts any more, pending work is canceled, workers are asked to stop, and calls that were " +
				"already sent are completed. Repeating the request changes nothing.",
			roles: steerers, object: ObjectRun, status: http.StatusOK, out: typeOf[gatehouse.Run](), idempotent: true,
			codes:   []gatehouse.Code{gatehouse.CodeTooLate},
			example: `{"reason":"no"}`,
			handler: maybe(body(nil, func(ctx context.Context, c *call, in *cancelRun) (reply, error) {
				return answer(s.cfg.Runs.CancelRun(ctx, c.id, in.Reason))
			})),
		}, {
			method: "POST", path: "/runs/{id}/retry", name: "retryRun", tag: tagRuns,
			summary: "Retry a failed or canceled run, or an ended one from a step",
			doc: "Starts a new run of the same version with the same input; a repeated retry returns the run of the first " +
				"one. A proposer may retry only runs that it started. Steps that succeeded are copied with their " +
				"output. With from, the id of a step, that step and all steps that need it are repeated; a change that was " +
				"already made is not made twice.",
			roles: steerers, object: ObjectRun, status: http.StatusCreated, out: typeOf[gatehouse.Run](), idempotent: true,
			codes: []gatehouse.Code{gatehouse.CodeTooLate},
			handler: maybe(body(nil, func(ctx context.Context, c *call, in *retryRun) (reply, error) {
				if in.From != "" {
					return answer(s.cfg.Runs.RetryRunFrom(ctx, c.id, in.From))
				}
				return answer(s.cfg.Runs.RetryRun(ctx, c.id))
			})),
		}, {
			method: "POST", path: "/runs/{id}/signals", name: "signalRun", tag: tagRuns,
			summary: "Send an event to a run", doc: "An event that arrives before its step waits is kept. The `from` of the " +
				"step names the permitted senders; " +
				"without it, an agent may send an event only to a run that it started. Other senders get " +
				"sender_not_allowed, and nothing is stored.",
			roles: signalers, object: ObjectRun, status: http.StatusCreated, out: typeOf[gatehouse.Signal](), idempotent: true,
			codes:   []gatehouse.Code{gatehouse.CodeTooLate, gatehouse.CodeSenderNotAllowed},
			example: `{"name":"closed","data":{"n":1.10}}`,
			handler: body(nil, func(ctx context.Context, c *call, in *newSignal) (reply, error) {
				return answer(s.cfg.Runs.SignalRun(ctx, c.id, in.Name, in.Data))
			}),
		}, {
			method: "GET", path: "/runs/{id}/evidence", name: "getRunEvidence", tag: tagRuns,
			summary: "Fetch the evidence of a run",
			doc: "One ZIP archive with a manifest; ETag and X-Evidence-SHA256 are the SHA-256 of the archive, as 64 " +
				"hexadecimal digits. " +
				"With format=manifest, the manifest and that hash as JSON. Before the run has ended: too_late.",
			object: ObjectRun, status: http.StatusOK, out: typeOf[gatehouse.Bundle](), media: mediaZip,
			codes: []gatehouse.Code{gatehouse.CodeTooLate},
			query: []param{
				{name: "format", kind: paramEnum, enum: []string{"archive", "manifest"}, doc: "archive by default."}},
			handler: noBody(s.getRunEvidence),
		}, {
			method: "GET", path: "/reflexions", name: "listReflexions", tag: tagRuns,
			summary: "List the lessons of finished runs",
			doc:     "What was attempted, what happened, and what to do differently; newest first.",
			status:  http.StatusOK, out: typeOf[gatehouse.Page[*gatehouse.Reflexion]](),
			query: paging(param{name: "workflow", max: 128, doc: "Only those of this workflow."}),
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				return answer(s.cfg.Runs.ListReflexions(ctx, c.query["workflow"], c.query["cursor"], c.query.limit()))
			}),
		},
	}
}

// getRun reads a run. With the parameter wait, it waits for a change.
func (s *Server) getRun(ctx context.Context, c *call) (reply, error) {
	wait := c.query.wait()
	if wait == 0 {
		return answer(s.cfg.Runs.FindRun(ctx, c.id))
	}
	if err := c.wait(wait); err != nil {
		return reply{}, err
	}
	if since := c.query["since"]; since != "" {
		return answer(s.cfg.Runs.WatchRun(ctx, c.id, since, wait))
	}
	return answer(s.cfg.Runs.WaitRun(ctx, c.id, wait))
}

// outlast extends the server's write deadline beyond a wait. A writer without
// deadlines needs none.
func (c *call) outlast(wait time.Duration) {
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(wait + 30*time.Second))
}

// wait calls outlast for a request that waits for an event, and bounds the number of
// such requests per principal.
func (c *call) wait(wait time.Duration) error {
	c.outlast(wait)
	if wait <= 0 || c.over != nil {
		return nil
	}
	over, err := c.answers.wait(c.caller.Principal.ID)
	c.over = over
	return err
}

const mediaZip = "application/zip"

var headerZip = []string{mediaZip}

func (s *Server) getRunEvidence(ctx context.Context, c *call) (reply, error) {
	b, err := s.cfg.Runs.RunBundle(ctx, c.id)
	if err != nil {
		return reply{}, err
	}
	h := c.w.Header()
	h.Set("X-Evidence-SHA256", b.SHA256)
	if c.query["format"] == "manifest" {
		return reply{value: b}, nil
	}
	h.Set("ETag", `"`+b.SHA256+`"`)
	// A run's id has only letters, digits and underscores.
	h.Set("Content-Disposition", `attachment; filename="evidence-`+b.RunID+`.zip"`)
	writeBytes(c.w, http.StatusOK, headerZip, b.Archive)
	return reply{written: true}, nil
}
