package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

const tagWorkers = "Workers"

// leaseLost is a possible error of every call with a lease.
var leaseLost = []gatehouse.Code{gatehouse.CodeLeaseLost}

// Leases and heartbeats ignore Idempotency-Key: a stored answer could name an old
// lease, and a lost lease expires by itself.
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
				"ready, the server waits for the time in wait, then answers with an empty list. Every later call for the step " +
				"carries the lease's " +
				"generation.",
			roles: workers, status: http.StatusOK, out: typeOf[[]gatehouse.LeasedStep](),
			handler: body(checkLease, func(ctx context.Context, c *call, in *gatehouse.LeaseRequest) (reply, error) {
				if err := c.wait(in.Wait.D()); err != nil {
					return reply{}, err
				}
				return answer(s.cfg.Workers.LeaseSteps(ctx, *in))
			}),
		}, {
			method: "POST", path: "/steps/{id}/heartbeat", name: "heartbeatStep", tag: tagWorkers,
			summary: "Renew the lease of a step", doc: "cancel in the answer asks the holder to stop.",
			roles: workers, object: ObjectStep, status: http.StatusOK, out: typeOf[gatehouse.LeaseState](), codes: leaseLost,
			handler: body(checkHeartbeat, func(ctx context.Context, c *call, in *gatehouse.Heartbeat) (reply, error) {
				return answer(s.cfg.Workers.HeartbeatStep(ctx, c.id, *in))
			}),
		}, {
			method: "POST", path: "/steps/{id}/complete", name: "completeStep", tag: tagWorkers,
			summary: "Report that a step succeeded", doc: "Takes the output, and the cost of the worker's own model calls.",
			roles: workers, object: ObjectStep, status: http.StatusOK, out: typeOf[gatehouse.Step](),
			codes: leaseLost, idempotent: true,
			handler: body(checkStepResult, func(ctx context.Context, c *call, in *gatehouse.StepResult) (reply, error) {
				return answer(s.cfg.Workers.CompleteStep(ctx, c.id, *in))
			}),
		}, {
			method: "POST", path: "/steps/{id}/fail", name: "failStep", tag: tagWorkers,
			summary: "Report that a step failed",
			doc: "A retryable failure is tried again after a pause, as often as the workflow says, and not before " +
				"retry_after.",
			roles: workers, object: ObjectStep, status: http.StatusOK, out: typeOf[gatehouse.Step](),
			codes: leaseLost, idempotent: true,
			handler: body(checkStepFailure, func(ctx context.Context, c *call, in *gatehouse.StepFailure) (reply, error) {
				return answer(s.cfg.Workers.FailStep(ctx, c.id, *in))
			}),
		}, {
			method: "POST", path: "/steps/{id}/propose", name: "proposeStep", tag: tagWorkers,
			summary: "Propose the change that is a step's result", doc: "The step is parked until the action settles, and " +
				"continues with the outcome. The lease ends.",
			roles: workers, object: ObjectStep, status: http.StatusCreated, out: typeOf[gatehouse.Action](), idempotent: true,
			codes: []gatehouse.Code{gatehouse.CodeLeaseLost, gatehouse.CodeDuplicateKey, gatehouse.CodeUnsupported,
				gatehouse.CodeTooLate},
			handler: body(checkStepProposal, func(ctx context.Context, c *call, in *gatehouse.StepProposal) (reply, error) {
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
				"actions that the caller proposed. max, wait and lease are as for steps.",
			roles: workers, status: http.StatusOK, out: typeOf[[]gatehouse.LeasedPush](),
			handler: body(checkPushLease, func(ctx context.Context, c *call, in *gatehouse.PushLeaseRequest) (reply, error) {
				if err := c.wait(in.Wait.D()); err != nil {
					return reply{}, err
				}
				return answer(s.cfg.Workers.LeasePushes(ctx, *in))
			}),
		}, {
			method: "POST", path: "/pushes/{id}/heartbeat", name: "heartbeatPush", tag: tagWorkers,
			summary: "Renew the lease of a push", doc: "cancel in the answer asks the holder to send nothing more.",
			roles: workers, object: ObjectPush, status: http.StatusOK, out: typeOf[gatehouse.LeaseState](), codes: leaseLost,
			handler: body(checkHeartbeat, func(ctx context.Context, c *call, in *gatehouse.Heartbeat) (reply, error) {
				return answer(s.cfg.Workers.HeartbeatPush(ctx, c.id, *in))
			}),
		}, {
			method: "POST", path: "/pushes/{id}/complete", name: "completePush", tag: tagWorkers,
			summary: "Report that a change was applied", doc: "Takes the proof, and the way to undo the change.",
			roles: workers, object: ObjectPush, status: http.StatusOK, out: typeOf[gatehouse.Push](),
			codes: leaseLost, idempotent: true,
			handler: body(checkPushResult, func(ctx context.Context, c *call, in *gatehouse.PushResult) (reply, error) {
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
			handler: body(checkPushFailure, func(ctx context.Context, c *call, in *gatehouse.PushFailure) (reply, error) {
				return answer(s.cfg.Workers.FailPush(ctx, c.id, *in))
			}),
		},
	}
}

// Bounds on what workers send.
const (
	// maxTools bounds the tool names in one request for leases.
	maxTools      = 50
	maxRetryAfter = 24 * time.Hour
)

func checkLease(r *gatehouse.LeaseRequest) error {
	return checkAnyLease("/tools", r.Tools, r.Max, r.Wait, r.Lease, r.Worker)
}

func checkPushLease(r *gatehouse.PushLeaseRequest) error {
	return checkAnyLease("/connectors", r.Connectors, r.Max, r.Wait, r.Lease, r.Worker)
}

func checkAnyLease(
	pointer string, names []string, most int, wait gatehouse.Duration, lease gatehouse.Span, worker string,
) error {
	var v gatehouse.Violations
	if n := len(names); n == 0 || n > maxTools {
		v.Add(pointer, "must hold 1 to %d names", maxTools)
		return v.Err()
	}
	for i, name := range names {
		if !gatehouse.ValidName(name) {
			v.Add(fmt.Sprintf("%s/%d", pointer, i), gatehouse.NameRule)
		}
	}
	if most < 0 || most > gatehouse.MaxLeasedSteps {
		v.Add("/max", "must be an integer from 1 to %d", gatehouse.MaxLeasedSteps)
	}
	if wait.D() > gatehouse.MaxWait {
		v.Add("/wait", "must be a duration such as 30s, at most 60s")
	}
	checkLeaseTime(&v, lease)
	v.CheckText("/worker", worker, 128)
	return v.Err()
}

func checkLeaseTime(v *gatehouse.Violations, lease gatehouse.Span) {
	if lease != 0 && (lease.D() < gatehouse.MinStepLease || lease.D() > gatehouse.MaxStepLease) {
		v.Add("/lease", "must be a duration from 1s to 1h")
	}
}

func checkGeneration(v *gatehouse.Violations, generation int) {
	if generation < 1 {
		v.Add("/generation", "is required: the lease's")
	}
}

func checkHeartbeat(h *gatehouse.Heartbeat) error {
	var v gatehouse.Violations
	checkGeneration(&v, h.Generation)
	checkLeaseTime(&v, h.Lease)
	return v.Err()
}

func checkStepResult(r *gatehouse.StepResult) error {
	var v gatehouse.Violations
	checkGeneration(&v, r.Generation)
	r.CheckUsage(&v)
	return v.Err()
}

func checkStepFailure(f *gatehouse.StepFailure) error {
	var v gatehouse.Violations
	checkGeneration(&v, f.Generation)
	checkFailure(&v, f.Code, f.Detail, f.RetryAfter)
	return v.Err()
}

func checkFailure(v *gatehouse.Violations, code, detail string, after gatehouse.Duration) {
	v.CheckText("/code", code, 64)
	if detail == "" {
		v.Add("/detail", "is required")
	}
	v.CheckText("/detail", detail, gatehouse.MaxNotesBytes)
	if after.D() > maxRetryAfter {
		v.Add("/retry_after", "must be at most 24h")
	}
}

func checkStepProposal(p *gatehouse.StepProposal) error {
	var v gatehouse.Violations
	checkGeneration(&v, p.Generation)
	var wrong *gatehouse.Error
	if !errors.As(p.Action.Validate(), &wrong) {
		return v.Err()
	}
	if wrong.Code != gatehouse.CodeInvalid && len(v) == 0 {
		return wrong
	}
	for _, each := range wrong.Violations {
		v.Add("/action"+each.Pointer, "%s", each.Detail)
	}
	return v.Err()
}

func checkPushResult(r *gatehouse.PushResult) error {
	var v gatehouse.Violations
	checkGeneration(&v, r.Generation)
	v.CheckText("/external_id", r.ExternalID, 1024)
	if r.RequestMetadata != "" && !r.RequestMetadata.IsObject() {
		v.Add("/request_metadata", "must be an object")
	}
	if r.ResponseMetadata != "" && !r.ResponseMetadata.IsObject() {
		v.Add("/response_metadata", "must be an object")
	}
	return v.Err()
}

func checkPushFailure(f *gatehouse.PushFailure) error {
	var v gatehouse.Violations
	checkGeneration(&v, f.Generation)
	switch f.Kind {
	case "terminal", "transient", "not_sent", "ambiguous":
	default:
		v.Add("/kind", "must be terminal, transient, not_sent or ambiguous")
	}
	checkFailure(&v, f.Code, f.Detail, f.RetryAfter)
	return v.Err()
}
