package telemetry

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/gatehouse-dev/gatehouse"
)

// actions answers with the action act_1, or with its revision act_2.
type actions struct{ gatehouse.ActionService }

func (actions) Cancel(context.Context, string) (*gatehouse.CancelAnswer, error) {
	return &gatehouse.CancelAnswer{Code: "canceled", Action: &gatehouse.Action{ID: "act_1"}}, nil
}

func (actions) Undo(context.Context, string) (*gatehouse.UndoAnswer, error) {
	return &gatehouse.UndoAnswer{
		Code: gatehouse.Undone, Action: &gatehouse.Action{ID: "act_2", Supersedes: "act_1"},
	}, nil
}

func (actions) BulkDecide(context.Context, gatehouse.BulkDecision) (*gatehouse.BulkAnswer, error) {
	return nil, errors.New("the store is away")
}

func (actions) Edit(context.Context, string, gatehouse.EditRequest) (*gatehouse.Action, error) {
	return &gatehouse.Action{ID: "act_2", Status: gatehouse.StatusApproved}, nil
}

// TestTraceByApproval: a cancel and an undo that name the approval are in the action's trace. The revision
// that an undo makes has a trace and a root of its own.
func TestTraceByApproval(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewInMemoryExporter()
	tracing := newTracing(sdktrace.WithSyncer(spans))
	s := tracing.Actions(actions{})
	if _, err := s.Cancel(t.Context(), "apr_1"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Undo(t.Context(), "apr_1"); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, span := range spans.GetSpans() {
		for _, id := range []string{"act_1", "act_2"} {
			if span.SpanContext.TraceID() == TraceID(id) {
				got = append(got, span.Name+" "+id)
			}
			if span.SpanContext.SpanID() == rootSpanID(id) {
				got[len(got)-1] += ", root"
			}
		}
	}
	if want := []string{"cancel act_1", "undo act_2, root", "undo act_1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestFailedBulkDecision: a bulk request that fails as a whole counts once.
func TestFailedBulkDecision(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	s, err := CountDecisions(r, actions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.BulkDecide(t.Context(), gatehouse.BulkDecision{}); err == nil {
		t.Fatal("no error")
	}
	if families, err := r.Gather(); err != nil || len(families) != 1 ||
		families[0].GetMetric()[0].GetCounter().GetValue() != 1 {
		t.Errorf("%v, %v", families, err)
	}
}

// TestEditsThatApproveAreCounted: an edit that also approves counts as a decision, a plain edit and a dry run do not.
func TestEditsThatApproveAreCounted(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	s, err := CountDecisions(r, actions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []gatehouse.EditRequest{{}, {Approve: true, DryRun: true}, {Approve: true}} {
		if _, err := s.Edit(t.Context(), "act_1", e); err != nil {
			t.Fatal(err)
		}
	}
	if families, err := r.Gather(); err != nil || len(families) != 1 || len(families[0].GetMetric()) != 1 ||
		families[0].GetMetric()[0].GetCounter().GetValue() != 1 {
		t.Errorf("%v, %v", families, err)
	}
}

// reviews answers with the decided action act_1.
type reviews struct{ gatehouse.ReviewService }

func (reviews) DecideReview(context.Context, string, string, gatehouse.ReviewDecision) (*gatehouse.Answer, error) {
	return &gatehouse.Answer{Code: gatehouse.Decided, Action: &gatehouse.Action{ID: "act_1", Tenant: "acme"}}, nil
}

// TestTraceOfLinksAndClicks: a decision by a signed link, and one by a click in Slack, are in the action's trace.
func TestTraceOfLinksAndClicks(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewInMemoryExporter()
	tracing := newTracing(sdktrace.WithSyncer(spans))
	_, err := tracing.Reviews(reviews{}).DecideReview(t.Context(), "rev_1", "", gatehouse.ReviewDecision{})
	if err != nil {
		t.Fatal(err)
	}
	click := &gatehouse.SlackClick{Tenant: "acme", ActionID: "act_1", Choice: gatehouse.Approve}
	tracing.Clicked(t.Context(), time.Now(), click, gatehouse.Decided)
	tracing.Clicked(t.Context(), time.Now(), click, string(gatehouse.CodeNotFound))
	if got := spans.GetSpans(); len(got) != 2 {
		t.Errorf("%d spans", len(got))
	}
	for _, span := range spans.GetSpans() {
		if span.Name != "decide" || span.SpanContext.TraceID() != TraceID("act_1") ||
			!slices.Contains(span.Attributes, attribute.String("gatehouse.tenant", "acme")) {
			t.Errorf("%s: %v", span.Name, span.Attributes)
		}
	}
}
