package snowtest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/snowtest"
)

// world is a fake with one incident.
type world struct {
	*snowtest.Server
	http     *httptest.Server
	network  string // groups
	service  string
	incident string
	second   atomic.Int64
	fault    atomic.Pointer[snowtest.Fault]
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{}
	w.Server = snowtest.New(snowtest.Options{
		Users:  map[string]snowtest.User{"gate": {Password: "pass"}, "reader": {Password: "pass", ReadOnly: true}},
		Tokens: map[string]string{"tok": "gate"},
		Now:    func() time.Time { return time.Unix(1453471957+w.second.Load(), 0) },
		Fault: func(*http.Request) snowtest.Fault {
			if fault := w.fault.Load(); fault != nil {
				return *fault
			}
			return snowtest.Fault{}
		},
	})
	w.network, w.service = w.AddGroup("Network"), w.AddGroup("Service Desk")
	w.incident = w.AddIncident(
		map[string]string{"short_description": "Can't reach the VPN", "assignment_group": w.service, "impact": "2",
			"urgency": "2"})
	w.http = httptest.NewServer(w.Server)
	t.Cleanup(w.http.Close)
	return w
}

// reply is an answer without its body.
type reply struct {
	StatusCode int
	Status     string
	Header     http.Header
}

// do sends a request; headers are pairs. A header of "" is left out.
func (w *world) do(t *testing.T, method, path, body string, headers ...string) (reply, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, w.http.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth("gate", "pass")
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		if req.Header.Set(headers[i], headers[i+1]); headers[i+1] == "" {
			req.Header.Del(headers[i])
		}
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.Header.Get("Server") != "gatehouse-fake-servicenow" {
		t.Error("it does not say that it is a fake")
	}
	return reply{res.StatusCode, res.Status, res.Header}, string(b)
}

// result reads the envelope of an answer with the status.
func (w *world) result(t *testing.T, status int, method, path, body string, headers ...string) map[string]any {
	t.Helper()
	res, text := w.do(t, method, path, body, headers...)
	var a struct {
		Result map[string]any `json:"result"`
	}
	if err := json.Unmarshal([]byte(text), &a); err != nil || res.StatusCode != status || a.Result == nil {
		t.Fatalf("%s %s: %d %s (%v)", method, path, res.StatusCode, text, err)
	}
	return a.Result
}

const table = "/api/now/table/incident"

func (w *world) path() string { return table + "/" + w.incident }
