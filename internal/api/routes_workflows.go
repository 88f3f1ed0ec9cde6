package api

import (
	"context"
	"math"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

const tagWorkflows = "Workflows"

func (s *Server) workflowRoutes() []route {
	if s.cfg.Runs == nil {
		return nil
	}
	return []route{
		{
			method: "PUT", path: "/workflows/{id}", name: "applyWorkflow", tag: tagWorkflows,
			summary: "Store a workflow",
			doc: "{id} is its name. The body is the source, YAML or JSON, at most 256 KiB. 201 when it is a new version, 200 " +
				"when it is already the newest version. A source that does not load gets 422 with line and column, and nothing " +
				"changes. ETag is the digest of the source.",
			roles: operators, status: http.StatusCreated, out: typeOf[gatehouse.Workflow](), replays: true,
			codes:   []gatehouse.Code{gatehouse.CodeAlreadyExists},
			example: `{"name": "triage", "steps": []}`,
			handler: textBody(gatehouse.MaxWorkflowBytes, func(ctx context.Context, c *call, source string) (reply, error) {
				w, changed, err := s.cfg.Runs.ApplyWorkflow(ctx, c.id, source)
				out, err := tagged(c, w, err)
				if !changed {
					out.status = http.StatusOK
				}
				return out, err
			}),
		}, {
			method: "GET", path: "/workflows", name: "listWorkflows", tag: tagWorkflows,
			summary: "List workflows",
			doc: "Lists, by name, the newest version of each workflow without its source, with the outcomes of " +
				"its runs of the last 30 days.",
			roles: readers, status: http.StatusOK, out: typeOf[gatehouse.Page[*gatehouse.WorkflowSummary]](), query: paging(),
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				return answer(s.cfg.Runs.ListWorkflows(ctx, c.query["cursor"], c.query.limit()))
			}),
		}, {
			method: "GET", path: "/workflows/{id}", name: "getWorkflow", tag: tagWorkflows,
			summary: "Read a workflow",
			doc: "{id} is its name. Returns the newest version with its source, the number of versions, the outcomes of the " +
				"runs of the last 30 days, and the share of failed ones among those that have ended; null when none has. " +
				"With version, returns that version alone. ETag is the digest of the source.",
			roles: readers, object: ObjectWorkflow, status: http.StatusOK, out: typeOf[workflowView](),
			query: []param{
				{name: "version", kind: paramInteger, min: 1, max: math.MaxInt32, doc: "Which version; the newest by default."}},
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				if version := int(c.query.integer("version", 0)); version != 0 {
					w, err := s.cfg.Runs.FindWorkflow(ctx, c.id, version)
					return tagged(c, w, err)
				}
				w, err := s.cfg.Runs.WorkflowSummary(ctx, c.id)
				if err != nil {
					return reply{}, err
				}
				out, err := tagged(c, w.Workflow, nil)
				out.value = newWorkflowView(w)
				return out, err
			}),
		}, {
			method: "GET", path: "/workflows/{id}/versions", name: "listWorkflowVersions", tag: tagWorkflows,
			summary: "List the versions of a workflow", doc: "{id} is its name. Lists the newest first, without their sources.",
			roles: readers, object: ObjectWorkflow, status: http.StatusOK, out: typeOf[gatehouse.Page[*gatehouse.Workflow]](),
			handler: noBody(func(ctx context.Context, c *call) (reply, error) {
				return list(s.cfg.Runs.ListWorkflowVersions(ctx, c.id))
			}),
		}, {
			method: "POST", path: "/workflows/{id}/runs", name: "startRun", tag: tagWorkflows,
			summary: "Start a run",
			doc: "{id} is the workflow's name; its newest version runs. A known trigger_ref answers 200 with the run that " +
				"has it.",
			roles: proposers, object: ObjectWorkflow, status: http.StatusCreated, replays: true,
			out: typeOf[gatehouse.Run](), idempotent: true,
			example: `{"input":{"n":1},"trigger_ref":"INC1"}`,
			codes:   []gatehouse.Code{gatehouse.CodeDuplicateKey},
			handler: maybe(body(nil, func(ctx context.Context, c *call, in *gatehouse.NewRun) (reply, error) {
				run, replayed, err := s.cfg.Runs.StartRun(ctx, c.id, *in)
				if replayed {
					return reply{status: http.StatusOK, value: run}, err
				}
				return reply{value: run}, err
			})),
		},
	}
}

// runReads are reads of one run, in addition to those of runRoutes.
func (s *Server) runReads() []route {
	if s.cfg.Runs == nil {
		return nil
	}
	return []route{{
		method: "GET", path: "/runs/{id}/reflexion", name: "getRunReflexion", tag: tagRuns,
		summary: "Read the lesson of a run",
		doc: "Returns what was attempted, what happened, and what to do differently. Before the run has ended, the " +
			"answer is not_found.",
		object: ObjectRun, status: http.StatusOK, out: typeOf[gatehouse.Reflexion](),
		handler: noBody(func(ctx context.Context, c *call) (reply, error) {
			return answer(s.cfg.Runs.RunReflexion(ctx, c.id))
		}),
	}}
}

// workflowView is a workflow with the failure rate of its runs.
type workflowView struct {
	*gatehouse.Workflow
	Versions int                         `json:"versions"`
	Runs     map[gatehouse.RunStatus]int `json:"runs"`
	// FailureRate is between 0 and 1; null when no run of the last 30 days has ended.
	FailureRate *float64 `json:"failure_rate"`
}

func newWorkflowView(w *gatehouse.WorkflowSummary) *workflowView {
	out := &workflowView{Workflow: w.Workflow, Versions: w.Versions, Runs: w.Runs}
	if share, ok := w.FailureRate(); ok {
		out.FailureRate = &share
	}
	return out
}

// tagged answers with a workflow, and its digest as the ETag.
func tagged(c *call, w *gatehouse.Workflow, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	c.w.Header().Set("ETag", `"`+string(w.Digest)+`"`)
	return reply{value: w}, nil
}
