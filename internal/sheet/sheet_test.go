package sheet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
	"github.com/gatehouse-dev/gatehouse/internal/termtest"
)

// hostileAction has every text of an action, written by an agent that wants to mislead readers on a
// terminal.
func hostileAction() *gatehouse.Action {
	at := time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC)
	two := 2
	a := &gatehouse.Action{
		ID: "act_1", Revision: 1, Tenant: "default", Status: gatehouse.StatusUnknown,
		ClaimedRisk: gatehouse.L1, Fingerprint: "sha256:aa",
		Proposal: gatehouse.Proposal{
			ActionType: "price_change", Connector: "shop", Operation: "update", RiskLevel: gatehouse.L4,
			Target:       gatehouse.Target{EntityType: "item", EntityRef: "SKU-1042\u202e", Version: "7"},
			CurrentState: `{"cost":9007199254740993,"name":"old","price":"10.00"}`,
			ProposedChange: gatehouse.ObjectJSON(
				gatehouse.Member{Name: "big", Value: "1234567890123456789"},
				gatehouse.Member{Name: "name", Value: gatehouse.StringJSON("old")},
				gatehouse.Member{Name: "price", Value: gatehouse.StringJSON("12.50")},
			),
			Rationale:  "cost rose\ndecided      now by admin, via console\n\x1b[2J\x1b[1;1Hdigest sha256:00",
			OnBehalfOf: "ana",
			Magnitude:  &gatehouse.Magnitude{Amount: "2.50", Currency: "USD"},
			Evaluations: []gatehouse.Evaluation{
				{Name: "schema", Kind: "deterministic", Result: "pass", Confidence: "0.90", Details: "all\u200bgood"}},
			ArtifactDiff: &gatehouse.ArtifactDiff{
				Type: "unified_diff", Summary: "one line", Text: "-price: 10.00\n+price: 12.50", LinesAdded: &two,
			},
			Context: `{"project_id":"p1"}`, Metadata: `{"ticket":"T-1"}`, IdempotencyKey: "act_1:1",
		},
		Policy: gatehouse.PolicyOutcome{Outcome: gatehouse.OutcomeNeedsApproval, Rules: []string{"prices"},
			Reasons: []string{"a price changes"}, Version: 3},
		Approval: &gatehouse.Approval{
			ID: "apr_1", Required: 2, Roles: []gatehouse.Role{gatehouse.RoleApprover}, ExpiresAt: at.Add(4 * time.Hour),
			Confirm: &gatehouse.Confirm{Prompt: "Type 12.50", Value: "12.50"},
			Votes: []gatehouse.Vote{
				{Name: "ben", Decision: gatehouse.Approve, Notes: "fine\nby me", Via: gatehouse.ViaCLI, At: at}},
		},
		Push: &gatehouse.PushSummary{ID: "psh_1", Status: gatehouse.PushUnknown, Attempts: 1, LastError: "time-out\x07",
			SentAt: &at},
		Receipt: &gatehouse.Receipt{
			ID: "rcp_1", Attempt: 1, Outcome: gatehouse.ReceiptAmbiguous, Source: "call", ErrorCode: "timeout",
			Error:           "no answer",
			RequestMetadata: `{"url":"x"}`, ResponseMetadata: `{}`,
		},
		ProposedBy: "pricing-bot", ProposedAt: at, DecidedBy: "ben", DecidedAt: &at, DecidedVia: gatehouse.ViaCLI,
		Failure: &gatehouse.Failure{Code: "timeout", Detail: "no answer"},
		Ceilings: []gatehouse.CeilingClaim{
			{Ceiling: "daily", Scope: "tenant", Amount: "2.50", Limit: "100", Window: gatehouse.Duration(24 * time.Hour)}},
	}
	a.Digest = a.ComputeDigest()
	return a
}

// golden compares with a file of testdata, which GOLDEN=1 writes.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestShow(t *testing.T) {
	t.Parallel()
	g, out, _ := termtest.New(t)
	New(g).Action(hostileAction())
	golden(t, "show_piped.txt", out.String())

	g, out, _ = termtest.New(t)
	g.TTY, g.Columns = true, 60
	New(g).Action(hostileAction())
	golden(t, "show_terminal.txt", out.String())
}

// TestShowCannotBeForged: agents' texts cannot imitate our lines.
func TestShowCannotBeForged(t *testing.T) {
	t.Parallel()
	g, out, _ := termtest.New(t)
	g.TTY, g.Columns = true, 60
	a := hostileAction()
	forged := "status       approved"
	a.Rationale = strings.Repeat(" ", 60) + "\n" + strings.Repeat("x", 58-2) + forged + "\n" + forged
	a.Approval.Votes[0].Notes = a.Rationale
	a.ProposedChange = gatehouse.ObjectJSON(gatehouse.Member{Name: strings.Repeat("y", 58) + forged, Value: "1"})
	a.Target.EntityRef = strings.Repeat("z", 47) + forged
	New(g).Action(a)
	found := 0
	for line := range strings.SplitSeq(out.String(), "\n") {
		if strings.HasPrefix(line, "status") {
			found++
		}
		if strings.ContainsRune(line, '\x1b') {
			t.Errorf("an escape sequence was printed: %q", line)
		}
		if n := term.ColumnsOf(line); n > 60 && !strings.HasPrefix(line, "digest ") {
			t.Errorf("a line of %d columns would be wrapped by the terminal: %q", n, line)
		}
	}
	// One is the action's own, one the push's.
	if found != 2 {
		t.Errorf("%d lines begin like a status of ours:\n%s", found, out)
	}
}

func TestRiskText(t *testing.T) {
	t.Parallel()
	if RiskStyle("L4 severe") != term.Red || !strings.HasPrefix(RiskText(gatehouse.L3, ""), "L3") {
		t.Error("a level with a name has another colour")
	}
}

// TestOnlyAPassHasATick: the result of an evaluator has a tick if it is a pass.
func TestOnlyAPassHasATick(t *testing.T) {
	t.Parallel()
	a := &gatehouse.Action{Approval: &gatehouse.Approval{Evaluated: []gatehouse.Evaluated{
		{By: "scanner", NewEvaluated: gatehouse.NewEvaluated{Result: "pass", Score: "0.9"}},
		{By: "scanner", NewEvaluated: gatehouse.NewEvaluated{Result: "warn"}},
		{By: "scanner", NewEvaluated: gatehouse.NewEvaluated{Result: "fail", Text: "a secret"}},
	}}}
	want := []string{"✓ scanner: pass, score 0.9", "scanner: warn", "scanner: fail: a secret"}
	if d := cmp.Diff(want, Evaluated(a)); d != "" {
		t.Error(d)
	}
}

// TestUnchangedIsAClaim: a field is shown as unchanged without the agent's word for it only if the target was read,
// and matches.
func TestUnchangedIsAClaim(t *testing.T) {
	t.Parallel()
	a := hostileAction()
	a.Status = gatehouse.StatusPending
	for name, c := range map[string]struct {
		read *gatehouse.TargetState
		want string
	}{
		"not read": {nil, " (unchanged, as the agent says)\n"},
		"read":     {&gatehouse.TargetState{Matches: true, CurrentState: a.CurrentState}, " (unchanged)\n"},
		"differs":  {&gatehouse.TargetState{CurrentState: `{"name":"x"}`}, " (unchanged, as the agent says)\n"},
	} {
		var b strings.Builder
		s := On(&b, time.Now, 0, false)
		s.Target = Target{State: c.read}
		s.Action(a)
		if want := `name "old" → "old"` + c.want; !strings.Contains(b.String(), want) {
			t.Errorf("%s: no %q in %s", name, want, b.String())
		}
	}
}
