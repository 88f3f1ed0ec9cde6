package telemetry

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
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
