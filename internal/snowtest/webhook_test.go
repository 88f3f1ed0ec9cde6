package snowtest_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/hook"
	"github.com/gatehouse-dev/gatehouse/internal/snowtest"
)

// TestTell verifies the notices as webhooks of kind servicenow.
func TestTell(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	type came struct {
		delivery hook.Delivery
		input    gatehouse.JSON
	}
	got := make(chan came, 3)
	receiver := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		d, err := hook.Verify(hook.KindServiceNow, []byte("s3cret"), r.Header, body, time.Now())
		if err != nil {
			rw.WriteHeader(gatehouse.StatusOf(gatehouse.CodeOf(err)))
			return
		}
		input, err := hook.Input(r.Header, d, body)
		if err != nil {
			t.Error(err)
		}
		got <- came{d, input}
		rw.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(receiver.Close)
	h := snowtest.Hook{URL: receiver.URL, Secret: []byte("s3cret")}
	tell := func(h snowtest.Hook, want int) {
		t.Helper()
		if status, answer, err := w.Tell(t.Context(), h, w.incident, "incident.updated"); err != nil || status != want {
			t.Fatal(status, string(answer), err)
		}
	}
	tell(h, 202)
	h.KeyID = "8c11fe"
	tell(h, 202)
	w.Touch(w.incident, map[string]string{"state": "2"})
	tell(h, 202)
	h.Secret = []byte("other")
	tell(h, 401)
	first, again, changed := <-got, <-got, <-got
	if first.delivery != again.delivery || first.delivery == changed.delivery ||
		first.delivery.Event != "incident.updated" {
		t.Errorf("deliveries %v, %v, %v", first.delivery, again.delivery, changed.delivery)
	}
	body, _ := changed.input.Get("body")
	for name, want := range map[string]string{"sys_id": w.incident, "state": "2", "sys_mod_count": "1",
		"number": "INC0010001"} {
		v, _ := body.Get(name)
		if text, _ := v.Text(); text != want {
			t.Errorf("%s = %s, want %s", name, v, want)
		}
	}
}
