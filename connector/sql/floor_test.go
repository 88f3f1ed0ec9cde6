package sqlconn_test

import (
	"slices"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	sqlconn "github.com/gatehouse-dev/gatehouse/connector/sql"
)

func declared(operation string, level gatehouse.RiskLevel) map[string]sqlconn.Operation {
	return map[string]sqlconn.Operation{operation: {Floor: level}}
}

func withFields(e sqlconn.Entity, fields connector.FieldLevels) sqlconn.Entity {
	e.Fields = fields
	return e
}

func TestFloors(t *testing.T) {
	t.Parallel()
	cfg := items("sqlite:shop.db")
	cfg.Entities["item"] = withFields(cfg.Entities["item"], connector.FieldLevels{"note": 1, "name": 2, "price": 4})
	cfg.Entities["tag"] = sqlconn.Entity{Table: "tags", Key: "id", Operations: map[string]sqlconn.Operation{
		"insert": {Floor: 1}, "update": {Floor: 2}, "bulk_update": {Floor: 3}, "delete": {Floor: 1},
		"bulk_delete": {Floor: 2},
	}, Fields: connector.FieldLevels{"owner": 3, "text": 1}}
	cfg.Entities["plain"] = sqlconn.Entity{Table: "plain", Key: "id"}
	cfg.Entities["where"] = sqlconn.Entity{Table: "where", Key: "id", Operations: map[string]sqlconn.Operation{
		"update_where": {Floor: 3, L4Above: 20},
	}, Fields: connector.FieldLevels{"price": 5}}
	cfg.Operations = declared("insert", 4)
	c := newConnector(t, cfg)
	if got := c.Floor(call("upsert", "a", "1", "", `{"note":"x"}`)); got != 3 {
		t.Errorf("an upsert of a row that was seen: %v", got)
	}
	for _, test := range []struct {
		operation, entity, change string
		refs                      []string
		want                      gatehouse.RiskLevel
	}{
		// Nothing is declared.
		{"update", "plain", `{"note":"x"}`, nil, 3},
		{"delete", "plain", `{}`, nil, 4},
		{"update", "plain", `{"note":"x"}`, []string{"a"}, 5},
		{"bulk_update", "plain", `{"note":"x"}`, []string{"a"}, 5},
		{"bulk_insert", "plain", `{"a":{"note":"x"}}`, []string{"a"}, 5},
		{"bulk_delete", "plain", `{}`, []string{"a"}, 5},
		{"update", "unknown", `{"note":"x"}`, nil, 3},
		{"no-such", "plain", `{}`, nil, 5},
		// The operation is declared for all entities.
		{"insert", "plain", `{"note":"x"}`, nil, 4},
		// Fields are declared: the highest level counts, and every field must be declared.
		{"update", "item", `{"note":"x"}`, nil, 1},
		{"update", "item", `{"name":"y","note":"x"}`, nil, 2},
		{"update", "item", `{"note":"x","qty":1}`, nil, 3},
		{"update", "item", `{"note":"x","price":"1"}`, nil, 4},
		{"update", "item", `{"price":"1","qty":1}`, nil, 4},
		{"update", "item", `{"Note":"x"}`, nil, 3},
		{"update", "item", `{}`, nil, 3},
		{"update", "item", ``, nil, 3},
		{"update", "item", `[]`, nil, 3},
		// Declared fields lower nothing but an update of one row.
		{"insert", "item", `{"note":"x"}`, nil, 4},
		{"delete", "item", `{"note":"x"}`, nil, 4},
		{"update", "item", `{"note":"x"}`, []string{"a"}, 5},
		{"bulk_update", "item", `{"note":"x"}`, []string{"a"}, 5},
		// The operation is declared for the entity; fields can still raise its floor.
		{"insert", "tag", `{"other":"x"}`, nil, 1},
		{"update", "tag", `{"text":"x"}`, nil, 2},
		{"update", "tag", `{"owner":"x"}`, nil, 3},
		{"update", "tag", `{"text":"x"}`, []string{"a"}, 3},
		{"delete", "tag", `{}`, nil, 1},
		{"delete", "tag", `{}`, []string{"a"}, 2},
		{"bulk_delete", "tag", `{"a":{"owner":"x"}}`, []string{"a"}, 3},
		// An upsert has the floor of the insert or update that it makes, and at least 3.
		{"upsert", "plain", `{"note":"x"}`, nil, 4},
		{"upsert", "tag", `{"other":"x"}`, nil, 3},
		// An update_where is a bulk operation unless it is declared. With more rows than L4Above it is at least L4.
		{"update_where", "plain", `{"max_rows":1,"set":{"note":"x"}}`, nil, 5},
		{"update_where", "where", `{"max_rows":20,"set":{"note":"x"}}`, nil, 3},
		{"update_where", "where", `{"max_rows":20,"set":{"price":"x"}}`, nil, 5},
		{"update_where", "where", `{"max_rows":21,"set":{"note":"x"}}`, nil, 4},
		{"update_where", "where", `{"max_rows":"20","set":{"note":"x"}}`, nil, 4},
		{"update_where", "where", `{"set":{"note":"x"}}`, nil, 4},
	} {
		call := connector.Call{
			Operation: test.operation, ProposedChange: gatehouse.JSON(test.change),
			Target: gatehouse.Target{EntityType: test.entity, EntityRefs: test.refs},
		}
		if got := c.Floor(call); got != test.want {
			t.Errorf("%s of %s %v %s: %v, want %v", test.operation, test.entity, test.refs, test.change, got, test.want)
		}
	}
	want := []connector.Declaration{
		{Operation: "insert", EntityType: "item", Level: 4},
		{Operation: "update", EntityType: "item", Field: "name", Level: 2},
		{Operation: "update", EntityType: "item", Field: "note", Level: 1},
		{Operation: "update", EntityType: "item", Field: "price", Level: 4},
		{Operation: "insert", EntityType: "plain", Level: 4},
		{Operation: "insert", EntityType: "tag", Level: 1},
		{Operation: "insert", EntityType: "tag", Field: "owner", Level: 3},
		{Operation: "update", EntityType: "tag", Level: 2},
		{Operation: "update", EntityType: "tag", Field: "owner", Level: 3},
		{Operation: "bulk_update", EntityType: "tag", Level: 3},
		{Operation: "delete", EntityType: "tag", Level: 1},
		{Operation: "bulk_delete", EntityType: "tag", Level: 2},
		{Operation: "insert", EntityType: "where", Level: 4},
		{Operation: "insert", EntityType: "where", Field: "price", Level: 5},
		{Operation: "update", EntityType: "where", Field: "price", Level: 5},
		{Operation: "update_where", EntityType: "where", Level: 3},
		{Operation: "update_where", EntityType: "where", Field: "price", Level: 5},
	}
	if got := c.Declarations(); !slices.Equal(got, want) {
		t.Errorf("declared: %+v", got)
	}
}

// TestDeclaredFieldsExist: the probe reports a declared column that does not exist, and does not
// confuse it with another.
func TestDeclaredFieldsExist(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		tg, _ := newShop(t, engine)
		cfg := items(tg.dsn)
		cfg.Entities["item"] = withFields(cfg.Entities["item"], connector.FieldLevels{"notes": 1})
		c := newConnector(t, cfg)
		if err := c.Probe(t.Context()); err == nil {
			t.Error("a declared column that is not there is not found")
		}
		if code := gatehouse.CodeOf(
			c.Validate(call("update", "SKU-1042", "7", "", `{"notes":"x"}`))); code != gatehouse.CodeInvalid {
			t.Errorf("a proposal for such an entity: %s", code)
		}
	})
}

// TestSpellingsWhileTheTargetIsAway: the configuration's names are checked even without the
// catalogue.
func TestSpellingsWhileTheTargetIsAway(t *testing.T) {
	t.Parallel()
	cfg := items("sqlite:" + t.TempDir() + "/away.db")
	cfg.Entities["item"] = withFields(cfg.Entities["item"], connector.FieldLevels{"price": 4})
	c := newConnector(t, cfg)
	for change, want := range map[string]gatehouse.Code{
		`{"price":"1"}`: "", `{"other":"1"}`: "", `{"Price":"1"}`: gatehouse.CodeInvalid,
		`{"SKU":"a"}`: gatehouse.CodeInvalid,
	} {
		if err := c.Validate(call("update", "a", "1", "", change)); gatehouse.CodeOf(err) != want {
			t.Errorf("%s: %v", change, err)
		}
	}
}
