package sqlconn_test

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	sqlconn "github.com/gatehouse-dev/gatehouse/connector/sql"
)

// TestUpsertConformance: an upsert of a row that was seen, and of one that was not.
func TestUpsertConformance(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		upsert  connector.Call
		engines []string
	}{
		"of a row": {call("upsert", "SKU-1042", "7", `{"price":"10.00"}`, `{"price":"12.50"}`),
			[]string{"sqlite", "postgres"}},
		"of no row": {call("upsert", "SKU-9", "", "", `{"price":"12.50","name":"new"}`), engines},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, test.engines, func(t *testing.T, engine string) {
				upsert := test.upsert
				connectortest.Run(t, connectortest.Harness{Skip: faultsElsewhere, New: func(t *testing.T) *connectortest.Fixture {
					tg, c := newShop(t, engine)
					row := `FROM items WHERE sku = '` + upsert.Target.EntityRef + `'`
					base := 0
					if upsert.Target.Version != "" {
						base = 7
					}
					return &connectortest.Fixture{
						Connector: c, Call: upsert,
						Disturb: func(t *testing.T) {
							if base == 0 {
								tg.exec(t, `INSERT INTO items VALUES ('SKU-9', 100, '1.00', 1, 'theirs', NULL)`)
								base = 100
								return
							}
							base++
							tg.exec(t, `UPDATE items SET price = '10.01', version = version + 1 WHERE sku = 'SKU-1042'`)
						},
						Read: func(t *testing.T) gatehouse.JSON {
							return gatehouse.StringJSON(tg.one(t, `SELECT price || ' ' || name `+row))
						},
						Effects: func(t *testing.T) int {
							return tg.number(t, `SELECT coalesce(max(version), 0) `+row) - base
						},
						Dump: tg.everything,
					}
				}})
			})
		})
	}
}

// TestUpsert: the receipt states the operation, and a change that was approved for another state is
// refused.
func TestUpsert(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		tg, c := newShop(t, engine)
		for _, test := range []struct {
			call      connector.Call
			did, undo string
		}{
			{call("upsert", "SKU-9", "", `null`, `{"price":"5.00","name":"new"}`), "inserted", "delete"},
			{call("upsert", "SKU-9", "1", "", `{"price":"6.00"}`), "updated", "update"},
			{call("upsert", "SKU-2", "", `{"price":"1.00"}`, `{"price":"6.00"}`), "updated", "update"},
		} {
			res := mustExecute(t, c, test.call)
			if !strings.Contains(string(res.ResponseMetadata), `"did":"`+test.did+`"`) ||
				res.Reversal == nil || res.Reversal.Operation != test.undo {
				t.Errorf("%s: %+v", test.did, res)
			}
			replayed := mustExecute(t, c, test.call)
			if replayed.ResponseMetadata != res.ResponseMetadata {
				t.Errorf("the replay says %s", replayed.ResponseMetadata)
			}
		}
		before := tg.dump(t)
		for name, stale := range map[string]connector.Call{
			"a row has appeared": call("upsert", "SKU-3", "", "", `{"price":"1"}`),
			"the row is gone":    call("upsert", "SKU-0", "1", "", `{"price":"1"}`),
			"the row differs":    call("upsert", "SKU-9", "", `{"price":"5.00"}`, `{"price":"1"}`),
		} {
			_, err := c.Execute(t.Context(), stale)
			if e := failure(t, err); e == nil || e.Kind != connector.Terminal || e.Code != "target_changed" {
				t.Errorf("%s: got %v", name, e)
			}
		}
		if after := tg.dump(t); after != before {
			t.Errorf("the table was\n%s\nand is\n%s", before, after)
		}
		// A new proposal on the present state is applied.
		gone := call("upsert", "SKU-0", "1", `{"name":"old"}`, `{"name":"back"}`)
		now, err := c.ReadState(t.Context(), gone)
		if err != nil || now.Matches || now.Gone || now.CurrentState != "" || now.Version != "" {
			t.Fatalf("the state of a row that is gone: %+v, %v", now, err)
		}
		gone.Target.Version, gone.CurrentState = now.Version, now.CurrentState
		mustExecute(t, c, keyed(gone, "new-proposal"))
		if got := tg.one(t, `SELECT name FROM items WHERE sku = 'SKU-0'`); got != "back" {
			t.Errorf("holds %s", got)
		}
		many := call("upsert", "", "", "", `{"a":{}}`)
		many.Target.EntityRefs = []string{"a"}
		if err := c.Validate(many); gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
			t.Errorf("an upsert of several rows: %v", err)
		}
	})
}

// TestUpsertOfAKeyAlone: a table that has no column but its key, such as a list of names.
func TestUpsertOfAKeyAlone(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		tg := newTarget(t, engine, `CREATE TABLE names (name VARCHAR(100) PRIMARY KEY)`)
		c := newConnector(t, sqlconn.Config{DSN: tg.dsn, Entities: map[string]sqlconn.Entity{
			"item": {Table: "names", Key: "name"},
		}})
		for _, change := range []string{`{}`, `{"name":"ana"}`} {
			upsert := call("upsert", "ana", "", "", change)
			res := mustExecute(t, c, upsert)
			mustExecute(t, c, upsert)
			if !strings.Contains(string(res.ResponseMetadata), `"did":"inserted"`) || res.Reversal == nil ||
				res.Reversal.Operation != "delete" || tg.number(t, `SELECT count(*) FROM names`) != 1 {
				t.Errorf("%+v", res)
			}
			_, err := c.Execute(t.Context(), keyed(upsert, "another "+change))
			wantFailure(t, err, connector.Terminal, "target_changed")
			seen := call("upsert", "ana", "", `{"name":"ana"}`, change)
			if err := c.Validate(seen); gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
				t.Errorf("an upsert that sets nothing in a row that is there: %v", err)
			}
			undo := keyed(call("delete", "ana", "", string(res.Reversal.CurrentState), `{}`), "undo "+change)
			mustExecute(t, c, undo)
		}
	})
}
