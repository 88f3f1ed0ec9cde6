package runs_test

import (
	"net/http"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/runs"
)

// TestRefOfADelivery: deliveries with equal refs start one run; the delivery's id replaces a ref without a value.
func TestRefOfADelivery(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		w.apply("main", "name: main\non: {webhook: {kind: generic, secret: hook, ref: input.ref}}\nsteps:\n"+
			"  - {id: one, uses: transform, with: {}}\n")
		for i, c := range []struct{ id, body, ref string }{
			{"a", `{"ref":"x"}`, "webhook:x"}, {"b", `{"ref":"x"}`, "webhook:x"}, {"c", `{"ref":7}`, "webhook:7"},
			{"d", `{"ref":""}`, "webhook:d"}, {"e", `{"ref":""}`, "webhook:e"}, {"f", `{"ref":null}`, "webhook:f"},
		} {
			run, replayed, err := w.runs.Receive(w.Context(), "", "main", http.Header{"Webhook-Id": {c.id}}, []byte(c.body))
			w.must(err)
			if run.TriggerRef != c.ref || replayed != (i == 1) {
				t.Errorf("%s: the run's ref is %s, replayed %v; want %s", c.body, run.TriggerRef, replayed, c.ref)
			}
		}
	}, func(c *runs.Config, _ *runs.RuntimeConfig) { c.Hooks = signed{} })
}
