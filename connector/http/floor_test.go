package httpconn_test

import (
	"errors"
	"slices"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	httpconn "github.com/gatehouse-dev/gatehouse/connector/http"
)

const levels = `
base_url: https://crm.example
entities:
  deal: {fields: {note: 1, stage: 2, owner: 4}}
  customer: {}
operations:
  update: {method: PATCH, path: "/{entity_type}/{entity_ref}"}
  replace: {method: PUT, path: "/{entity_type}/{entity_ref}"}
  publish: {method: PATCH, path: "/{entity_type}/{entity_ref}", body: '{"published": true}'}
  touch: {method: PATCH, path: "/{entity_type}/{entity_ref}", body: none}
  rewrite: {method: PATCH, path: "/{entity_type}/{current_state.where}"}
  comment: {method: POST, path: "/{entity_type}/{entity_ref}/comments", fields: {text: 2, note: 2}}
  tag: {method: POST, path: "/{entity_type}/{entity_ref}/tags", floor: 1, fields: {price: 3}}
  remove: {method: DELETE, path: "/{entity_type}/{entity_ref}"}
  drop: {method: DELETE, path: "/{entity_type}/{entity_ref}", floor: 2}
  bulk_archive: {method: POST, path: /archive}
`

func withLevels(t *testing.T) *httpconn.Connector {
	t.Helper()
	var cfg httpconn.Config
	connectortest.Must(t, yaml.Load([]byte(levels), &cfg, yaml.WithKnownFields()))
	c, err := httpconn.New(t.Context(), cfg, nil)
	connectortest.Must(t, err)
	return c.(*httpconn.Connector)
}

// TestEntitiesAreListed: the configured entity types are the only ones that operations list, and that have a schema.
func TestEntitiesAreListed(t *testing.T) {
	t.Parallel()
	c := withLevels(t)
	for _, op := range c.List() {
		if want := []string{"customer", "deal"}; !slices.Equal(op.EntityTypes, want) {
			t.Errorf("%s lists the entity types %q, want %q", op.Name, op.EntityTypes, want)
		}
	}
	for entity, want := range map[string]bool{"deal": true, "customer": true, "order": false, "": false} {
		if _, ok := c.Schema("update", entity); ok != want {
			t.Errorf("a schema for the entity type %q: %v, want %v", entity, ok, want)
		}
	}
}

func TestFloors(t *testing.T) {
	t.Parallel()
	c := withLevels(t)
	for _, test := range []struct {
		operation, entity, change string
		refs                      []string
		want                      gatehouse.RiskLevel
	}{
		// The levels of an entity's fields lower the floor only of a PATCH that sends the change itself.
		{"update", "deal", `{"note":"x"}`, nil, 1},
		{"update", "deal", `{"note":"x","stage":"won"}`, nil, 2},
		{"update", "deal", `{"amount":1,"note":"x"}`, nil, 3},
		{"update", "deal", `{"note":"x","owner":"me"}`, nil, 4},
		{"update", "deal", `{}`, nil, 3},
		{"update", "customer", `{"note":"x"}`, nil, 3},
		{"update", "deal", `{"note":"x"}`, []string{"a", "b"}, 5},
		{"replace", "deal", `{"note":"x"}`, nil, 3},
		{"replace", "deal", `{"note":"x","owner":"me"}`, nil, 4},
		{"publish", "deal", `{"note":"x"}`, nil, 3},
		{"touch", "deal", `{"note":"x"}`, nil, 3},
		{"rewrite", "deal", `{"note":"x"}`, nil, 3},
		// Fields of an operation: if the entity declares the field, too, the higher level counts.
		{"comment", "customer", `{"text":"x"}`, nil, 2},
		{"comment", "deal", `{"note":"x"}`, nil, 2},
		{"comment", "customer", `{"price":"1","text":"x"}`, nil, 3},
		{"comment", "deal", `{"stage":"won"}`, nil, 3},
		{"comment", "deal", `{"text":"x"}`, []string{"a"}, 5},
		// A declared operation; fields can still raise its floor.
		{"tag", "customer", `{"other":"x"}`, nil, 1},
		{"tag", "customer", `{"price":"1"}`, nil, 3},
		{"tag", "deal", `{"owner":"me"}`, nil, 4},
		{"remove", "deal", `{}`, nil, 4},
		{"remove", "deal", `{"note":"x"}`, nil, 4},
		{"remove", "deal", `{}`, []string{"a"}, 5},
		{"drop", "deal", `{}`, nil, 2},
		{"bulk_archive", "deal", `{"note":"x"}`, nil, 5},
		{"none", "deal", `{"note":"x"}`, nil, 5},
	} {
		call := connector.Call{
			Operation: test.operation, ProposedChange: gatehouse.JSON(test.change),
			Target: gatehouse.Target{EntityType: test.entity, EntityRefs: test.refs},
		}
		if got := c.Floor(call); got != test.want {
			t.Errorf("%s of %s %s: %v, want %v", test.operation, test.entity, test.change, got, test.want)
		}
	}
	want := []connector.Declaration{
		{Operation: "comment", Field: "note", Level: 2}, {Operation: "comment", Field: "text", Level: 2},
		{Operation: "comment", EntityType: "deal", Field: "owner", Level: 4},
		{Operation: "drop", Level: 2}, {Operation: "drop", EntityType: "deal", Field: "owner", Level: 4},
		{Operation: "publish", EntityType: "deal", Field: "owner", Level: 4},
		{Operation: "replace", EntityType: "deal", Field: "owner", Level: 4},
		{Operation: "rewrite", EntityType: "deal", Field: "owner", Level: 4},
		{Operation: "tag", Level: 1}, {Operation: "tag", Field: "price", Level: 3},
		{Operation: "tag", EntityType: "deal", Field: "owner", Level: 4},
		{Operation: "tag", EntityType: "deal", Field: "stage", Level: 2},
		{Operation: "touch", EntityType: "deal", Field: "owner", Level: 4},
		{Operation: "update", EntityType: "deal", Field: "note", Level: 1},
		{Operation: "update", EntityType: "deal", Field: "owner", Level: 4},
		{Operation: "update", EntityType: "deal", Field: "stage", Level: 2},
	}
	if got := c.Declarations(); !slices.Equal(got, want) {
		t.Errorf("declared: %+v", got)
	}
}

// TestAnyEntity: a declaration that applies to any entity type that an agent names is reported as
// such.
func TestAnyEntity(t *testing.T) {
	t.Parallel()
	cfg := httpconn.Config{BaseURL: "https://crm.example", Operations: map[string]httpconn.Operation{
		"label": {Method: "POST", Path: "/{entity_type}/{entity_ref}", Floor: 1},
		"note":  {Method: "POST", Path: "/notes", Fields: connector.FieldLevels{"text": 2}},
		"typed": {Method: "POST", Path: "/x", Body: `{"of": [{"type": "a {entity_type}"}]}`,
			Fields: connector.FieldLevels{"text": 2}},
	}}
	for _, entities := range []map[string]httpconn.Entity{nil, {"deal": {}}} {
		cfg.Entities = entities
		c, err := httpconn.New(t.Context(), cfg, nil)
		connectortest.Must(t, err)
		want := []connector.Declaration{
			{Operation: "label", Level: 1, AnyEntity: entities == nil}, {Operation: "note", Field: "text", Level: 2},
			{Operation: "typed", Field: "text", Level: 2, AnyEntity: entities == nil},
		}
		if got := c.(*httpconn.Connector).Declarations(); !slices.Equal(got, want) {
			t.Errorf("declared: %+v", got)
		}
	}
}

// TestNamesAreOne: an entity type that is not configured, and another spelling of a declared name,
// are refused at the proposal and again before sending.
func TestNamesAreOne(t *testing.T) {
	t.Parallel()
	c := withLevels(t)
	for _, test := range []struct{ operation, entity, change, pointer string }{
		{"update", "invoice", `{"note":"x"}`, "/target/entity_type"},
		{"update", "Deal", `{"note":"x"}`, "/target/entity_type"},
		{"update", "deal ", `{"note":"x"}`, "/target/entity_type"},
		{"update", "ｄeal", `{"note":"x"}`, "/target/entity_type"},
		{"update", "deal", `{"Owner":"me"}`, "/proposed_change/Owner"},
		{"update", "deal", "{\"owner\u200b\":\"me\"}", "/proposed_change/owner\u200b"},
		{"tag", "customer", `{" price":"1"}`, "/proposed_change/ price"},
		{"update", "deal", `{"note":"x"}`, ""},
		{"update", "customer", `{"Owner":"me"}`, ""},
	} {
		call := connector.Call{
			Tenant: "default", ActionID: "act_1", IdempotencyKey: "k", Operation: test.operation,
			ProposedChange: gatehouse.JSON(test.change),
			Target:         gatehouse.Target{EntityType: test.entity, EntityRef: "1"},
		}
		err := c.Validate(call)
		var e *gatehouse.Error
		if test.pointer == "" {
			if err != nil {
				t.Errorf("%s of %s %s: %v", test.operation, test.entity, test.change, err)
			}
			continue
		}
		if !errors.As(err, &e) || e.Code != gatehouse.CodeInvalid || len(e.Violations) != 1 ||
			e.Violations[0].Pointer != test.pointer {
			t.Errorf("%s of %s %s: %v, want %s", test.operation, test.entity, test.change, err, test.pointer)
		}
		var failure *connector.Error
		if _, err := c.Execute(t.Context(), call); !errors.As(err, &failure) || failure.Kind != connector.Terminal {
			t.Errorf("%s of %s %s is sent: %v", test.operation, test.entity, test.change, err)
		}
	}
}
