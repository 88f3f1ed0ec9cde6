package sqlconn_test

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	sqlconn "github.com/gatehouse-dev/gatehouse/connector/sql"
)

// TestCascades: a delete that also deletes or changes other rows has no reversal, and its preview says so.
func TestCascades(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		for action, reversible := range map[string]bool{
			"CASCADE": false, "SET NULL": false, "NO ACTION": true,
		} {
			t.Run(action, func(t *testing.T) {
				tg, c := newShop(t, engine)
				tg.exec(t, `CREATE TABLE parts (id INTEGER PRIMARY KEY, item VARCHAR(200),
					FOREIGN KEY (item) REFERENCES items (sku) ON DELETE `+action+`)`)
				wantCascades(t, tg, c, reversible)
			})
		}
	})
	for name, schema := range map[string]string{
		"view": `ALTER TABLE items RENAME TO base; CREATE VIEW inner_items AS SELECT * FROM base;
			CREATE VIEW items AS SELECT * FROM inner_items`,
		"partition": `ALTER TABLE items RENAME TO base;
			CREATE TABLE items (sku VARCHAR(200) NOT NULL, version INTEGER NOT NULL, price TEXT, qty BIGINT,
				name TEXT NOT NULL DEFAULT '', note TEXT) PARTITION BY LIST (sku);
			ALTER TABLE items ATTACH PARTITION base DEFAULT`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tg, c := newShop(t, "postgres")
			tg.exec(t, schema)
			tg.exec(t, `CREATE TABLE parts (id INTEGER, item VARCHAR(200) REFERENCES base ON DELETE CASCADE)`)
			wantCascades(t, tg, c, false)
		})
	}
}

func wantCascades(t *testing.T, tg *target, c *sqlconn.Connector, reversible bool) {
	t.Helper()
	remove := call("delete", "SKU-2", "1", "", `{}`)
	if tg.engine != "sqlserver" { // which has no previews
		previewed, err := c.Preview(t.Context(), remove)
		connectortest.Must(t, err)
		if previewed.Undo == nil || previewed.Undo.Possible != reversible || (previewed.Undo.Why == "") != reversible {
			t.Errorf("previewed as %+v", previewed.Undo)
		}
	}
	res := mustExecute(t, c, call("update", "SKU-2", "1", "", `{"price":"2.00"}`))
	if res.Reversal == nil {
		t.Error("the update has no reversal")
	}
	res = mustExecute(t, c, call("delete", "SKU-2", "2", "", `{}`))
	if got := res.Reversal != nil; got != reversible {
		t.Errorf("reversible: %t", got)
	}
}
