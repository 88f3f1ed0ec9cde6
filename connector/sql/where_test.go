package sqlconn_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	sqlconn "github.com/gatehouse-dev/gatehouse/connector/sql"
	"github.com/gatehouse-dev/gatehouse/internal/jsonshape"
)

// where makes an update_where. rows is the number that was seen, 0 for none.
func where(conditions, set string, maxRows, rows int) connector.Call {
	state := ""
	if rows > 0 {
		state = fmt.Sprintf(`{"rows":%d}`, rows)
	}
	return call("update_where", "*", "", state,
		fmt.Sprintf(`{"where":[%s],"set":%s,"max_rows":%d}`, conditions, set, maxRows))
}

// few are the conditions that SKU-2 and SKU-3 fulfil.
const few = `{"column":"qty","op":"<=","value":3},{"column":"version","op":"=","value":1},` +
	`{"column":"name","op":"in","value":["bulb","cord"]}`

func TestUpdateWhereConformance(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		connectortest.Run(t, connectortest.Harness{Skip: faultsElsewhere, New: func(t *testing.T) *connectortest.Fixture {
			tg, c := newShop(t, engine)
			return &connectortest.Fixture{
				Connector: c,
				Call:      where(few, `{"price":"9.00"}`, 20, 2),
				Disturb: func(t *testing.T) {
					tg.exec(t, `UPDATE items SET version = 5 WHERE sku = 'SKU-2'`)
				},
				Read: func(t *testing.T) gatehouse.JSON {
					return gatehouse.StringJSON(tg.one(t, `SELECT max(price) || min(price) FROM items WHERE qty < 4`))
				},
				Effects: func(t *testing.T) int {
					return tg.number(t, `SELECT version - 1 FROM items WHERE sku = 'SKU-3'`)
				},
				Dump: tg.everything,
			}
		}})
	})
}

// TestUpdateWhere: the rows of the condition change, within the approved number.
func TestUpdateWhere(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		tg, c := newShop(t, engine)
		before := tg.dump(t)
		for name, test := range map[string]struct {
			call connector.Call
			code string
		}{
			"more rows than approved": {where(few, `{"note":"n"}`, 1, 0), "not_as_approved"},
			"fewer rows than seen":    {where(few, `{"note":"n"}`, 20, 3), "target_changed"},
			"more rows than seen":     {where(few, `{"note":"n"}`, 20, 1), "target_changed"},
			"no row":                  {where(`{"column":"qty","op":"<","value":2}`, `{"note":"n"}`, 20, 0), "target_changed"},
			"null is not equal": {where(`{"column":"note","op":"in","value":["y"]}`, `{"note":"n"}`, 20, 0),
				"target_changed"},
		} {
			_, err := c.Execute(t.Context(), test.call)
			if e := failure(t, err); e == nil || e.Kind != connector.Terminal || e.Code != test.code {
				t.Errorf("%s: got %v, want %s", name, e, test.code)
			}
			state, err := c.Check(t.Context(), test.call)
			if err != nil || state.Matches || state.Expected == state.Actual {
				t.Errorf("%s: the check says %+v, %v", name, state, err)
			}
		}
		if after := tg.dump(t); after != before {
			t.Fatalf("the table was\n%s\nand is\n%s", before, after)
		}

		approved := where(few, `{"price":"9.00","note":null}`, 20, 2)
		res := mustExecute(t, c, approved)
		if diff := cmp.Diff(connector.Result{
			RequestMetadata:  `{"rows":2,"statement":"update","table":"items"}`,
			ResponseMetadata: `{"keys":["SKU-2","SKU-3"],"rows_affected":2}`,
			Reversal: &gatehouse.Reversal{
				Operation: "bulk_update", Target: gatehouse.Target{EntityType: "item", EntityRefs: []string{"SKU-2", "SKU-3"}},
				CurrentState: `{"SKU-2":{"note":null,"price":"9.00","version":2},` +
					`"SKU-3":{"note":null,"price":"9.00","version":2}}`,
				ProposedChange: `{"SKU-2":{"note":"x","price":"1.00"},"SKU-3":{"note":null,"price":"3.00"}}`,
			},
		}, res); diff != "" {
			t.Error(diff)
		}
		// The record answers the same call again, though the condition names no row any more.
		if again := mustExecute(t, c, approved); again.ResponseMetadata != res.ResponseMetadata {
			t.Errorf("the same call again: %s", again.ResponseMetadata)
		}
		mustExecute(t, c, again(res.Reversal))
		if got := tg.one(t, `SELECT count(*) FROM items WHERE price = '9.00'`); got != "0" {
			t.Errorf("%s rows are not as before", got)
		}
	})
}

// TestUpdateWhereOfMany: above 1,000 rows there is no reversal, and the receipt keeps no list of keys.
func TestUpdateWhereOfMany(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		tg, c := newShop(t, engine)
		var values []string
		for i := range 1200 {
			values = append(values, fmt.Sprintf("('a-long-key-%05d', 1, '1.00', 77)", i))
		}
		tg.exec(t, `INSERT INTO items (sku, version, price, qty) VALUES `+strings.Join(values, ","))
		seventySeven := `{"column":"qty","op":"=","value":77}`
		_, err := c.Execute(t.Context(), where(seventySeven, `{"note":"n"}`, 1199, 0))
		wantFailure(t, err, connector.Terminal, "not_as_approved")
		res := mustExecute(t, c, where(seventySeven, `{"note":"n"}`, 1200, 0))
		if n := tg.one(t, `SELECT count(*) FROM items WHERE note = 'n'`); n != "1200" || res.Reversal != nil ||
			!strings.Contains(string(res.ResponseMetadata), `"keys_omitted"`) {
			t.Errorf("%s rows, %+v", n, res)
		}
	})
}

// TestUpdateWherePreview shows the number, and each row before and after.
func TestUpdateWherePreview(t *testing.T) {
	t.Parallel()
	eachPreviewed(t, func(t *testing.T, engine string) {
		tg, c := newShop(t, engine)
		got, failed := tg.preview(t, c, where(few, `{"price":"9.00"}`, 20, 0))
		as := gatehouse.PreviewAsProposed
		want := gatehouse.Preview{Rows: 2, Undo: yes(), Changes: []gatehouse.PreviewChange{
			{Ref: "SKU-2", Path: "/price", Before: `"1.00"`, After: `"9.00"`, How: as},
			{Ref: "SKU-3", Path: "/price", Before: `"3.00"`, After: `"9.00"`, How: as},
		}}
		if diff := cmp.Diff(want, got); diff != "" || failed != nil {
			t.Errorf("%s, %v", diff, failed)
		}
		got, failed = tg.preview(t, c, where(few, `{"price":"9.00"}`, 1, 0))
		if failed != nil || got.Failure == nil || got.Failure.Code != "not_as_approved" {
			t.Errorf("too many rows: %+v, %v", got, failed)
		}
	})
}

// TestUpdateWhereCollation: a change is refused if a row fulfils its condition only by the collation.
func TestUpdateWhereCollation(t *testing.T) {
	t.Parallel()
	for engine, collation := range map[string]string{
		"sqlite": "NOCASE", "sqlserver": "NOCASE", "mariadb": "utf8mb4_general_ci",
	} {
		tg := newTarget(t, engine, `CREATE TABLE items (sku VARCHAR(40) PRIMARY KEY, name VARCHAR(40) COLLATE `+collation+`);
			INSERT INTO items VALUES ('a', 'bulb'), ('b', 'Bulb')`)
		cfg := items(tg.dsn)
		cfg.Entities["item"] = sqlconn.Entity{Table: "items", Key: "sku"}
		c := newConnector(t, cfg)
		_, err := c.Execute(t.Context(), where(`{"column":"name","op":"=","value":"bulb"}`, `{"name":"x"}`, 20, 0))
		wantFailure(t, err, connector.Terminal, "not_as_approved")
		mustExecute(t, c, where(`{"column":"name","op":"in","value":["bulb","Bulb"]}`, `{"name":"x"}`, 20, 2))
	}
}

// TestSchemas: the schema of each operation names the columns that the configuration names.
func TestSchemas(t *testing.T) {
	t.Parallel()
	cfg := items("sqlite:shop.db")
	cfg.Entities["item"] = sqlconn.Entity{Table: "items", Key: "sku", Version: "version", Columns: []string{"price"}}
	c := newConnector(t, cfg)
	for operation, test := range map[string]struct{ good, bad string }{
		"insert": {`{"sku":"a","price":"1","version":1}`, `{"note":"x"}`},
		"update": {`{"price":"1"}`, `{"version":1}`},
		"upsert": {`{"price":"1"}`, `{"note":"x"}`},
		"delete": {`{"deleted":true}`, `{"price":"1"}`},
		"update_where": {`{"where":[{"column":"version","op":"<","value":2}],"set":{"price":"1"},"max_rows":1}`,
			`{"where":[{"column":"note","op":"=","value":1}],"set":{"price":"1"},"max_rows":1}`},
		"bulk_update": {`{"price":"1"}`, `[]`},
	} {
		j, ok := c.Schema(operation, "item")
		schema, err := jsonshape.Compile(j)
		if !ok || err != nil {
			t.Fatalf("%s: %v, %v", operation, ok, err)
		}
		if v := schema.Check("", gatehouse.JSON(test.good)); len(v) > 0 {
			t.Errorf("%s: %v", operation, v.Err())
		}
		if v := schema.Check("", gatehouse.JSON(test.bad)); len(v) == 0 {
			t.Errorf("%s takes %s", operation, test.bad)
		}
	}
	if _, ok := c.Schema("update", "unknown"); ok {
		t.Error("an unknown entity has a schema")
	}
}

// TestUpdateWhereValidates: SQL text, and conditions that a database could read differently, are refused.
func TestUpdateWhereValidates(t *testing.T) {
	t.Parallel()
	tg, c := newShop(t, "sqlite")
	refs := where(few, `{"note":"n"}`, 20, 0)
	refs.Target.EntityRef, refs.Target.EntityRefs = "", []string{"SKU-2"}
	for pointer, bad := range map[string]connector.Call{
		"/target/entity_ref": refs,
		"/target/version":    call("update_where", "*", "1", "", string(refs.ProposedChange)),
		"/proposed_change":   call("update_where", "*", "", "", `{"where":"qty < 3","set":{},"max_rows":1,"sql":"x"}`),
		"/proposed_change/where": call("update_where", "*", "", "",
			`{"where":[],"set":{"note":"n"},"max_rows":1}`),
		"/proposed_change/max_rows":    where(few, `{"note":"n"}`, 10_001, 0),
		"/proposed_change/set":         where(few, `{}`, 20, 0),
		"/proposed_change/set/sku":     where(few, `{"sku":"SKU-2"}`, 20, 0),
		"/proposed_change/set/version": where(few, `{"version":2}`, 20, 0),
		"/proposed_change/set/qty":     where(few, `{"qty":"many"}`, 20, 0),
		"/current_state":               where(few, `{"note":"n"}`, 20, 21),
		"/proposed_change/where/0":     where(`{"column":"price","op":"<","value":"10.00"}`, `{"note":"n"}`, 20, 0),
		"/proposed_change/where/1": where(`{"column":"qty","op":"=","value":1},{"column":"qty","op":"like","value":"1%"}`,
			`{"note":"n"}`, 20, 0),
		"/proposed_change/where/0/column": where(`{"column":"qty; DROP TABLE items","op":"=","value":1}`,
			`{"note":"n"}`, 20, 0),
	} {
		err := c.Validate(bad)
		var e *gatehouse.Error
		if !errors.As(err, &e) || e.Code != gatehouse.CodeInvalid || len(e.Violations) == 0 ||
			e.Violations[0].Pointer != pointer {
			t.Errorf("%s: %v", pointer, err)
		}
		if _, err := c.Execute(t.Context(), bad); failure(t, err) == nil {
			t.Errorf("%s was done", pointer)
		}
	}
	for _, bad := range []string{
		`{"column":"qty","op":"=","value":null}`, `{"column":"qty","op":"=","value":"x"}`,
		`{"column":"qty","op":"in","value":[]}`, `{"column":"qty","op":"is null","value":1}`,
		`{"column":"qty","op":"=","value":1,"or":1}`, `{"Column":"qty","op":"=","value":1}`, `7`,
	} {
		if err := c.Validate(where(bad, `{"note":"n"}`, 20, 0)); gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
			t.Errorf("%s: %v", bad, err)
		}
	}
	mustExecute(t, c, where(`{"column":"note","op":"is null"}`, `{"note":"n"}`, 20, 2))
	if got := tg.one(t, `SELECT count(*) FROM items WHERE note = 'n'`); got != "2" {
		t.Errorf("%s rows", got)
	}
}

// TestUpdateWhereOfDates: a condition compares days as days.
func TestUpdateWhereOfDates(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, engine string) {
		tg := newTarget(t, engine, `CREATE TABLE items (sku VARCHAR(40) PRIMARY KEY, day DATE, note VARCHAR(40));
			INSERT INTO items VALUES ('a', '2026-01-31', 'x'), ('b', '2026-02-01', 'x'), ('c', '2026-02-10', 'x')`)
		cfg := items(tg.dsn)
		cfg.Entities["item"] = sqlconn.Entity{Table: "items", Key: "sku"}
		c := newConnector(t, cfg)
		mustExecute(t, c, where(`{"column":"day","op":">=","value":"2026-02-01"}`, `{"note":"late"}`, 20, 0))
		if n := tg.number(t, `SELECT count(*) FROM items WHERE note = 'late'`); n != 2 {
			t.Errorf("%d rows changed, want 2", n)
		}
		err := c.Validate(where(`{"column":"day","op":"<","value":"soon"}`, `{"note":"n"}`, 20, 0))
		if gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
			t.Errorf("a text that is no day: %v", err)
		}
	})
}
