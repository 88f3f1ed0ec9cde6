package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
	"github.com/gatehouse-dev/gatehouse/internal/sheet"
	"github.com/gatehouse-dev/gatehouse/internal/termtest"
)

// TestRunsPage runs every block of docs/runs.md, in their order, against a
// server in development mode.
func TestRunsPage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var server *devServer
	var said strings.Builder
	ran := map[string]int{}
	for _, f := range fences(t, filepath.Join("..", "..", "docs", "runs.md")) {
		ran[f.language]++
		switch {
		case f.language == "yaml":
			name := "restock.yaml"
			if strings.HasPrefix(f.text, "tests:") {
				name = "restock.test.yaml"
			}
			must(t, os.WriteFile(filepath.Join(dir, name), []byte(f.text), 0o600))
		case f.language == "text":
			if diff := cmp.Diff(f.text, pageTimeline(t)); diff != "" {
				t.Errorf("line %d: %s", f.line, diff)
			}
		case f.language != "sh":
			t.Errorf("line %d: nothing runs a block of %q", f.line, f.language)
		case strings.TrimSpace(f.text) == "gatehouse dev":
			server = startDev(t, dir)
		default:
			cmd := exec.Command("bash", "-euo", "pipefail", "-c", f.text)
			cmd.Dir, cmd.Env = dir, cleanEnv()
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("line %d: %v\n%s", f.line, err, out)
			}
			said.Write(out)
		}
	}
	if ran["yaml"] != 2 || ran["text"] != 1 || ran["sh"] < 9 {
		t.Errorf("the page has other blocks than it had: %v", ran)
	}
	for _, want := range []string{
		"2 tests, 0 failed", "restock\t1\tchanged\t", "This reference has already started a run", "\tapproved\t",
		"\tcanceled\t", "\tretry\t", "Verified: ", " verified.",
	} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("the page's commands never say %q", want)
		}
	}
	id, err := os.ReadFile(filepath.Join(dir, "run.id"))
	must(t, err)
	admin := servetest.MustClient(t, strings.TrimSuffix(server.api, "/api/v1"), devEnv(t, dir, "admin"))
	r, err := admin.FindRun(t.Context(), strings.TrimSpace(string(id)))
	if err != nil || r.Status != gatehouse.RunSucceeded || r.Output != `{"order":"4711","paid_by":"card"}` {
		t.Errorf("%v: %s with %s", err, r.Status, r.Output)
	}
	server.stop()
}

// pageTimeline draws what the page shows.
func pageTimeline(t *testing.T) string {
	t.Helper()
	start := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	at := func(d time.Duration) *time.Time {
		v := start.Add(d)
		return &v
	}
	const asked, ordered = 123 * time.Minute, 123*time.Minute + 9200*time.Millisecond
	d := &gatehouse.RunDetail{
		Run: &gatehouse.Run{CreatedAt: start, Steps: []*gatehouse.Step{
			{ID: "1", Key: "ask", Uses: "approval", Status: gatehouse.StepSucceeded, Attempts: 1, StartedAt: at(0),
				FinishedAt: at(asked), ActionID: "act_1"},
			{ID: "2", Key: "order", Uses: "worker.order", Status: gatehouse.StepSucceeded, Attempts: 2, StartedAt: at(asked),
				FinishedAt: at(ordered)},
			{ID: "3", Key: "paid", Uses: "wait", Status: gatehouse.StepSucceeded, Attempts: 1, StartedAt: at(ordered),
				FinishedAt: at(ordered + 842*time.Second)},
		}},
		Attempts: []*gatehouse.StepAttempt{
			{StepID: "1", Attempt: 1, StartedAt: *at(0), FinishedAt: *at(20 * time.Millisecond), Outcome: "waiting_approval"},
			{StepID: "2", Attempt: 1, StartedAt: *at(asked), FinishedAt: *at(asked + 2*time.Second),
				Outcome: "failed_retryable"},
			{StepID: "2", Attempt: 2, StartedAt: *at(asked + 5*time.Second), FinishedAt: *at(ordered), Outcome: "succeeded"},
			{StepID: "3", Attempt: 1, StartedAt: *at(ordered), FinishedAt: *at(ordered + 10*time.Millisecond),
				Outcome: "waiting"},
		},
		Actions: []*gatehouse.Action{
			{ID: "act_1", Status: gatehouse.StatusApplied, DecidedAt: at(asked), DecidedVia: gatehouse.ViaCLI}},
	}
	g, _, _ := termtest.New(t)
	g.TTY, g.Columns = true, 70
	return strings.Join(sheet.New(g).TimelineRows(d), "\n") + "\n"
}
