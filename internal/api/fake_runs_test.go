package api

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

type (
	workflowPage  = gatehouse.Page[*gatehouse.WorkflowSummary]
	runPage       = gatehouse.Page[*gatehouse.Run]
	reflexionPage = gatehouse.Page[*gatehouse.Reflexion]
)

func testRun() *gatehouse.Run {
	return &gatehouse.Run{
		ID: "run_1", Tenant: "default", Workflow: "triage", Version: 2, Workspace: "default", Status: gatehouse.RunRunning,
		Trigger:    gatehouse.TriggerAPI,
		TriggerRef: "INC1", Input: `{"n":12345678901234567890}`, StartedBy: "bot", StarterID: "prn_bot", Writes: 1,
		CreatedAt: testTime, StartedAt: &testTime,
		Steps: []*gatehouse.Step{testStep()},
	}
}

func testStep() *gatehouse.Step {
	return &gatehouse.Step{
		ID: "stp_1", Tenant: "default", RunID: "run_1", Key: "page", Workflow: "triage", Workspace: "default",
		Uses: "worker.page", Tool: "page",
		Status: gatehouse.StepRunning, Attempts: 1, IdempotencyKey: "run_1:page", Input: `{"who":"ana"}`, Generation: 3,
		LeaseOwner: "work",
		LeaseUntil: &testTime, CreatedAt: testTime, ReadyAt: &testTime, StartedAt: &testTime,
	}
}

func testWorkflow() *gatehouse.Workflow {
	return &gatehouse.Workflow{
		ID: "wfl_1", Tenant: "default", Name: "triage", Version: 2, Workspace: "default", Source: "name: triage\n",
		Digest:    "sha256:ab",
		CreatedBy: "op", CreatedAt: testTime,
	}
}

func testBundle() *gatehouse.Bundle {
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	if w, err := z.Create("manifest.json"); err == nil {
		_, _ = w.Write([]byte(`{"files":[]}`))
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	sum := sha256.Sum256(archive.Bytes())
	return &gatehouse.Bundle{RunID: "run_1", SHA256: hex.EncodeToString(sum[:]), Manifest: `{"files":[]}`,
		Archive: archive.Bytes(), CreatedAt: testTime}
}

// runValues are the answers of the services for runs and workers, and of groups and health of the dispatch.
func runValues(push *gatehouse.Push) map[string]any {
	lease := gatehouse.Lease{Generation: 3, ExpiresAt: testTime.Add(time.Minute)}
	return map[string]any{
		"ApplyWorkflow": testWorkflow(), "FindWorkflow": testWorkflow(),
		"ListWorkflowVersions": []*gatehouse.Workflow{testWorkflow()},
		"ListWorkflows": workflowPage{NextCursor: "n", Items: []*gatehouse.WorkflowSummary{{
			Workflow: testWorkflow(), Versions: 2, Runs: map[gatehouse.RunStatus]int{gatehouse.RunSucceeded: 3},
		}}},
		"StartRun": testRun(), "FindRun": testRun(), "WaitRun": testRun(), "WatchRun": testRun(), "CancelRun": testRun(),
		"RetryRun": testRun(), "RetryRunFrom": testRun(),
		"ListRuns": runPage{Items: []*gatehouse.Run{testRun()}},
		"RunDetail": &gatehouse.RunDetail{
			Run: testRun(),
			Attempts: []*gatehouse.StepAttempt{
				{StepID: "stp_1", Attempt: 1, Generation: 1, Worker: "w", StartedAt: testTime, FinishedAt: testTime,
					Outcome: "lease_expired"}},
			Usage: []*gatehouse.ModelUsage{
				{StepID: "stp_1", Attempt: 1, Provider: "openai", Model: "gpt-4o-mini", Cost: "0.0012", Currency: "USD",
					At: testTime}},
			Signals: []*gatehouse.Signal{{RunID: "run_1", ID: "sig_1", Name: "closed", Data: `{}`, By: "bot", At: testTime}},
			Actions: []*gatehouse.Action{testAction()}, Needs: map[string][]string{"page": {"classify"}},
		},
		"SignalRun": &gatehouse.Signal{RunID: "run_1", ID: "sig_1", Name: "closed", Data: `{"a":1.10}`, By: "bot",
			At: testTime},
		"DispatchHealth": &gatehouse.DispatchHealth{
			At:         testTime,
			Connectors: []gatehouse.ConnectorHealth{{Connector: "shop", Queued: 2, OldestAt: &testTime, LastWords: "<busy>"}},
			Queue:      []gatehouse.QueuePoint{{At: testTime, Depth: 2, Oldest: gatehouse.Span(time.Minute)}},
		},
		"GroupDeadLetters": &gatehouse.DeadLetterGroups{Items: []gatehouse.DeadLetterGroup{{
			Key: "ab", Connector: "shop", ErrorCode: "http_422", Status: gatehouse.PushFailed, Words: "<no>", Count: 2,
			OldestAt: testTime, NewestAt: testTime,
		}}, Seen: 2},
		"RunQueues": &gatehouse.RunQueues{
			At: testTime, Queues: []gatehouse.ToolQueue{{Tool: "crm.read", OldestAt: testTime, Leased: true}},
			Workers:   []gatehouse.WorkerState{{Worker: "<one>", Steps: 2, Tools: []string{"crm.read"}, LeaseUntil: testTime}},
			Schedules: []gatehouse.ScheduleState{{Workflow: "triage", Version: 2, NextAt: testTime}},
		},
		"ListReflexions": reflexionPage{Items: []*gatehouse.Reflexion{{
			ID: "rfx_1", Tenant: "default", RunID: "run_1", Workflow: "triage", Version: 2, Outcome: gatehouse.RunFailed,
			Attempted: "a", Happened: "b", Otherwise: "c", At: testTime,
		}}},
		"RunBundle":     testBundle(),
		"LeaseSteps":    []gatehouse.LeasedStep{{Step: testStep(), Lease: lease}},
		"HeartbeatStep": &gatehouse.LeaseState{Lease: lease, Cancel: true},
		"CompleteStep":  testStep(), "FailStep": testStep(), "ProposeStep": testAction(),
		"LeasePushes": []gatehouse.LeasedPush{{
			Push: push, ActionID: "act_1", ActionType: "price_change", Operation: "update", Target: testAction().Target,
			ProposedChange: `{"price":"12.50"}`, IdempotencyKey: "act_1:1", Digest: testAction().Digest, Attempt: 1,
			Lease: lease,
		}},
		"HeartbeatPush": &gatehouse.LeaseState{Lease: lease}, "CompletePush": push, "FailPush": push,
		"Receive": testRun(),
	}
}

func (f *fake) ApplyWorkflow(ctx context.Context, name, source string) (*gatehouse.Workflow, bool, error) {
	w, err := use[*gatehouse.Workflow](ctx, f, "ApplyWorkflow", "", name, source)
	return w, name != "unchanged", err
}

func (f *fake) FindWorkflow(ctx context.Context, name string, version int) (*gatehouse.Workflow, error) {
	return use[*gatehouse.Workflow](ctx, f, "FindWorkflow", name, name, version)
}

func (f *fake) ListWorkflows(ctx context.Context, cursor string, limit int) (workflowPage, error) {
	return use[workflowPage](ctx, f, "ListWorkflows", "", cursor, limit)
}

func (f *fake) ListWorkflowVersions(ctx context.Context, name string) ([]*gatehouse.Workflow, error) {
	return use[[]*gatehouse.Workflow](ctx, f, "ListWorkflowVersions", name, name)
}

func (f *fake) StartRun(ctx context.Context, workflow string, r gatehouse.NewRun) (*gatehouse.Run, bool, error) {
	run, err := use[*gatehouse.Run](ctx, f, "StartRun", workflow, workflow, r)
	return run, r.TriggerRef == "known", err
}

func (f *fake) FindRun(ctx context.Context, id string) (*gatehouse.Run, error) {
	return use[*gatehouse.Run](ctx, f, "FindRun", id, id)
}

func (f *fake) ListRuns(ctx context.Context, filter gatehouse.RunFilter) (runPage, error) {
	return use[runPage](ctx, f, "ListRuns", "", filter)
}

func (f *fake) RunDetail(ctx context.Context, id string) (*gatehouse.RunDetail, error) {
	return use[*gatehouse.RunDetail](ctx, f, "RunDetail", id, id)
}

func (f *fake) WaitRun(ctx context.Context, id string, wait time.Duration) (*gatehouse.Run, error) {
	return use[*gatehouse.Run](ctx, f, "WaitRun", id, id, wait)
}

func (f *fake) WatchRun(ctx context.Context, id, since string, wait time.Duration) (*gatehouse.Run, error) {
	return use[*gatehouse.Run](ctx, f, "WatchRun", id, id, since, wait)
}

func (f *fake) CancelRun(ctx context.Context, id, reason string) (*gatehouse.Run, error) {
	return use[*gatehouse.Run](ctx, f, "CancelRun", id, id, reason)
}

func (f *fake) RunQueues(ctx context.Context) (*gatehouse.RunQueues, error) {
	return use[*gatehouse.RunQueues](ctx, f, "RunQueues", "")
}

func (f *fake) RetryRunFrom(ctx context.Context, id, step string) (*gatehouse.Run, error) {
	return use[*gatehouse.Run](ctx, f, "RetryRunFrom", id, id, step)
}

func (f *fake) RetryRun(ctx context.Context, id string) (*gatehouse.Run, error) {
	return use[*gatehouse.Run](ctx, f, "RetryRun", id, id)
}

func (f *fake) SignalRun(ctx context.Context, id, name string, data gatehouse.JSON) (*gatehouse.Signal, error) {
	return use[*gatehouse.Signal](ctx, f, "SignalRun", id, id, name, data)
}

func (f *fake) ListReflexions(ctx context.Context, workflow, cursor string, limit int) (reflexionPage, error) {
	return use[reflexionPage](ctx, f, "ListReflexions", "", workflow, cursor, limit)
}

func (f *fake) RunBundle(ctx context.Context, id string) (*gatehouse.Bundle, error) {
	return use[*gatehouse.Bundle](ctx, f, "RunBundle", id, id)
}

func (f *fake) LeaseSteps(ctx context.Context, r gatehouse.LeaseRequest) ([]gatehouse.LeasedStep, error) {
	return use[[]gatehouse.LeasedStep](ctx, f, "LeaseSteps", "", r)
}

func (f *fake) HeartbeatStep(ctx context.Context, id string, r gatehouse.Heartbeat) (*gatehouse.LeaseState, error) {
	return use[*gatehouse.LeaseState](ctx, f, "HeartbeatStep", id, id, r)
}

func (f *fake) CompleteStep(ctx context.Context, id string, r gatehouse.StepResult) (*gatehouse.Step, error) {
	return use[*gatehouse.Step](ctx, f, "CompleteStep", id, id, r)
}

func (f *fake) FailStep(ctx context.Context, id string, r gatehouse.StepFailure) (*gatehouse.Step, error) {
	return use[*gatehouse.Step](ctx, f, "FailStep", id, id, r)
}

func (f *fake) ProposeStep(ctx context.Context, id string, r gatehouse.StepProposal) (*gatehouse.Action, error) {
	return use[*gatehouse.Action](ctx, f, "ProposeStep", id, id, r)
}

func (f *fake) LeasePushes(ctx context.Context, r gatehouse.PushLeaseRequest) ([]gatehouse.LeasedPush, error) {
	return use[[]gatehouse.LeasedPush](ctx, f, "LeasePushes", "", r)
}

func (f *fake) HeartbeatPush(ctx context.Context, id string, r gatehouse.Heartbeat) (*gatehouse.LeaseState, error) {
	return use[*gatehouse.LeaseState](ctx, f, "HeartbeatPush", id, id, r)
}

func (f *fake) CompletePush(ctx context.Context, id string, r gatehouse.PushResult) (*gatehouse.Push, error) {
	return use[*gatehouse.Push](ctx, f, "CompletePush", id, id, r)
}

func (f *fake) FailPush(ctx context.Context, id string, r gatehouse.PushFailure) (*gatehouse.Push, error) {
	return use[*gatehouse.Push](ctx, f, "FailPush", id, id, r)
}

// Receive stands in for the check of signatures: the header X-Signature must be
// the length of the body.
func (f *fake) Receive(
	ctx context.Context, tenant, workflow string, h http.Header, body []byte,
) (*gatehouse.Run, bool, error) {
	f.mu.Lock()
	f.calls = append(f.calls, fakeCall{"Receive", nil, []any{tenant, workflow, string(body)}})
	failure := f.err
	f.mu.Unlock()
	if _, err := gatehouse.CallerFrom(ctx); err == nil {
		panic("a webhook has no caller")
	}
	switch {
	case failure != nil:
		return nil, false, failure
	case tenant != gatehouse.DefaultTenant || !exists[workflow]:
		return nil, false,
			gatehouse.E(gatehouse.CodeNotFound, "no workflow %s in tenant %s", workflow, tenant).With("workflow", workflow)
	case h.Get("X-Signature") != strconv.Itoa(len(body)):
		return nil, false, gatehouse.E(gatehouse.CodeBadSignature, "the signature does not match the body")
	case h.Get("X-Event") == "ping":
		return nil, false, nil
	}
	return f.values["Receive"].(*gatehouse.Run), h.Get("X-Event") == "again", nil
}
