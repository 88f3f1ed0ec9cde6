package runline_test

import (
	"slices"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/runline"
)

// TestFailedAttempt: an attempt that its worker lost has failed, whatever became of the step.
func TestFailedAttempt(t *testing.T) {
	t.Parallel()
	for a, want := range map[gatehouse.StepAttempt]bool{
		{Outcome: string(gatehouse.StepSucceeded)}:                       false,
		{Outcome: string(gatehouse.StepCanceled)}:                        false,
		{Outcome: string(gatehouse.StepRetrying)}:                        true,
		{Outcome: string(gatehouse.StepFailed)}:                          true,
		{Outcome: string(gatehouse.StepCanceled), Code: "lease_expired"}: true,
	} {
		if got := runline.FailedAttempt(&a); got != want {
			t.Errorf("%s %s: failed %v, want %v", a.Outcome, a.Code, got, want)
		}
	}
}

// TestCanceledInQueue: a step that is canceled while it waits for a worker, or for its next attempt, was queued.
func TestCanceledInQueue(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 7, 1, 9, 0, 0, 0, time.UTC)
	at := func(minutes int) *time.Time { return new(start.Add(time.Duration(minutes) * time.Minute)) }
	never := &gatehouse.Step{ID: "never", Status: gatehouse.StepCanceled, ReadyAt: at(0), FinishedAt: at(10)}
	retrying := &gatehouse.Step{
		ID: "retrying", Status: gatehouse.StepCanceled, ReadyAt: at(0), StartedAt: at(0), FinishedAt: at(10),
	}
	waiting := &gatehouse.Step{
		ID: "waiting", Uses: "wait", Status: gatehouse.StepCanceled, ReadyAt: at(0), StartedAt: at(0), FinishedAt: at(10),
	}
	all := runline.Spans(&gatehouse.RunDetail{
		Run: &gatehouse.Run{FinishedAt: at(10)},
		Attempts: []*gatehouse.StepAttempt{
			{StepID: "retrying", StartedAt: *at(0), FinishedAt: *at(2), Outcome: string(gatehouse.StepRetrying)},
			{StepID: "waiting", StartedAt: *at(0), FinishedAt: *at(2), Outcome: string(gatehouse.StepWaiting)},
		},
	}, []*gatehouse.Step{never, retrying, waiting}, *at(20))
	for i, want := range [][]runline.Span{
		{{*at(0), *at(10), runline.Queued}},
		{{*at(0), *at(2), runline.Fails}, {*at(2), *at(10), runline.Queued}},
		{{*at(0), *at(2), runline.Works}, {*at(2), *at(10), runline.Waits}},
	} {
		if !slices.Equal(all[i], want) {
			t.Errorf("%d: %v, want %v", i, all[i], want)
		}
	}
}
