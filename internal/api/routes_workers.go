package api

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
)

const tagWorkers = "Workers"

// leaseLost is a possible error of every call with a lease.
var leaseLost = []gatehouse.Code{gatehouse.CodeLeaseLost}

// workerNotAllowed is a possible error of every request for work.
var workerNotAllowed = []gatehouse.Code{gatehouse.CodeWorkerNotAllowed}

// workerRoutes let workers lease steps and pushes, and report their outcomes. Leases
// and heartbeats ignore Idempotency-Key: a stored answer could name an old lease, and
// a lease whose answer was lost expires by itself.
func (s *Server) workerRoutes() []route {
	if s.cfg.Workers == nil {
		return nil
	}
	return append(s.stepRoutes(), s.pushLeaseRoutes()...)
}

func (s *Server) stepRoutes() []route {
	return []route{
		{
			method: "POST", path: "/steps/lease", name: "leaseSteps", tag: tagWorkers,
			summary: "Lease steps",
			doc: "Leases up to max ready steps of the given tools. The lease is the right to execute the step. If none is " +
				"ready, the server waits for one, for at most the time in wait, and answers with an empty list if none comes. " +
				"Every later call for the step carries the lease's generation.",
			roles: workers, codes: workerNotAllowed, status: http.StatusOK, out: typeOf[[]gatehouse.LeasedStep](),
			example: `{"tools":["page"],"max":10,"wait":"30s"}`,
			handler: body((*gatehouse.LeaseRequest).Validate, func(
				ctx context.Context, c *call, in *gatehouse.LeaseRequest,
			) (reply, error) {
				if err := c.wait(in.Wait.D()); err != nil {
					return reply{}, err
				}
				return answer(s.cfg.Workers.LeaseSteps(ctx, *in))
			}),
		}, {
			method: "POST", path: "/steps/{id}/heartbeat", name: "heartbeatStep", tag: tagWorkers,
			summary: "Renew the lease of a step", doc: "cancel in the answer asks the holder to stop.",
			roles: workers, object: ObjectStep, status: http.StatusOK, out: typeOf[gatehouse.LeaseState](), codes: leaseLost,
			example: `{"generation":1}`,
			handler: body((*gatehouse.Heartbeat).Validate, func(
				ctx context.Context, c *call, in *gatehouse.Heartbeat,
			) (reply, error) {
				return answer(s.cfg.Workers.HeartbeatStep(ctx, c.id, *in))
			}),
		}, {
			method: "POST", path: "/steps/{id}/complete", name: "completeStep", tag: tagWorkers,
			summary: "Report that a step succeeded", doc: "Takes the output, and the cost of the worker's own model calls.",
			roles: workers, object: ObjectStep, status: http.StatusOK, out: typeOf[gatehouse.Step](),
			codes: leaseLost, idempotent: true,
			example: `{"generation":1,"output":{"ok":true}}`,
			handler: body((*gatehouse.StepResult).Validate, func(
				ctx context.Context, c *call, in *gatehouse.StepResult,
			) (reply, error) {
				return answer(s.cfg.Workers.CompleteStep(ctx, c.id, *in))
			}),
		}, {
			method: "POST", path: "/steps/{id}/fail", name: "failStep", tag: tagWorkers,
			summary: "Report that a step failed",
			doc: "A retryable failure is tried again after a pause, as often as the workflow says, and not before " +
				"retry_after.",
			roles: workers, object: ObjectStep, status: http.StatusOK, out: typeOf[gatehouse.Step](),
			codes: leaseLost, idempotent: true,
			example: `{"generation":1,"detail":"no","retryable":true}`,
			handler: body((*gatehouse.StepFailure).Validate, func(
				ctx context.Context, c *call, in *gatehouse.StepFailure,
			) (reply, error) {
				return answer(s.cfg.Workers.FailStep(ctx, c.id, *in))
			}),
		}, {
			method: "POST", path: "/steps/{id}/propose", name: "proposeStep", tag: tagWorkers,
			summary: "Propose the change that is a step's result", doc: "The step is parked until the action settles, and " +
				"continues with the outcome. The lease ends.",
			roles: workers, object: ObjectStep, status: http.StatusCreated, out: typeOf[gatehouse.Action](), idempotent: true,
			codes: []gatehouse.Code{gatehouse.CodeLeaseLost, gatehouse.CodeDuplicateKey, gatehouse.CodeUnsupported,
				gatehouse.CodeTooLate},
			example: `{"generation":1,"action":` + exampleProposal + `}`,
			handler: body((*gatehouse.StepProposal).Validate, func(
				ctx context.Context, c *call, in *gatehouse.StepProposal,
			) (reply, error) {
				return answer(s.cfg.Workers.ProposeStep(ctx, c.id, *in))
			}),
		},
	}
}

func (s *Server) pushLeaseRoutes() []route {
	return []route{
		{
			method: "POST", path: "/pushes/lease", name: "leasePushes", tag: tagWorkers,
			summary: "Lease pushes of connectors of type worker",
			doc: "Leases approved changes to carry out once, each under its idempotency_key. own limits the lease to " +
				"actions that the caller proposed, proposed_by to those of the principal with this name or id, operations to those " +
				"operations of the connectors that it names. max, wait and lease are as for steps.",
			roles: workers, codes: workerNotAllowed, status: http.StatusOK, out: typeOf[[]gatehouse.LeasedPush](),
			example: `{"connectors":["crm"]}`,
			handler: body((*gatehouse.PushLeaseRequest).Validate, func(
				ctx context.Context, c *call, in *gatehouse.PushLeaseRequest,
			) (reply, error) {
				if err := c.wait(in.Wait.D()); err != nil {
					return reply{}, err
				}
				return answer(s.cfg.Workers.LeasePushes(ctx, *in))
			}),
		}, {
			method: "POST", path: "/pushes/{id}/heartbeat", name: "heartbeatPush", tag: tagWorkers,
			summary: "Renew the lease of a push", doc: "cancel in the answer asks the holder to send nothing more.",
			roles: workers, object: ObjectPush, status: http.StatusOK, out: typeOf[gatehouse.LeaseState](), codes: leaseLost,
			example: `{"generation":1,"lease":"30s"}`,
			handler: body((*gatehouse.Heartbeat).Validate, func(
				ctx context.Context, c *call, in *gatehouse.Heartbeat,
			) (reply, error) {
				return answer(s.cfg.Workers.HeartbeatPush(ctx, c.id, *in))
			}),
		}, {
			method: "POST", path: "/pushes/{id}/complete", name: "completePush", tag: tagWorkers,
			summary: "Report that a change was applied", doc: "Takes the proof, and the way to undo the change.",
			roles: workers, object: ObjectPush, status: http.StatusOK, out: typeOf[gatehouse.Push](),
			codes: leaseLost, idempotent: true,
			example: `{"generation":1,"external_id":"x"}`,
			handler: body((*gatehouse.PushResult).Validate, func(
				ctx context.Context, c *call, in *gatehouse.PushResult,
			) (reply, error) {
				return answer(s.cfg.Workers.CompletePush(ctx, c.id, *in))
			}),
		}, {
			method: "POST", path: "/pushes/{id}/fail", name: "failPush", tag: tagWorkers,
			summary: "Report that a call failed",
			doc: "kind is terminal (refused permanently), transient (refused, may succeed later), not_sent (never reached the " +
				"target), " +
				"ambiguous (it is not known whether it was applied).",
			roles: workers, object: ObjectPush, status: http.StatusOK, out: typeOf[gatehouse.Push](),
			codes: leaseLost, idempotent: true,
			example: `{"generation":1,"kind":"ambiguous","code":"timeout","detail":"no answer"}`,
			handler: body((*gatehouse.PushFailure).Validate, func(
				ctx context.Context, c *call, in *gatehouse.PushFailure,
			) (reply, error) {
				return answer(s.cfg.Workers.FailPush(ctx, c.id, *in))
			}),
		},
	}
}
