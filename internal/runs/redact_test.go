package runs_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// configuredSecret is the secret in every world's configuration.
const configuredSecret = "s3cr3t-of-the-configuration"

// TestStepsTellNoSecret has workers and models report a secret in their outputs
// and in their failures.
func TestStepsTellNoSecret(t *testing.T) { onBoth(t, testStepsTellNoSecret) }

func testStepsTellNoSecret(t *testing.T, w *world) {
	echo := configuredSecret + " " + hex.EncodeToString([]byte(configuredSecret)) + " " +
		base64.StdEncoding.EncodeToString([]byte("Bearer "+configuredSecret))
	output := gatehouse.ObjectJSON(gatehouse.Member{Name: "text", Value: gatehouse.StringJSON(echo)},
		gatehouse.Member{Name: configuredSecret, Value: "1"})
	clean := func(what string, said any) {
		t.Helper()
		text := fmt.Sprintf("%+v", said)
		for _, secret := range strings.Fields(echo) {
			if strings.Contains(text, secret) || strings.Contains(text, secret[12:len(secret)-4]) {
				t.Errorf("%s holds the secret: %s", what, text)
			}
		}
		if !strings.Contains(text, "[redacted]") {
			t.Errorf("%s does not say that a text was redacted: %s", what, text)
		}
	}
	w.apply("page",
		"name: page\nsteps:\n  - {id: one, uses: worker.page, retry: {max: 0}}\n  - {id: two, needs: [one], uses: "+
			"transform, with: \"${{ steps.one.output.text }}\"}\n")
	w.apply("ask",
		"name: ask\nsteps:\n  - {id: one, uses: model.local, retry: {max: 0}, with: {model: small, prompt: hi}}\n")
	lease := func() gatehouse.LeasedStep {
		t.Helper()
		got, err := w.runs.LeaseSteps(w.as("bot"), gatehouse.LeaseRequest{Tools: []string{"page"},
			Wait: gatehouse.Duration(30 * time.Second)})
		w.must(err)
		if len(got) != 1 {
			t.Fatalf("leased %d steps", len(got))
		}
		return got[0]
	}
	var all []string
	ended := func(r *gatehouse.Run) *gatehouse.Run {
		all = append(all, r.ID)
		return w.until(r.ID, "ended", func(r *gatehouse.Run) bool { return r.FinishedAt != nil })
	}

	run := w.start("page", `{}`)
	s := lease()
	done, err := w.runs.CompleteStep(w.as("bot"), s.Step.ID, gatehouse.StepResult{
		Generation: s.Lease.Generation, Output: output,
		Usage: []gatehouse.ModelUsage{{Provider: "acme", Model: configuredSecret}},
	})
	w.must(err)
	clean("the answer to a result", fmt.Sprintf("%+v", *done))
	clean("a run of a worker", fmt.Sprintf("%+v", deref(ended(run))))

	run = w.start("page", `{}`)
	s = lease()
	done, err = w.runs.FailStep(w.as("bot"), s.Step.ID,
		gatehouse.StepFailure{Generation: s.Lease.Generation, Code: "no", Detail: echo})
	w.must(err)
	clean("the answer to a failure", fmt.Sprintf("%+v %+v", *done, done.Failure))
	clean("a run that failed", deref(ended(run)))

	w.models.answer = func(gatehouse.JSON) gatehouse.JSON { return output }
	clean("a run of a model", deref(ended(w.start("ask", `{}`))))
	w.models.failures = []*gatehouse.StepFailure{{Code: "no", Detail: echo}}
	run = ended(w.start("ask", `{}`))
	clean("a run of a model that failed", deref(run))

	// The second transform is executed inline.
	w.apply("join", `name: join
steps:
  - {id: one, uses: transform, with: {text: "${{ 's3cr3t-of-' + 'the-configuration' }}"}}
  - {id: two, needs: [one], uses: transform, with: {text: "${{ 's3cr3t-of-' + 'the-configuration' }}"}}
`)
	for _, s := range ended(w.start("join", `{}`)).Steps {
		if s.Output != `{"text":"[redacted]"}` {
			t.Errorf("the output of %s: %s", s.Key, s.Output)
		}
	}

	// A caller cannot guess the secret by its beginning, which stays as the caller wrote it.
	guess := gatehouse.ObjectJSON(gatehouse.Member{Name: "text",
		Value: gatehouse.StringJSON(strings.Repeat("x ", 128) + configuredSecret[:8] + "…")})
	w.apply("same", `name: same
steps:
  - {id: one, uses: transform, with: "${{ input }}"}
  - {id: two, needs: [one], uses: transform, with: "${{ input }}"}
`)
	for _, s := range ended(w.start("same", guess)).Steps {
		if s.Output != guess {
			t.Errorf("the output of %s: %s", s.Key, s.Output)
		}
	}
	w.start("page", `{}`)
	s = lease()
	done, err = w.runs.CompleteStep(w.as("bot"), s.Step.ID,
		gatehouse.StepResult{Generation: s.Lease.Generation, Output: guess})
	w.must(err)
	if done.Output != guess {
		t.Errorf("the answer to a result: %s", done.Output)
	}
	for _, id := range all {
		w.until(id, "bundled, with its entries in the log", func(r *gatehouse.Run) bool { return r.Evidence != "" })
		w.must(w.store.View(t.Context(), run.Tenant, func(tx gatehouse.ReadTx) error {
			entries, err := tx.ListRunEntries(id)
			for _, e := range entries {
				if strings.Contains(string(e.Body), configuredSecret) {
					t.Errorf("the log holds the secret: %s", e.Body)
				}
			}
			if len(entries) < 2 {
				t.Errorf("the log has only %d entries of the run", len(entries))
			}
			return err
		}))
	}
}

// deref is everything that a run shows.
func deref(r *gatehouse.Run) string {
	return string(gatehouse.MustJSON(r))
}
