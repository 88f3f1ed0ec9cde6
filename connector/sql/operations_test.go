package sqlconn_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	sqlconn "github.com/gatehouse-dev/gatehouse/connector/sql"
)

// dump is the whole table as text.
func (tg *target) dump(t testing.TB) string {
	t.Helper()
	rows, err := tg.db.Query(`SELECT sku || '|' || version || '|' || coalesce(price, '-') || '|' || coalesce(` +
		asText(tg.engine, "qty") + `, '-') || '|' || name || '|' || coalesce(note, '-') FROM items ORDER BY sku`)
	connectortest.Must(t, err)
	defer rows.Close()
	var lines []string
	for rows.Next() {
		var s string
		connectortest.Must(t, rows.Scan(&s))
		lines = append(lines, s)
	}
	connectortest.Must(t, rows.Err())
	return strings.Join(lines, "\n")
}

// again makes a call from a reversal.
func again(r *gatehouse.Reversal) connector.Call {
	c := connector.Call{
		Tenant: "default", ActionID: "act_2", Attempt: 1, Operation: r.Operation,
		Target: r.Target, CurrentState: r.CurrentState, ProposedChange: r.ProposedChange,
	}
	return keyed(c, "reversal:"+string(gatehouse.MustJSON(r)))
}

// TestConditional: a change of several rows has a condition if it names a pre-image of each.
func TestConditional(t *testing.T) {
	t.Parallel()
	_, conn := newShop(t, "sqlite")
	for _, test := range []struct {
		call connector.Call
		want bool
	}{
		{call("update", "SKU-2", "7", "", `{"qty":1}`), true},
		{call("insert", "SKU-9", "", "", `{"qty":1}`), true},
		{bulk("bulk_insert", "", `{"a":{"qty":1}}`, "a"), true},
		{bulk("bulk_update", `{"SKU-2":{"qty":1}}`, `{"qty":2}`, "SKU-2"), true},
		{bulk("bulk_update", `{"SKU-2":{"qty":1},"SKU-3":{}}`, `{"qty":2}`, "SKU-2", "SKU-3"), false},
		{bulk("update", "", `{"qty":2}`, "SKU-2", "SKU-3"), false},
		{bulk("bulk_delete", "", `{}`, "SKU-2"), false},
		{call("update_where", "", "", "", `{"max_rows":1,"set":{"qty":1},"where":{"qty":2}}`), false},
	} {
		if got := conn.Conditional(test.call); got != test.want {
			t.Errorf("%s of %s: %v", test.call.Operation, test.call.CurrentState, got)
		}
	}
}

// TestReversals applies each operation, reverses it, and reverses the reversal.
func TestReversals(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		for name, c := range map[string]connector.Call{
			"update by pre-image": call("update", "SKU-1042", "", `{"note":null}`, `{"note":"new","qty":null}`),
			"insert":              call("insert", "SKU-9", "", "", `{"price":"5.00","name":"new"}`),
			"insert naming key":   call("insert", "SKU-9", "", "", `{"sku":"SKU-9","price":"5.00","version":4}`),
			"delete":              call("delete", "SKU-1042", "7", "", `{}`),
			"delete, said twice":  call("delete", "SKU-1042", "7", "", `{"deleted":true}`),
			"bulk update, one":    bulk("update", "", `{"price":"2.00"}`, "SKU-2", "SKU-3"),
			"bulk update, each": bulk("bulk_update", `{"SKU-2":{"price":"1.00"},"SKU-3":{"version":1}}`,
				`{"SKU-2":{"price":"1.10"},"SKU-3":{"price":"3.30","qty":9}}`, "SKU-3", "SKU-2"),
			"bulk delete": bulk("bulk_delete", "", `{}`, "SKU-1042", "SKU-3"),
			"bulk insert": bulk("insert", "", `{"a":{"price":"1"},"b":{"name":"b"}}`, "b", "a"),
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				tg, conn := newShop(t, engine)
				withoutVersions := func() string {
					return fmt.Sprint(tg.rows(t, `SELECT sku, coalesce(price, '-'), coalesce(qty, 0), name, coalesce(note, '-')
						FROM items ORDER BY sku`))
				}
				before, shape := tg.dump(t), withoutVersions()
				connectortest.Must(t, conn.Validate(c))
				res := mustExecute(t, conn, c)
				changed := withoutVersions()
				if changed == shape {
					t.Fatal("nothing changed")
				}
				if res.Reversal == nil {
					t.Fatal("no reversal")
				}
				undo := again(res.Reversal)
				if err := conn.Validate(undo); err != nil {
					t.Fatalf("%v: %+v", err, res.Reversal)
				}
				res = mustExecute(t, conn, undo)
				if got := withoutVersions(); got != shape {
					t.Errorf("reversed to\n%s\nwas\n%s", tg.dump(t), before)
				}
				if strings.Contains(name, "delete") {
					if got := tg.dump(t); got != before {
						t.Errorf("a deleted row came back as\n%s\nwas\n%s", got, before)
					}
				}
				mustExecute(t, conn, again(res.Reversal))
				if got := withoutVersions(); got != changed {
					t.Errorf("the reversal's reversal gave\n%s", tg.dump(t))
				}
			})
		}
	})
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		_, c := newShop(t, engine)
		got := mustExecute(t, c, call("update", "SKU-1042", "7", `{"price":"10.00"}`, `{"price":"12.50"}`))
		want := connector.Result{
			ExternalID:       "SKU-1042",
			RequestMetadata:  `{"key":"SKU-1042","rows":1,"statement":"update","table":"items","version":"7"}`,
			ResponseMetadata: `{"post_image":{"price":"12.50"},"pre_image":{"price":"10.00"},"rows_affected":1,"version":"8"}`,
			Reversal: &gatehouse.Reversal{
				Operation: "update", Target: gatehouse.Target{EntityType: "item", EntityRef: "SKU-1042", Version: "8"},
				CurrentState: `{"price":"12.50"}`, ProposedChange: `{"price":"10.00"}`,
			},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		replayed := mustExecute(t, c, call("update", "SKU-1042", "7", `{"price":"10.00"}`, `{"price":"12.50"}`))
		if diff := cmp.Diff(want, replayed); diff != "" {
			t.Errorf("the replay's answer differs:\n%s", diff)
		}
		finding, read, err := c.ReadBack(t.Context(),
			call("update", "SKU-1042", "7", `{"price":"10.00"}`, `{"price":"12.50"}`))
		if diff := cmp.Diff(want, read); finding != connector.Present || err != nil || diff != "" {
			t.Errorf("read back %v, %v\n%s", finding, err, diff)
		}
	})
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		tg, c := newShop(t, engine)
		mustExecute(t, c, call("update", "SKU-2", "1", "", `{"note":"y"}`))
		before := tg.dump(t)
		for name, test := range map[string]struct {
			call connector.Call
			code string
		}{
			"no such row":            {call("update", "SKU-0", "1", "", `{"price":"1"}`), "target_changed"},
			"older version":          {call("update", "SKU-1042", "6", "", `{"price":"1"}`), "target_changed"},
			"version but other data": {call("update", "SKU-1042", "7", `{"price":"11.00"}`, `{"price":"1"}`), "target_changed"},
			"delete, older version":  {call("delete", "SKU-1042", "6", "", `{}`), "target_changed"},
			"row exists":             {call("insert", "SKU-1042", "", "", `{"price":"1"}`), "already_exists"},
			"null not allowed":       {call("update", "SKU-1042", "7", "", `{"name":null}`), "invalid"},
			"one row missing":        {bulk("update", "", `{"price":"1"}`, "SKU-2", "SKU-0"), "target_changed"},
			"one row different": {
				bulk("delete", `{"SKU-2":{"price":"1.00"},"SKU-3":{"price":"9.00"}}`, `{}`, "SKU-2", "SKU-3"), "target_changed"},
			"one row exists": {bulk("insert", "", `{"new":{},"SKU-3":{}}`, "new", "SKU-3"), "already_exists"},
		} {
			_, err := c.Execute(t.Context(), test.call)
			if e := failure(t, err); e == nil || e.Kind != connector.Terminal || e.Code != test.code {
				t.Errorf("%s: got %v, want terminal: %s", name, e, test.code)
			}
			if after := tg.dump(t); after != before {
				t.Fatalf("%s: the table was\n%s\nand is\n%s", name, before, after)
			}
		}
		if n := tg.one(t, `SELECT count(*) FROM gatehouse_applied`); n != "1" {
			t.Errorf("%s records of one change", n)
		}
	})
}

func TestIdempotencyRecord(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		tg, c := newShop(t, engine)
		first := call("update", "SKU-1042", "7", "", `{"price":"12.50"}`)
		mustExecute(t, c, first)

		conflict := first
		conflict.Digest = gatehouse.NewDigest(`"another change"`)
		_, err := c.Execute(t.Context(), conflict)
		wantFailure(t, err, connector.Terminal, "idempotency_conflict")
		if finding, _, err := c.ReadBack(t.Context(), conflict); finding != connector.Inconclusive || err == nil {
			t.Errorf("read back another's record: %v, %v", finding, err)
		}

		// The same key of another tenant is a different key.
		other := call("update", "SKU-1042", "8", "", `{"price":"13.00"}`)
		other.Tenant, other.IdempotencyKey = "acme", first.IdempotencyKey
		mustExecute(t, c, other)

		// Repeating the first call after a later change has no effect.
		mustExecute(t, c, first)
		if got := tg.one(t, `SELECT price || '/' || version FROM items WHERE sku = 'SKU-1042'`); got != "13.00/9" {
			t.Errorf("holds %s", got)
		}
		if got := tg.one(t, `SELECT operation || ' ' || entity FROM gatehouse_applied WHERE `+asText(engine,
			"tenant")+` = 'default'`); got != "update item/SKU-1042" {
			t.Errorf("the record says %s", got)
		}
	})
}

// TestKeysOfRecordsAreExact: no collation takes the records of two keys for one.
func TestKeysOfRecordsAreExact(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		tg, c := newShop(t, engine)
		longest := strings.Repeat("é", 127)
		for i, key := range []string{"key", "KEY", "key ", "kéy", longest + "a", longest + "b"} {
			update := call("update", "SKU-1042", fmt.Sprint(7+i), "", fmt.Sprintf(`{"qty":%d}`, i))
			update.IdempotencyKey = key
			mustExecute(t, c, update)
			if finding, _, err := c.ReadBack(t.Context(), update); finding != connector.Present || err != nil {
				t.Errorf("%q: read back %v, %v", key, finding, err)
			}
		}
		if n := tg.one(t, `SELECT count(*) FROM gatehouse_applied`); n != "6" {
			t.Errorf("%s records of 6 changes", n)
		}
	})
}

// TestBulkAtTheLimit changes as many rows as one proposal can name.
func TestBulkAtTheLimit(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		tg, c := newShop(t, engine)
		refs := make([]string, gatehouse.MaxEntityRefs)
		var values strings.Builder
		for i := range refs {
			refs[i] = fmt.Sprintf("K-%05d", i)
			if i > 0 {
				values.WriteString(",")
			}
			fmt.Fprintf(&values, "('%s', 1, '1.00')", refs[i])
		}
		tg.exec(t, `INSERT INTO items (sku, version, price) VALUES `+values.String())
		res := mustExecute(t, c, bulk("update", "", `{"price":"1.10"}`, refs...))
		if n := tg.one(t, `SELECT count(*) FROM items WHERE price = '1.10' AND version = 2`); n != "10000" {
			t.Errorf("%s rows were changed", n)
		}
		if res.Reversal != nil {
			t.Error("a reversal of 10,000 rows was kept")
		}
		_, err := c.Execute(t.Context(), bulk("delete", "", `{}`, append(refs[:9999:9999], "K-missing")...))
		wantFailure(t, err, connector.Terminal, "target_changed")
		if n := tg.one(t, `SELECT count(*) FROM items`); n != "10003" {
			t.Errorf("%s rows are left", n)
		}
	})
}

const sqliteAlterations = `CREATE TRIGGER more AFTER UPDATE OF price ON items
	BEGIN UPDATE items SET price = '99.00' WHERE sku = NEW.sku; END;
	CREATE TRIGGER faster AFTER UPDATE OF qty ON items
	BEGIN UPDATE items SET version = version + 5 WHERE sku = NEW.sku; END`

// alterations are triggers: they replace each new price, and raise the version with each new quantity.
var alterations = map[string]string{
	"sqlite": sqliteAlterations, "sqlserver": sqliteAlterations,
	"postgres": `CREATE FUNCTION more() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN NEW.price := '99.00'; RETURN NEW; END $$;
			CREATE TRIGGER more BEFORE UPDATE OF price ON items FOR EACH ROW EXECUTE FUNCTION more();
			CREATE FUNCTION faster() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN NEW.version := NEW.version + 5; RETURN NEW; END $$;
			CREATE TRIGGER faster BEFORE UPDATE OF qty ON items FOR EACH ROW EXECUTE FUNCTION faster()`,
	"mariadb": `CREATE TRIGGER more BEFORE UPDATE ON items FOR EACH ROW
			SET NEW.price = IF(NEW.price <=> OLD.price, NEW.price, '99.00'),
			NEW.version = IF(NEW.qty <=> OLD.qty, NEW.version, NEW.version + 5)`,
}

// TestTriggersCannotChangeWhatWasApproved: a change that a trigger alters is rolled back.
func TestTriggersCannotChangeWhatWasApproved(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		tg, c := newShop(t, engine)
		tg.exec(t, alterations[engine])
		before := tg.dump(t)
		for _, change := range []string{`{"price":"12.50"}`, `{"qty":1}`} {
			_, err := c.Execute(t.Context(), call("update", "SKU-1042", "7", "", change))
			wantFailure(t, err, connector.Terminal, "not_as_approved")
		}
		if after := tg.dump(t); after != before {
			t.Errorf("the table is\n%s", after)
		}
	})
}

// TestAllowList hides the columns that are not listed.
func TestAllowList(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		tg := newTarget(t, engine, itemsSchema)
		cfg := items(tg.dsn)
		cfg.Entities["item"] = sqlconn.Entity{Table: "items", Key: "sku", Version: "version", Columns: []string{"price"},
			ExternalID: "name"}
		c := newConnector(t, cfg)
		for _, bad := range []connector.Call{
			call("update", "SKU-1042", "7", "", `{"qty":1}`),
			call("update", "SKU-1042", "7", `{"qty":1}`, `{"price":"1"}`), // would reveal the hidden column's value
		} {
			if code := gatehouse.CodeOf(c.Validate(bad)); code != gatehouse.CodeInvalid {
				t.Errorf("%s %s: code %q", bad.CurrentState, bad.ProposedChange, code)
			}
		}
		if res := mustExecute(t, c, call("update", "SKU-1042", "7", "", `{"price":"1"}`)); res.ExternalID != "lamp" {
			t.Errorf("the external id is %q", res.ExternalID)
		}
		res := mustExecute(t, c, call("delete", "SKU-1042", "8", "", `{}`))
		if res.Reversal != nil || strings.Contains(string(res.ResponseMetadata), "qty") {
			t.Errorf("a hidden column shows in %+v", res)
		}
	})
}

// TestKeysThatNameMoreThanOneRow uses a key column that is not unique.
func TestKeysThatNameMoreThanOneRow(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		tg := newTarget(t, engine,
			`CREATE TABLE items (sku TEXT, price TEXT); INSERT INTO items VALUES ('a', '1'), ('a', '1')`)
		cfg := items(tg.dsn)
		cfg.Entities["item"] = sqlconn.Entity{Table: "items", Key: "sku"}
		c, update := newConnector(t, cfg), call("update", "a", "", `{"price":"1"}`, `{"price":"2"}`)
		_, err := c.Execute(t.Context(), update)
		wantFailure(t, err, connector.Terminal, "duplicate_key")
		_, err = c.Check(t.Context(), update)
		wantFailure(t, err, connector.Terminal, "duplicate_key")
		_, err = c.ReadState(t.Context(), update)
		wantFailure(t, err, connector.Terminal, "duplicate_key")
	})
	for engine, collation := range map[string]string{
		"sqlite": "NOCASE", "sqlserver": "NOCASE", "mariadb": "utf8mb4_general_ci",
	} {
		tg := newTarget(t, engine, `CREATE TABLE items (sku TEXT COLLATE `+collation+`, price TEXT);
			INSERT INTO items VALUES ('a', '1'), ('A', '1')`)
		cfg := items(tg.dsn)
		cfg.Entities["item"] = sqlconn.Entity{Table: "items", Key: "sku"}
		_, err := newConnector(t, cfg).Execute(t.Context(), call("update", "a", "", `{"price":"1"}`, `{"price":"2"}`))
		wantFailure(t, err, connector.Terminal, "target_changed") // it would have changed A as well
		if got := tg.one(t, `SELECT count(*) FROM items WHERE price = '1'`); got != "2" {
			t.Errorf("%s: %s rows are as they were", engine, got)
		}
	}
}
