package runline_test

import (
	"testing"

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
