package cli

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// watchedRun is a run that waits for an event after its third step's action.
func watchedRun() *gatehouse.RunDetail {
	at := func(seconds int) *time.Time {
		v := time.Date(2026, 11, 20, 9, 0, seconds, 0, time.UTC)
		return &v
	}
	return &gatehouse.RunDetail{
		Run: &gatehouse.Run{
			ID: "run_1", Status: gatehouse.RunWaiting, CreatedAt: *at(0),
			Steps: []*gatehouse.Step{
				{ID: "stp_1", Key: "classify", Status: gatehouse.StepSucceeded, Attempts: 1, StartedAt: at(1),
					FinishedAt: at(4)},
				{ID: "stp_2", Key: "page", Status: gatehouse.StepSucceeded, Attempts: 2, StartedAt: at(4),
					FinishedAt: at(12)},
				{
					ID: "stp_3", Key: "update", Status: gatehouse.StepSucceeded, Attempts: 1, StartedAt: at(12),
					FinishedAt: at(7215),
					ActionID:   "act_1",
				},
				{ID: "stp_4", Key: "later", Uses: "wait", Status: gatehouse.StepWaiting, Attempts: 1,
					StartedAt: at(7215), Event: "paid"},
			},
		},
		Actions: []*gatehouse.Action{{ID: "act_1", Status: gatehouse.StatusApplied}},
	}
}

func TestExitOfFailure(t *testing.T) {
	t.Parallel()
	for status, want := range map[gatehouse.Status]int{
		gatehouse.StatusRejected: term.ExitRejected, gatehouse.StatusDenied: term.ExitRejected,
		gatehouse.StatusExpired: term.ExitExpired,
		gatehouse.StatusFailed:  term.ExitError, gatehouse.StatusCanceled: term.ExitError,
	} {
		d := watchedRun()
		d.Steps[2].Status, d.Actions[0].Status = gatehouse.StepFailed, status
		if got := exitOfFailure(d); got != want {
			t.Errorf("%s: got %d, want %d", status, got, want)
		}
	}
	d := watchedRun()
	d.Steps[1].Status = gatehouse.StepFailed
	if got := exitOfFailure(d); got != term.ExitError {
		t.Errorf("a step without an action: got %d", got)
	}
}

// busyService finds a run, but is busy when asked for its changes.
type busyService struct {
	service
	run *gatehouse.Run
}

func (s busyService) FindRun(context.Context, string) (*gatehouse.Run, error) { return s.run, nil }

func (s busyService) WatchRun(context.Context, string, string, time.Duration) (*gatehouse.Run, error) {
	return nil, &gatehouse.Error{Code: gatehouse.CodeBusy, RetryAfter: 5}
}

// TestWatchPauseEnds: --timeout also ends the pause that a busy server asks for.
func TestWatchPauseEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, _, _ := testGlobals(t)
		timeout := gatehouse.Duration(time.Second)
		start := time.Now()
		err := (&runWatchCmd{ID: "run_1", Timeout: &timeout}).Run(g, busyService{run: watchedRun().Run})
		if took := time.Since(start); gatehouse.CodeOf(err) != gatehouse.CodeBusy || took != time.Second {
			t.Errorf("%v after %s", err, took)
		}
	})
}

// TestWatchLines: the watch of a run prints each change once, and writes control characters as codes such as
// <U+001B>.
func TestWatchLines(t *testing.T) {
	t.Parallel()
	d := watchedRun()
	g, out, _ := testGlobals(t)
	show := g.watcher(nil)
	step := d.Steps[1]
	step.Status, step.FinishedAt, step.Failure = gatehouse.StepFailed, nil,
		&gatehouse.Failure{Code: "x", Detail: "no\x1b[2J\nrun_1\tsucceeded"}
	d.Steps[2].Status = gatehouse.StepBlocked
	for range 2 {
		must(t, show(d.Run, false))
	}
	want := "2026-11-20T09:00:04Z\tclassify\tsucceeded\t\n" +
		"2026-11-20T12:00:00Z\tpage\tfailed_terminal\tno<U+001B>[2J<U+000A>run_1<U+0009>succeeded (x)\n" +
		"2026-11-20T12:00:00Z\tlater\twaiting\tevent paid\n" +
		"2026-11-20T12:00:00Z\trun_1\twaiting\t\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	out.Reset()
	retried := d.Steps[3]
	retried.Status, retried.Attempts, retried.Generation = gatehouse.StepRunning, 2, 2
	must(t, show(d.Run, false))
	if want := "2026-11-20T11:00:15Z\tlater\trunning\t\n"; out.String() != want {
		t.Errorf("a later attempt begins: got %q, want %q", out, want)
	}
	out.Reset()
	d.Status, d.Failure = gatehouse.RunFailed, &gatehouse.Failure{Code: "x", Detail: "page: no"}
	must(t, show(d.Run, true))
	if want := "2026-11-20T12:00:00Z\trun_1\tfailed_terminal\tpage: no (x)\n"; out.String() != want {
		t.Errorf("got %q, want %q", out, want)
	}
}
