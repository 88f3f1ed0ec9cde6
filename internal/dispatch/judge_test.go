package dispatch

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	const (
		notSent, transient  = connector.NotSent, connector.Transient
		ambiguous, terminal = connector.Ambiguous, connector.Terminal
	)
	for _, c := range []struct {
		classes      string
		kind         connector.Kind
		clean, spent bool
		want         verdict
	}{
		{"ABC", notSent, true, false, verdictRetry},
		{"ABC", notSent, true, true, verdictFailed},
		{"AB", notSent, false, false, verdictRetry},
		{"C", notSent, false, false, verdictUnknown},
		{"ABC", notSent, false, true, verdictUnknown},
		{"AB", transient, true, false, verdictRetry},
		{"C", transient, true, false, verdictFailed},
		{"ABC", transient, true, true, verdictFailed},
		{"AB", transient, false, false, verdictRetry},
		{"C", transient, false, false, verdictUnknown},
		{"ABC", transient, false, true, verdictUnknown},
		{"AB", ambiguous, true, false, verdictRetry},
		{"AB", ambiguous, false, false, verdictRetry},
		{"C", ambiguous, true, false, verdictUnknown},
		{"C", ambiguous, false, false, verdictUnknown},
		{"ABC", ambiguous, true, true, verdictUnknown},
		{"ABC", ambiguous, false, true, verdictUnknown},
		{"ABC", terminal, true, false, verdictFailed},
		{"ABC", terminal, true, true, verdictFailed},
		{"ABC", terminal, false, false, verdictUnknown},
		{"ABC", terminal, false, true, verdictUnknown},
	} {
		for _, class := range c.classes {
			if got := judge(connector.Class(class), c.kind, c.clean, c.spent); got != c.want {
				t.Errorf("class %c, %v, clean %v, spent %v: %s, want %s", class, c.kind, c.clean, c.spent, got, c.want)
			}
		}
	}
}

func TestJudgeNeverCallsAnAmbiguityFailed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		class := connector.Class(rapid.SampledFrom([]string{"A", "B", "C", "", "D"}).Draw(t, "class"))
		kind := connector.Kind(rapid.IntRange(-1, 5).Draw(t, "kind"))
		isClean, spent := rapid.Bool().Draw(t, "clean"), rapid.Bool().Draw(t, "spent")
		v := judge(class, kind, isClean, spent)
		unproven := !isClean || kind != connector.NotSent && kind != connector.Transient && kind != connector.Terminal
		if v == verdictFailed && unproven {
			t.Fatal("failed without proof")
		}
		if v == verdictRetry && spent {
			t.Fatal("retried beyond the budget")
		}
		if v == verdictRetry && callsOnce(class) && (kind != connector.NotSent || !isClean) {
			t.Fatal("the one call of class C was repeated")
		}
	})
}

func TestClean(t *testing.T) {
	t.Parallel()
	r := func(attempt int, source string, o gatehouse.ReceiptOutcome) *gatehouse.Receipt {
		return &gatehouse.Receipt{Attempt: attempt, Source: source, Outcome: o}
	}
	refused := r(1, sourceCall, gatehouse.ReceiptTransient)
	for _, c := range []struct {
		name     string
		receipts []*gatehouse.Receipt
		n        int
		want     bool
	}{
		{"no attempt", nil, 0, true},
		{"an intent without a receipt", nil, 1, false},
		{"refused", []*gatehouse.Receipt{refused}, 1, true},
		{"refused, then an intent without a receipt", []*gatehouse.Receipt{refused}, 2, false},
		{"ambiguous", []*gatehouse.Receipt{r(1, sourceCall, gatehouse.ReceiptAmbiguous)}, 1, false},
		{"applied", []*gatehouse.Receipt{r(1, sourceCall, gatehouse.ReceiptApplied)}, 1, false},
		{"never sent, target down at the check", []*gatehouse.Receipt{
			r(1, sourceCall, gatehouse.ReceiptNotSent), r(2, sourceCheck, gatehouse.ReceiptNotSent),
		}, 2, true},
		{"a later refusal says nothing of an earlier attempt",
			[]*gatehouse.Receipt{r(2, sourceCall, gatehouse.ReceiptTerminal)}, 2, false},
		{"read back absent after two ambiguous", []*gatehouse.Receipt{
			r(1, sourceCall, gatehouse.ReceiptAmbiguous), r(2, sourceCall, gatehouse.ReceiptAmbiguous),
			r(2, sourceReadBack, gatehouse.ReceiptNotSent),
		}, 2, true},
		{"ambiguous after a read-back", []*gatehouse.Receipt{
			r(1, sourceReadBack, gatehouse.ReceiptNotSent), r(2, sourceCall, gatehouse.ReceiptAmbiguous),
		}, 2, false},
		{"an operator's word", []*gatehouse.Receipt{r(3, "operator", gatehouse.ReceiptTerminal)}, 3, true},
		{"a source that is not known", []*gatehouse.Receipt{r(1, "rumour", gatehouse.ReceiptTerminal)}, 1, false},
	} {
		if got := gatehouse.WithoutEffect(c.receipts, c.n); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestHostileExternalID: what a target gives as an id can be stored, and is bounded.
func TestHostileExternalID(t *testing.T) {
	t.Parallel()
	j := &job{push: &gatehouse.Push{}}
	hostile := connector.Result{ExternalID: "a\x00b\xff" + strings.Repeat("x", 900_000)}
	found, err := registryOf(t, Target{Name: "shop", Connector: able{
		readBack: func() (connector.Finding, connector.Result, error) { return connector.Present, hostile, nil },
	}}).ReadBack(t.Context(), &gatehouse.Action{Tenant: "default", ID: "act_1",
		Proposal: gatehouse.Proposal{Connector: "shop", Operation: "update"}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*gatehouse.Receipt{j.receipt("", gatehouse.ReceiptApplied, hostile), found} {
		if !strings.HasPrefix(r.ExternalID, "a\uFFFDb\uFFFDx") || len(r.ExternalID) > 256 {
			t.Errorf("%d bytes: %.20q", len(r.ExternalID), r.ExternalID)
		}
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	steps := []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute}
	for _, c := range []struct {
		n      int
		wish   time.Duration
		random float64
		want   time.Duration
	}{
		{1, 0, 0.5, 5 * time.Second},
		{1, 0, 0, 4 * time.Second},
		{2, 0, 0.5, 30 * time.Second},
		{3, 0, 0.5, 2 * time.Minute},
		{9, 0, 0.5, 2 * time.Minute},
		{0, 0, 0.5, 5 * time.Second},
		{1, 3 * time.Second, 0.5, 5 * time.Second},
		{1, 7 * time.Minute, 0.5, 7 * time.Minute},
		{1, 1000 * time.Hour, 0.5, 24 * time.Hour},
	} {
		if got := backoff(steps, c.n, c.wish, c.random); got != c.want {
			t.Errorf("attempt %d, wish %v, random %v: %v, want %v", c.n, c.wish, c.random, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3).Draw(t, "n")
		d, step := backoff(steps, n, 0, rapid.Float64Range(0, 0.999999).Draw(t, "random")), steps[n-1]
		if d < step*4/5 || d > step*6/5 {
			t.Fatalf("%v is not within a fifth of %v", d, step)
		}
	})
}
