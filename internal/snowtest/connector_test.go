package snowtest_test

import (
	"errors"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	httpconn "github.com/gatehouse-dev/gatehouse/connector/http"
	"github.com/gatehouse-dev/gatehouse/internal/snowtest"
)

// The Table API as a connector: sys_mod_count is the version, and an update is
// found again by its fields. A journal field cannot be found again.
const connectorYAML = `
type: http
allow_private: true
auth: {basic: {username: gate, password: {secret: SNOW}}}
operations:
  update:
    method: PATCH
    path: "/api/now/table/incident/{entity_ref}?sysparm_exclude_reference_link=true"
    external_id: /result/number
    check: {path: "/api/now/table/incident/{entity_ref}?sysparm_exclude_reference_link=true",
      version: /result/sys_mod_count, state: /result}
    read_back: {path: "/api/now/table/incident/{entity_ref}?sysparm_exclude_reference_link=true", change: /result,
      external_id: /result/number}
    reverse: {operation: update, version: /result/sys_mod_count}
`

func TestThroughTheConnector(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var config httpconn.Config
	if err := yaml.Load([]byte(connectorYAML), &config, yaml.WithKnownFields()); err != nil {
		t.Fatal(err)
	}
	config.BaseURL = w.http.URL
	c, err := httpconn.New(t.Context(), config, func(string) (string, error) { return "pass", nil })
	if err != nil {
		t.Fatal(err)
	}
	call := connector.Call{
		Tenant: "default", ActionID: "act_1", IdempotencyKey: "k-1", Operation: "update", Attempt: 1,
		Target:         gatehouse.Target{EntityType: "incident", EntityRef: w.incident, Version: "0"},
		CurrentState:   gatehouse.MustJSON(map[string]string{"assignment_group": w.service}),
		ProposedChange: gatehouse.MustJSON(map[string]string{"assignment_group": w.network}),
	}
	if state, err := c.(connector.Checker).Check(t.Context(), call); err != nil || !state.Matches || state.Unchecked {
		t.Fatalf("%+v, %v", state, err)
	}
	w.fault.Store(&snowtest.Fault{Status: 503})
	var failed *connector.Error
	if _, err := c.Execute(t.Context(), call); !errors.As(err, &failed) {
		t.Fatal(err)
	}
	// The change is made and its answer lost: ambiguous, until it is read back.
	w.fault.Store(&snowtest.Fault{Drop: true})
	if _, err := c.Execute(t.Context(), call); !errors.As(err, &failed) || failed.Kind != connector.Ambiguous {
		t.Fatal(err)
	}
	w.fault.Store(nil)
	finding, res, err := c.(connector.ReadBacker).ReadBack(t.Context(), call)
	if err != nil || finding != connector.Present || res.ExternalID != "INC0010001" {
		t.Fatalf("%v, %+v, %v", finding, res, err)
	}
	if got := w.Writes(); len(got) != 1 || got[0].ModCount != "1" {
		t.Errorf("ledger = %+v", got)
	}
	// A second change, and its reversal.
	call.Target.Version = "1"
	call.CurrentState, call.ProposedChange = `{"state":"1"}`, `{"state":"2"}`
	res, err = c.Execute(t.Context(), call)
	if err != nil || res.Reversal == nil || res.Reversal.Target.Version != "2" {
		t.Fatalf("%+v, %v", res, err)
	}
	call.Target, call.ProposedChange = res.Reversal.Target, res.Reversal.ProposedChange
	if _, err := c.Execute(t.Context(), call); err != nil || w.Incident(w.incident)["state"] != "1" ||
		len(w.Writes()) != 3 {
		t.Errorf("%v, ledger %+v", err, w.Writes())
	}
}
