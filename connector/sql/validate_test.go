package sqlconn_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	sqlconn "github.com/gatehouse-dev/gatehouse/connector/sql"
	"github.com/gatehouse-dev/gatehouse/internal/mariatest"
)

func TestValidatePointsAtWhatIsWrong(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		_, c := newShop(t, engine)
		withType := func(c connector.Call, entityType string) connector.Call {
			c.Target.EntityType = entityType
			return c
		}
		for _, test := range []struct {
			call    connector.Call
			pointer string
		}{
			{call("merge", "a", "1", "", `{"price":"1"}`), "/operation"},
			{withType(call("update", "a", "1", "", `{"price":"1"}`), "sqlite_master"), "/target/entity_type"},
			{withType(call("update", "a", "1", "", `{"price":"1"}`), "Item"), "/target/entity_type"},
			{call("update", "a", "1", "", `{"Price":"1"}`), "/proposed_change/Price"},
			{call("update", "", "1", "", `{"price":"1"}`), "/target/entity_ref"},
			{call("update", "a\x00b", "1", "", `{"price":"1"}`), "/target/entity_ref"},
			{bulk("bulk_update", "", `{"price":"1"}`, "a", "a\x00b"), "/target/entity_refs/1"},
			{call("bulk_update", "", "", "", `{"price":"1"}`), "/target/entity_refs"},
			{call("update", "a", "", "", `{"price":"1"}`), "/target/version"},
			{call("delete", "a", "", "", `{}`), "/target/version"},
			{call("insert", "a", "1", "", `{}`), "/target/version"},
			{call("insert", "a", "", `{"price":"1"}`, `{}`), "/current_state"},
			{call("delete", "a", "1", "", `{"price":"1"}`), "/proposed_change"},
			{call("update", "a", "1", "", `{}`), "/proposed_change"},
			{call("update", "a", "1", "", `{"sku":"a"}`), "/proposed_change"},
			{call("update", "a", "1", "", `{"prise":"1"}`), "/proposed_change/prise"},
			{call("update", "a", "1", "", `{"price\" = '0' --":"1"}`), "/proposed_change/price\" = '0' --"},
			{call("update", "a", "1", "", `{"a/b~":"1"}`), "/proposed_change/a~1b~0"},
			{call("update", "a", "1", `{"color":"red"}`, `{"price":"1"}`), "/current_state/color"},
			{call("update", "a", "1", "", `{"version":9}`), "/proposed_change/version"},
			{call("update", "a", "1", "", `{"sku":"b"}`), "/proposed_change/sku"},
			{call("update", "a", "1", "", `{"qty":[1]}`), "/proposed_change/qty"},
			{call("update", "a", "1", "", `{"qty":"many"}`), "/proposed_change/qty"},
			{call("update", "a", "1", "", `{"name":null}`), "/proposed_change/name"},
			{call("update", "a", "1", "", `{"note":"a\u0000b"}`), "/proposed_change/note"},
			{bulk("insert", "", `{"a":{"prise":"1"}}`, "a"), "/proposed_change/a/prise"},
			{bulk("insert", "", `{"a":{}}`, "a", "b"), "/proposed_change"},
			{bulk("update", `{"c":{"price":"1"},"a":{}}`, `{"price":"1"}`, "a", "b"), "/current_state/c"},
			{bulk("update", `{"a":{"price":"1"}}`, `{"price":"1"}`, "a", "b"), "/current_state"},
		} {
			err := c.Validate(test.call)
			var e *gatehouse.Error
			if !errors.As(err, &e) || e.Code != gatehouse.CodeInvalid || len(e.Violations) == 0 ||
				e.Violations[0].Pointer != test.pointer {
				t.Errorf("%s %s %s: got %v, want %s", test.call.Operation, test.call.CurrentState, test.call.ProposedChange, err,
					test.pointer)
			}
			_, err = c.Execute(t.Context(), test.call)
			wantFailure(t, err, connector.Terminal, "invalid")
		}
		versioned := bulk("update", "", `{"price":"1"}`, "a", "b")
		versioned.Target.Version = "1"
		if err := c.Validate(versioned); err == nil {
			t.Error("one version for many rows is accepted")
		}
	})
}

// TestExternalIDIsNoColumn: a proposal cannot set the column of the external id, unless it is among the columns.
func TestExternalIDIsNoColumn(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		tg := newTarget(t, engine, itemsSchema)
		for _, columns := range [][]string{{"price"}, {"price", "note"}} {
			cfg := items(tg.dsn)
			item := cfg.Entities["item"]
			item.Columns, item.ExternalID = columns, "note"
			cfg.Entities["item"] = item
			c := newConnector(t, cfg)
			err := c.Validate(call("update", "SKU-2", "1", `{"note":"x"}`, `{"note":"theirs"}`))
			var e *gatehouse.Error
			if listed := len(columns) > 1; listed != (err == nil) ||
				!listed && (!errors.As(err, &e) || e.Violations[0].Pointer != "/proposed_change/note") {
				t.Errorf("columns %v: %v", columns, err)
			}
		}
	})
}

// TestSchemaChanges alters a table while Gatehouse runs.
func TestSchemaChanges(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		tg, c := newShop(t, engine)
		update := call("update", "SKU-1042", "7", "", `{"color":"red"}`)
		if err := c.Validate(update); err == nil || !strings.Contains(err.Error(), "these are: ") ||
			!strings.Contains(err.Error(), "price") {
			t.Fatalf("an unknown column: %v", err)
		}
		tg.exec(t, `ALTER TABLE items ADD COLUMN color TEXT`)
		mustExecute(t, c, update)

		tg.exec(t, `ALTER TABLE items DROP COLUMN color`)
		update = call("update", "SKU-1042", "8", `{"color":"red"}`, `{"color":"blue"}`)
		_, err := c.Check(t.Context(), update)
		wantFailure(t, err, connector.NotSent, "schema_changed")
		_, err = c.Check(t.Context(), update)
		wantFailure(t, err, connector.Terminal, string(gatehouse.CodeInvalid))
		update = call("update", "SKU-1042", "8", "", `{"color":"blue"}`)
		_, err = c.Execute(t.Context(), update)
		if e := failure(t, err); e == nil || e.Kind == connector.Ambiguous {
			t.Errorf("a column that went away: %v", e)
		}
		if code := gatehouse.CodeOf(c.Validate(update)); code != gatehouse.CodeInvalid {
			t.Errorf("a column that went away is accepted: %v", code)
		}

		tg.exec(t, `DROP TABLE gatehouse_applied`)
		update = call("update", "SKU-1042", "8", "", `{"price":"1"}`)
		if _, err = c.Execute(t.Context(), update); err != nil {
			mustExecute(t, c, update) // as the dispatcher's retry
		}

		retype := map[string][2]string{ // SQLite, and so the fake SQL Server, has no such statement
			"postgres": {`ALTER TABLE items ALTER COLUMN price TYPE numeric(10,2) USING price::numeric`,
				`ALTER TABLE items ALTER COLUMN price TYPE text`},
			"mariadb": {`ALTER TABLE items MODIFY price decimal(10,2)`, `ALTER TABLE items MODIFY price text`},
		}
		if statements, ok := retype[engine]; ok {
			tg.exec(t, statements[0])
			mustExecute(t, c, call("update", "SKU-1042", "9", `{"price":"1.00"}`, `{"price":"2.50"}`))
			tg.exec(t, statements[1])
			mustExecute(t, c, call("update", "SKU-1042", "10", `{"price":"2.50"}`, `{"price":"3"}`))
		}
	})
}

func TestConfigIsStrict(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*sqlconn.Config){
		"type":              func(c *sqlconn.Config) { c.Type = "http" },
		"dsn":               func(c *sqlconn.Config) { c.DSN = "oracle://x" },
		"dsn: sqlite":       func(c *sqlconn.Config) { c.DSN = "sqlite:/a.db?mode=rwc" },
		"dsn: sqlite: need": func(c *sqlconn.Config) { c.DSN = "sqlite::memory:" },
		"dsn: postgres":     func(c *sqlconn.Config) { c.DSN = "postgres://u:hunter2@h:port/x" },
		"dsn: postgres: the database's address cannot be read": func(
			c *sqlconn.Config) {
			c.DSN = "postgres://u:x@hunter2@h/x"
		},
		"dsn: mysql: the address cannot be read": func(c *sqlconn.Config) { c.DSN = "mysql://u:x/hunter2@h/x" },
		"dsn: mysql: tls: none":                  func(c *sqlconn.Config) { c.DSN = "mysql://u@h/x?tls=none" },
		"entities":                               func(c *sqlconn.Config) { c.Entities = nil },
		"idempotency_table":                      func(c *sqlconn.Config) { c.IdempotencyTable = "a; DROP TABLE b" },
		"operations.upsert":                      func(c *sqlconn.Config) { c.Operations = declared("upsert", 1) },
		"operations.update_where.floor: must be 3 to 5": func(c *sqlconn.Config) {
			c.Operations = declared("update_where", 2)
		},
		"operations.insert.l4_above": func(c *sqlconn.Config) {
			c.Operations = map[string]sqlconn.Operation{"insert": {Floor: 3, L4Above: 1}}
		},
		"operations.bulk":                         func(c *sqlconn.Config) { c.Operations = declared("bulk", 5) },
		"operations.insert.floor: must be 1 to 5": func(c *sqlconn.Config) { c.Operations = declared("insert", 6) },
		"operations.update.floor: must be 1 to 5": func(c *sqlconn.Config) { c.Operations = declared("update", 0) },
		"entities.item: the floor of bulk_update is 2, below the 3 of update": func(c *sqlconn.Config) {
			c.Operations = declared("bulk_update", 2)
		},
		"entities.x.fields.note: must be 1 to 5": func(c *sqlconn.Config) {
			c.Entities["x"] = sqlconn.Entity{Table: "a", Key: "k", Fields: connector.FieldLevels{"note": 0}}
		},
		"entities.x.fields.note: is not among columns": func(c *sqlconn.Config) {
			c.Entities["x"] = sqlconn.Entity{Table: "a", Key: "k", Columns: []string{"price"},
				Fields: connector.FieldLevels{"note": 1}}
		},
		"entities.item: differs from \"Item\" only in its spelling": func(c *sqlconn.Config) {
			c.Entities["Item"] = sqlconn.Entity{Table: "a", Key: "k"}
		},
		"entities.x.table": func(c *sqlconn.Config) { c.Entities["x"] = sqlconn.Entity{Table: `a"b`, Key: "k"} },
		"entities.x.key":   func(c *sqlconn.Config) { c.Entities["x"] = sqlconn.Entity{Table: "a"} },
		"entities.x.version": func(c *sqlconn.Config) {
			c.Entities["x"] = sqlconn.Entity{Table: "a.b", Key: "k", Version: "k"}
		},
		"entities.x.columns[0]": func(c *sqlconn.Config) {
			c.Entities["x"] = sqlconn.Entity{Table: "a", Key: "k", Columns: []string{"a b"}}
		},
		"entities.x.key_from": func(c *sqlconn.Config) {
			c.Entities["x"] = sqlconn.Entity{Table: "a", Key: "k", KeyFrom: "me"}
		},
		"password_secret": func(c *sqlconn.Config) { c.PasswordSecret = "P" },
	} {
		cfg := items("sqlite:shop.db")
		change(&cfg)
		_, err := sqlconn.New(t.Context(), cfg, func(string) (string, error) { return "pw", nil })
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s…", err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("a password is in %v", err)
		}
	}
}

// TestFingerprint: the fingerprint covers the definition, and no secret.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	at := func(dsn string) func(*sqlconn.Config) { return func(c *sqlconn.Config) { c.DSN = dsn } }
	of := func(e sqlconn.Entity) func(*sqlconn.Config) {
		return func(c *sqlconn.Config) { c.Entities["item"] = e }
	}
	base := func() sqlconn.Config { return items("postgres://app:one@db.example/shop") }
	connectortest.Fingerprint(t, sqlconn.New, base, nil, map[string]func(*sqlconn.Config){
		"host":     at("postgres://app:one@db2.example/shop"),
		"database": at("postgres://app:one@db.example/other"),
		"schema":   at("postgres://app:one@db.example/shop?search_path=other"),
		"standby":  at("postgres://app:one@db.example,db2.example/shop"),
		"key":      of(sqlconn.Entity{Table: "items", Key: "id", Version: "version"}),
		"key_from": of(sqlconn.Entity{Table: "items", Key: "sku", Version: "version", KeyFrom: "database"}),
		"record":   func(c *sqlconn.Config) { c.IdempotencyTable = "elsewhere" },
	}, map[string]func(*sqlconn.Config){
		"password": at("postgres://app:two@db.example/shop"),
		"sslmode":  at("postgres://app:one@db.example:5432/shop?sslmode=require&application_name=x"),
		"tenants":  func(c *sqlconn.Config) { c.Tenants = []string{"acme"} },
		"floor":    func(c *sqlconn.Config) { c.Operations = declared("insert", 4) },
		"fields":   of(withFields(base().Entities["item"], connector.FieldLevels{"note": 1})),
	})
}

// TestMissingFile: a mistyped path never creates an empty database.
func TestMissingFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "typo with space & %.db")
	c := newConnector(t, items("sqlite:"+path))
	update := call("update", "SKU-1042", "7", "", `{"price":"1"}`)
	if err := c.Validate(update); err != nil {
		t.Errorf("a missing target: %v", err)
	}
	_, err := c.Execute(t.Context(), update)
	wantFailure(t, err, connector.NotSent, "unreachable")
	if err := c.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("Probe does not name the file: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
}

// TestPasswordSecret: the password comes from the secrets.
func TestPasswordSecret(t *testing.T) {
	t.Parallel()
	eachServer(t, usePasswordSecret)
}

func usePasswordSecret(t *testing.T, engine string) {
	tg := newTarget(t, engine, itemsSchema)
	cfg := items(strings.Replace(tg.dsn, url.QueryEscape(mariatest.Password)+"@", "wrong@", 1))
	if engine == "mariadb" && cfg.DSN == tg.dsn {
		t.Fatal("the address has no password")
	}
	cfg.PasswordSecret = "SHOP_PASSWORD"
	var asked string
	secret := func(name string) (string, error) {
		asked = name
		return mariatest.Password, nil
	}
	c, err := sqlconn.New(context.Background(), cfg, secret)
	if err != nil || asked != "SHOP_PASSWORD" {
		t.Fatal(asked, err)
	}
	defer c.(*sqlconn.Connector).Close()
	mustExecute(t, c, call("update", "SKU-1042", "7", "", `{"price":"1"}`))
	if _, err := sqlconn.New(t.Context(), cfg,
		func(string) (string, error) { return "", errors.New("no such secret") }); err == nil {
		t.Error("a missing secret is accepted")
	}
}
