package sheet

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/runline"
	"github.com/gatehouse-dev/gatehouse/internal/term"
	"github.com/gatehouse-dev/gatehouse/internal/termtest"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// testRun is a run whose second step failed once, and whose third waited two hours for people. Its
// texts from outside would mislead on a terminal.
func testRun(t *testing.T) (*gatehouse.RunDetail, *workflow.Definition) {
	t.Helper()
	def, err := workflow.Parse([]byte(`
name: triage
steps:
  - {id: classify, uses: model.local, with: {model: m, prompt: p}}
  - {id: page, uses: worker.page}
  - id: update
    uses: connector.snow.update
    action_type: field_update
    with: {target: {entity_type: incident, entity_ref: "1"}, change: {group: network}}
  - {id: later, uses: wait, with: {event: paid}}
`))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	at := func(seconds float64) *time.Time {
		v := start.Add(time.Duration(seconds * float64(time.Second)))
		return &v
	}
	r := &gatehouse.Run{
		ID: "run_1", Tenant: "default", Workflow: "triage", Version: 3, Workspace: "default", Status: gatehouse.RunWaiting,
		Trigger: gatehouse.TriggerWebhook, TriggerRef: "ref\u202e\x1b[2J", Input: `{"n":12345678901234567890}`,
		StartedBy: "webhook",
		CreatedAt: start, StartedAt: at(0), Deadline: at(86400),
		Steps: []*gatehouse.Step{
			{ID: "stp_1", Key: "classify", Uses: "model.local", Status: gatehouse.StepSucceeded, Attempts: 1, ReadyAt: at(0),
				StartedAt: at(1), FinishedAt: at(4)},
			{
				ID: "stp_2", Key: "page", Uses: "worker.page", Status: gatehouse.StepSucceeded, Attempts: 2, ReadyAt: at(9),
				StartedAt: at(4), FinishedAt: at(12),
			},
			{
				ID: "stp_3", Key: "update", Uses: "connector.snow.update", Status: gatehouse.StepSucceeded, Attempts: 1,
				ReadyAt:   at(12),
				StartedAt: at(12), FinishedAt: at(7215), ActionID: "act_1",
			},
			{ID: "stp_4", Key: "later", Uses: "wait", Status: gatehouse.StepWaiting, Attempts: 1, ReadyAt: at(7215),
				StartedAt: at(7215), Event: "paid"},
		},
	}
	d := &gatehouse.RunDetail{
		Run: r,
		Attempts: []*gatehouse.StepAttempt{
			{StepID: "stp_1", Attempt: 1, Worker: "w", StartedAt: *at(1), FinishedAt: *at(4), Outcome: "succeeded"},
			{StepID: "stp_2", Attempt: 1, Worker: "w\x1b[8m", StartedAt: *at(4), FinishedAt: *at(6), Outcome: "failed_retryable",
				Code: "busy", Detail: "not now\r\nok"},
			{StepID: "stp_2", Attempt: 2, Worker: "w", StartedAt: *at(9), FinishedAt: *at(12), Outcome: "succeeded"},
			{StepID: "stp_3", Attempt: 1, Worker: "w", StartedAt: *at(12), FinishedAt: *at(12.1), Outcome: "waiting_approval"},
			{StepID: "stp_4", Attempt: 1, Worker: "w", StartedAt: *at(7215), FinishedAt: *at(7215.1), Outcome: "waiting"},
		},
		Usage: []*gatehouse.ModelUsage{
			{StepID: "stp_1", Provider: "local", Model: "m", InputTokens: 120, OutputTokens: 20, Cost: "0.000030",
				Currency: "USD"},
			{StepID: "stp_1", Provider: "local", Model: "m", InputTokens: 130, OutputTokens: 10, Cost: "0.000012",
				Currency: "USD"},
		},
		Signals: []*gatehouse.Signal{
			{RunID: "run_1", ID: "sig_1", Name: "seen", Data: `{"by":"\u202e"}`, By: "ops", At: *at(30)}},
		Actions: []*gatehouse.Action{{
			ID: "act_1", Status: gatehouse.StatusApplied, ProposedAt: *at(12.1), DecidedAt: at(7212), DecidedBy: "ben",
			DecidedVia: gatehouse.ViaConsole,
			Proposal: gatehouse.Proposal{
				ActionType: "field_update", Connector: "snow", Operation: "update", RiskLevel: gatehouse.L4,
				Target: gatehouse.Target{EntityType: "incident", EntityRef: "1"}, ProposedChange: `{"group":"network"}`,
			},
			Approval: &gatehouse.Approval{Required: 2, Votes: []gatehouse.Vote{
				{Name: "ana", Decision: gatehouse.Approve, At: *at(3600), Via: gatehouse.ViaConsole},
				{Name: "ben", Decision: gatehouse.Approve, At: *at(7212), Via: gatehouse.ViaConsole},
			}},
			Receipt: &gatehouse.Receipt{ID: "rcp_1", Attempt: 1, Outcome: gatehouse.ReceiptApplied, ExternalID: "INC1"},
		}},
	}
	return d, def
}

// TestShowRun draws a run on a terminal and piped.
func TestShowRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file string
		tty  bool
	}{{"run_terminal.txt", true}, {"run_piped.txt", false}} {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			d, def := testRun(t)
			g, out, _ := termtest.New(t)
			g.TTY = c.tty
			New(g).Run(d, def)
			for _, r := range out.String() {
				if r != '\n' && r != '\t' && term.Hidden(r) {
					t.Errorf("%U is printed", r)
				}
			}
			file := filepath.Join("testdata", c.file)
			want, err := os.ReadFile(file)
			if os.Getenv("UPDATE") != "" {
				err = os.WriteFile(file, out.Bytes(), 0o600)
				want = out.Bytes()
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestTimelineIsReadable: for any times, bars fit, and from 40 columns on they show the phases in order, except for
// last ones that have no room.
func TestTimelineIsReadable(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.OneOf(rapid.Int64Range(1, 5000), rapid.Int64Range(1, int64(40*24*time.Hour/time.Millisecond)))
		all := make([][]runline.Span, rapid.IntRange(1, 8).Draw(t, "steps"))
		for i := range all {
			at := start.Add(time.Duration(rapid.Int64Range(0, 100_000).Draw(t, "start")) * time.Millisecond)
			for range rapid.IntRange(0, 5).Draw(t, "spans") {
				to := at.Add(time.Duration(length.Draw(t, "length")) * time.Millisecond)
				all[i] = append(all[i], runline.Span{From: at, To: to, Phase: rapid.SampledFrom(runline.Phases()).Draw(t, "phase")})
				at = to
			}
		}
		columns := rapid.IntRange(minBar, 200).Draw(t, "columns")
		x := axis{runline.NewAxis(all), columns}
		for _, spans := range all {
			bar := x.bar(spans, false)
			if n := term.ColumnsOf(bar); n != columns {
				t.Fatalf("%q takes %d columns of %d", bar, n, columns)
			}
			shown := slices.Compact(strings.Split(strings.Join(strings.Fields(bar), ""), ""))
			var want []string
			for _, s := range spans {
				if s.Phase != runline.Queued {
					want = append(want, signOf(s.Phase))
				}
			}
			want = slices.Compact(want)
			shown = slices.Compact(slices.DeleteFunc(shown, func(s string) bool { return s == signOf(runline.Queued) }))
			if columns >= 40 && (!isPrefix(shown, want) || len(want) > 0 && len(shown) == 0) {
				t.Fatalf("shows %v of %v", shown, want)
			}
		}
		for _, spans := range all {
			for _, s := range spans {
				if from, to := x.Place(s.From), x.Place(s.To); from < 0 || to < from || to > 1 {
					t.Fatalf("a span goes from %v to %v", from, to)
				}
			}
		}
	})
}

func isPrefix(a, b []string) bool { return len(a) <= len(b) && slices.Equal(a, b[:len(a)]) }

// TestIdleTimeIsCompressed: two hours for people beside ten seconds of work.
func TestIdleTimeIsCompressed(t *testing.T) {
	t.Parallel()
	d, _ := testRun(t)
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	all := runline.Spans(d, d.Steps, now)
	x := axis{runline.NewAxis(all), 60}
	if len(x.Cuts) == 0 || x.Omitted() < 2*time.Hour {
		t.Fatalf("%v is left out at %v", x.Omitted(), x.Cuts)
	}
	bar := x.bar(all[0], false)
	if n := strings.Count(bar, signOf(runline.Works)); n < 8 {
		t.Errorf("3 of 11 working seconds take %d of 60 columns: %q", n, bar)
	}
	waits := x.bar(all[2], false)
	if !strings.Contains(waits, signOf(runline.People)) {
		t.Errorf("the wait for people does not show: %q", waits)
	}
	if got := runline.Spans(d, []*gatehouse.Step{{ID: "stp_9", Key: "new", Status: gatehouse.StepBlocked}},
		now); got[0] != nil {
		t.Errorf("a step that never began has %v", got)
	}
}

// TestEarlierAttemptsAreLeftOut: the earlier attempts of a retried run are not on its axis.
func TestEarlierAttemptsAreLeftOut(t *testing.T) {
	t.Parallel()
	d, _ := testRun(t)
	d.RetryOf, d.CreatedAt = "run_0", d.CreatedAt.Add(5*time.Second)
	if spans := runline.Spans(d, d.Steps[:1], d.CreatedAt); spans[0] != nil {
		t.Errorf("got %v", spans)
	}
	if got := outcomeText(d, d.Steps[0], nil); got != "succeeded in an earlier run" {
		t.Errorf("got %q", got)
	}
}

func TestTookText(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0ms", 340 * time.Millisecond: "340ms", 1250 * time.Millisecond: "1.2s", 123 * time.Second: "2m 3s",
		2*time.Hour + 3*time.Minute: "2h 3m", 75 * time.Hour: "3d 3h",
	} {
		if got := tookText(d); got != want {
			t.Errorf("%v: got %q, want %q", fmt.Sprint(d), got, want)
		}
	}
}
