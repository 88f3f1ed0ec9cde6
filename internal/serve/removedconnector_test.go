package serve

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
	"github.com/gatehouse-dev/gatehouse/internal/ring"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
)

// TestRemovedConnectorOfTheStore: the breaker of a connector that is removed from the store goes with it, and so do
// its metrics. A new connector of that name begins with a closed breaker.
func TestRemovedConnectorOfTheStore(t *testing.T) {
	t.Parallel()
	s := newStored(t)
	var well atomic.Bool
	s.target = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !well.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte(`{}`))
	}))
	t.Cleanup(s.target.Close)
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, masterKeyFile), []byte(ring.NewMasterKey()), 0o600))
	on, err := s.open(dir, servetest.Config(t, `{
connectors: {shop: {type: worker, operations: {update: {}}}},
dispatch: {hold: 0s, backoff: [20ms], breaker: {failures: 1, open: 1h, longest: 1h}}}`))
	must(t, err)
	t.Cleanup(func() { _ = on.Close() })
	s.people(on)
	metrics := func(name string) bool {
		t.Helper()
		res, err := http.Get(on.URL + "/metrics")
		must(t, err)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		must(t, err)
		return strings.Contains(string(body), "\n"+name+`{connector="crm"} 1`)
	}

	s.apply(s.source("/a"))
	s.runs(on, 1)
	servetest.DecideAtOnce(t, s.change(), []*client.Client{s.ana})
	for deadline := time.Now().Add(time.Minute); !metrics("gatehouse_breaker_open"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the breaker did not open")
		}
	}
	s.apply(strings.Replace(s.source("/a"), "crm:", "erp:", 1))
	s.runs(on, 2)
	for _, name := range []string{"gatehouse_breaker_open", "gatehouse_breaker_opened_total"} {
		if metrics(name) {
			t.Errorf("%s of the removed connector is still 1", name)
		}
	}

	well.Store(true)
	s.apply(s.source("/b"))
	s.runs(on, 3)
	a := s.change()
	servetest.DecideAtOnce(t, a, []*client.Client{s.ana})
	if now := s.end(a); now.Status != gatehouse.StatusApplied {
		t.Errorf("a change by the new connector: %s, %+v", now.Status, now.Failure)
	}
}
