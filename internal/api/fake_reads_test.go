package api

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

func readValues() map[string]any {
	return map[string]any{
		"WorkflowSummary": &gatehouse.WorkflowSummary{
			Workflow: testWorkflow(), Versions: 2,
			Runs: map[gatehouse.RunStatus]int{gatehouse.RunSucceeded: 3, gatehouse.RunFailed: 1, gatehouse.RunRunning: 2},
		},
		"RunReflexion": &gatehouse.Reflexion{
			ID: "rfx_1", RunID: "run_1", Workflow: "triage", Version: 2, Outcome: gatehouse.RunFailed,
			Attempted: "a", Happened: "b", Otherwise: "c", At: testTime,
		},
	}
}

func (f *fake) WorkflowSummary(ctx context.Context, name string) (*gatehouse.WorkflowSummary, error) {
	return use[*gatehouse.WorkflowSummary](ctx, f, "WorkflowSummary", name, name)
}

func (f *fake) RunReflexion(ctx context.Context, id string) (*gatehouse.Reflexion, error) {
	return use[*gatehouse.Reflexion](ctx, f, "RunReflexion", id, id)
}

func (f *fake) ListNotices(
	ctx context.Context, filter gatehouse.NoticeFilter,
) (gatehouse.Page[*gatehouse.Notice], error) {
	return use[gatehouse.Page[*gatehouse.Notice]](ctx, f, "ListNotices", "", filter)
}

func (f *fake) Insights(ctx context.Context, filter gatehouse.InsightFilter) (*gatehouse.Insights, error) {
	return use[*gatehouse.Insights](ctx, f, "Insights", "", filter)
}

func (f *fake) DismissNotices(ctx context.Context, ids []string) (int, error) {
	return use[int](ctx, f, "DismissNotices", "", ids)
}
