package servicenow_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	"github.com/gatehouse-dev/gatehouse/connector/servicenow"
	"github.com/gatehouse-dev/gatehouse/internal/snowtest"
)

const password = "pass-of-the-gate"

// world is a fake instance with one incident, and a connector to it.
type world struct {
	*snowtest.Server
	url               string
	http              *httptest.Server
	incident          string
	network, desk     string // groups
	fault             atomic.Pointer[func(*http.Request) snowtest.Fault]
	requests, changes atomic.Int64
}

// newWorld makes a world; change may alter the fake.
func newWorld(t testing.TB, change func(*snowtest.Options)) *world {
	t.Helper()
	w := &world{}
	options := snowtest.Options{
		Users:   map[string]snowtest.User{"gate": {Password: password}},
		Clients: map[string]string{"client": "secret-of-the-client"},
		Fault: func(r *http.Request) snowtest.Fault {
			w.requests.Add(1)
			if r.Method != http.MethodGet {
				w.changes.Add(1)
			}
			if fault := w.fault.Load(); fault != nil {
				return (*fault)(r)
			}
			return snowtest.Fault{}
		},
	}
	if change != nil {
		change(&options)
	}
	w.Server = snowtest.New(options)
	w.network, w.desk = w.AddGroup("Network"), w.AddGroup("Service Desk")
	w.AddLabel("vip")
	w.incident = w.AddIncident(map[string]string{
		"short_description": "Can't reach the VPN", "assignment_group": w.desk, "impact": "2", "urgency": "2",
	})
	s := httptest.NewServer(w.Server)
	t.Cleanup(s.Close)
	w.url, w.http = s.URL, s
	return w
}

// breaks makes the fake answer writes, and with reads also reads, with fault until mend is
// called.
func (w *world) breaks(fault snowtest.Fault, reads bool) {
	f := func(r *http.Request) snowtest.Fault {
		if r.Method == http.MethodGet && !reads {
			return snowtest.Fault{}
		}
		return fault
	}
	w.fault.Store(&f)
}

func (w *world) mend() { w.fault.Store(nil) }

func (w *world) config() servicenow.Config {
	return servicenow.Config{
		Instance:     w.url,
		AllowPrivate: true,
		Auth: servicenow.Auth{
			Basic: &servicenow.Basic{Username: "gate", Password: connector.Secret{Secret: "SNOW"}},
		},
		Tables: map[string]servicenow.Table{"incident": {}, "change_request": {}},
	}
}

var secrets = connectortest.Named(map[string]string{"SNOW": password, "CLIENT": "secret-of-the-client"})

func (w *world) connector(t testing.TB, change func(*servicenow.Config)) *servicenow.Connector {
	t.Helper()
	cfg := w.config()
	if change != nil {
		change(&cfg)
	}
	return connectortest.Build[*servicenow.Connector](t, servicenow.New, cfg, secrets)
}

// call is an operation on the incident.
func (w *world) call(operation string, change gatehouse.JSON) connector.Call {
	return connectortest.Call(operation, "incident", w.incident, "", change)
}

// update changes the incident's state from its present one.
func (w *world) update() connector.Call {
	c := w.call("update", `{"state":"2"}`)
	c.CurrentState, c.Target.Version = `{"state":"1"}`, "0"
	return c
}

// withRule is the business rule of docs/connectors/servicenow.md.
func withRule(o *snowtest.Options) {
	o.Rule = func(_ string, was, write map[string]string) bool {
		expected := write["u_gatehouse_expected"]
		delete(write, "u_gatehouse_expected")
		return expected == "" || expected == was["sys_mod_count"]
	}
}

func conditional(c *servicenow.Config) { c.Condition = &servicenow.Condition{} }

var (
	wantFailure = connectortest.WantFailure
	failure     = connectortest.Failure
	found       = connectortest.WantFinding
)

const soon = 5 * time.Second
