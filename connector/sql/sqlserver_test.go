package sqlconn_test

import (
	"crypto/tls"
	"encoding/pem"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	sqlconn "github.com/gatehouse-dev/gatehouse/connector/sql"
	"github.com/gatehouse-dev/gatehouse/internal/mssqltest"
)

// ownSQLServerTypes has a column of each kind that SQL Server has beside the common ones.
const ownSQLServerTypes = `CREATE TABLE vals (
  id BLOB bigint IDENTITY PRIMARY KEY, ti BLOB tinyint, b BLOB bit, big BLOB decimal(38,10), f BLOB float, r BLOB real,
  c BLOB varchar(5), n BLOB nvarchar(5), vb BLOB varbinary(4), d BLOB date, dt BLOB datetime, d2 BLOB datetime2(7),
  off BLOB datetimeoffset(7), u BLOB uniqueidentifier, rv BLOB rowversion, "odd]name" BLOB nvarchar,
  twice BLOB int AS (ti * 2) STORED
);
INSERT INTO vals (id, ti, b, big, f, r, c, n, vb, d, dt, d2, off, u, rv) VALUES
  (7, 200, 1, '1234567890123456789012345.0123456789', 0.1, 0.5, 'abc', 'é', x'00ff', '2026-01-02',
   '2026-01-02T03:04:05.003', '2026-01-02T03:04:05.0000001', '2026-01-02T01:04:05.0000000Z',
   '6F1F2A3E-0000-4000-8000-000000000001', x'00000000000007d1');`

// TestSQLServerOwnTypes: each value is read exactly, can be changed, and comes back, also a deleted
// row whose key is an identity.
func TestSQLServerOwnTypes(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, "sqlserver", ownSQLServerTypes)
	c := newConnector(t, valuesConfig(tg.dsn))
	dump := func() string {
		return tg.one(t, `SELECT concat_ws('|', id, ti, b, big, f, r, c, n, hex(vb), d, dt, d2, off, u, "odd]name", twice)
			FROM vals`)
	}
	before := dump()
	state := `{"ti":200,"b":true,"big":"1234567890123456789012345.0123456789","f":0.1,"r":0.5,"c":"abc","n":"é",` +
		`"vb":"0x00FF","d":"2026-01-02","dt":"2026-01-02T03:04:05.003","d2":"2026-01-02T03:04:05.0000001",` +
		`"off":"2026-01-02T03:04:05+02:00","u":"6f1f2a3e-0000-4000-8000-000000000001","rv":"0x00000000000007D1",` +
		`"odd]name":null,"twice":400}`
	change := `{"ti":7,"b":false,"big":-0.0000000001,"f":2.5,"r":0.1,"c":"","n":"ünï","vb":null,"d":"2028-02-29",` +
		`"dt":"2026-06-01T00:00:00+02:00","d2":"2026-06-01T00:00:00+02:00","off":"2026-06-01T00:00:00+02:00",` +
		`"u":"6f1f2a3e-0000-4000-8000-00000000000a","odd]name":"text"}`
	res := mustExecute(t, c, call("update", "7", "", state, change))
	want := "7|7|0|-0.0000000001|2.5|0.10000000149011612||ünï||2028-02-29|2026-05-31T22:00:00.000|" +
		"2026-05-31T22:00:00.0000000|2026-05-31T22:00:00.0000000Z|6F1F2A3E-0000-4000-8000-00000000000A|text|14"
	if got := dump(); got != want {
		t.Errorf("holds\n%s, want\n%s", got, want)
	}
	mustExecute(t, c, again(res.Reversal))
	if got := dump(); got != before {
		t.Errorf("reversed to\n%s, was\n%s", got, before)
	}
	res = mustExecute(t, c, call("delete", "7", "", `{"ti":200}`, `{}`))
	insert := again(res.Reversal)
	connectortest.Must(t, c.Validate(insert))
	mustExecute(t, c, insert)
	if got := dump(); got != before {
		t.Errorf("reversed to\n%s, was\n%s", got, before)
	}
	for bad, code := range map[string]string{
		`{"ti":256}`:                            "invalid_value",
		`{"ti":-1}`:                             "invalid_value",
		`{"b":2}`:                               "invalid",
		`{"big":0.00000000001}`:                 "not_as_approved", // it would be rounded
		`{"big":12345678901234567890123456789}`: "invalid_value",
		`{"r":16777217}`:                        "not_as_approved",
		`{"c":"abcdef"}`:                        "invalid_value",
		`{"c":"€1"}`:                            "not_as_approved", // the code page has no such character
		`{"n":"abcdef"}`:                        "invalid_value",
		`{"vb":"0x0011223344"}`:                 "invalid_value",
		`{"vb":"00ff"}`:                         "invalid",
		`{"d":"2026-02-30"}`:                    "invalid_value",
		`{"dt":"2026-01-02T03:04:05.0001"}`:     "invalid_value",
		`{"dt":"2026-01-02T03:04:05.001"}`:      "not_as_approved", // datetime has no such millisecond
		`{"d2":"yesterday"}`:                    "invalid_value",
		`{"u":"none"}`:                          "invalid_value",
		`{"rv":"0x00000000000007D2"}`:           "invalid",
		`{"twice":4}`:                           "invalid",
	} {
		_, err := c.Execute(t.Context(), call("update", "7", "", `{"ti":200}`, bad))
		if e := failure(t, err); e == nil || e.Kind != connector.Terminal || e.Code != code {
			t.Errorf("%s: got %v, want %s", bad, e, code)
		}
	}
	if got := dump(); got != before {
		t.Errorf("refused, and changed to\n%s, was\n%s", got, before)
	}
}

const versionedByServer = `CREATE TABLE items (
  sku BLOB varchar(20) PRIMARY KEY, price BLOB decimal(10,2), rv BLOB rowversion
);
INSERT INTO items VALUES ('a', '1.00', x'0000000000000001'), ('b', '1.00', x'0000000000000002');`

func byRowversion(dsn string) sqlconn.Config {
	cfg := items(dsn)
	cfg.Entities["item"] = sqlconn.Entity{Table: "items", Key: "sku", Version: "rv"}
	return cfg
}

// TestRowversion holds the connector to its promises when the version is a column that SQL Server
// raises itself.
func TestRowversion(t *testing.T) {
	t.Parallel()
	connectortest.Run(t, connectortest.Harness{Skip: faultsElsewhere, New: func(t *testing.T) *connectortest.Fixture {
		tg := newTarget(t, "sqlserver", versionedByServer)
		disturbed := false
		return &connectortest.Fixture{
			Connector: newConnector(t, byRowversion(tg.dsn)),
			Call:      call("update", "a", "0x0000000000000001", "", `{"price":"2.00"}`),
			Disturb: func(t *testing.T) {
				disturbed = true
				tg.exec(t, `UPDATE items SET price = '1.01', rv = x'0000000000000003' WHERE sku = 'a'`)
			},
			Read: func(t *testing.T) gatehouse.JSON {
				return gatehouse.StringJSON(tg.one(t, `SELECT price FROM items WHERE sku = 'a'`))
			},
			Effects: func(t *testing.T) int {
				switch tg.one(t, `SELECT hex(rv) FROM items WHERE sku = 'a'`) {
				case "0000000000000001":
					return 0
				case "0000000000000003":
					if disturbed {
						return 0
					}
				}
				return 1
			},
		}
	}})
	tg := newTarget(t, "sqlserver", versionedByServer)
	c := newConnector(t, byRowversion(tg.dsn))
	res := mustExecute(t, c, call("update", "a", "0x0000000000000001", "", `{"price":"2.00"}`))
	mustExecute(t, c, again(res.Reversal))
	_, err := c.Execute(t.Context(), again(&gatehouse.Reversal{
		Operation: "update", Target: res.Reversal.Target, ProposedChange: `{"price":"9.00"}`,
	}))
	wantFailure(t, err, connector.Terminal, string(gatehouse.CodeTargetChanged))
	res = mustExecute(t, c, bulk("bulk_update", "", `{"price":"3.00"}`, "a", "b"))
	mustExecute(t, c, again(res.Reversal))
	mustExecute(t, c, call("insert", "c", "", "", `{"price":"4.00"}`))
	if got := tg.one(t, `SELECT group_concat(sku || price) FROM items`); got != "a1.00,b1.00,c4.00" {
		t.Errorf("holds %s", got)
	}
	if err := c.Validate(call("insert", "d", "", "", `{"rv":"0x01"}`)); err == nil {
		t.Error("an insert may give the rowversion")
	}
}

// TestSQLServerErrors: what each number proves, and that a repeated call resolves it.
func TestSQLServerErrors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		at        string
		failure   mssqltest.Error
		kind      connector.Kind
		code      string
		committed bool // whether the change is committed before the call is repeated
	}{
		"deadlock": {"UPDATE [items]", mssqltest.Error{Number: 1205, Ends: true}, connector.Transient,
			"serialization", false},
		"lock timeout": {"WITH (UPDLOCK", mssqltest.Error{Number: 1222}, connector.Transient, "busy", false},
		"log full": {"INSERT INTO [gatehouse_applied]", mssqltest.Error{Number: 9002, Ends: true},
			connector.Transient, "unavailable", false},
		"trigger ends the transaction": {"UPDATE [items]", mssqltest.Error{Number: 3609, Ends: true},
			connector.Terminal, "sql_error", false},
		"no right": {"UPDATE [items]", mssqltest.Error{Number: 229}, connector.Terminal, "forbidden", false},
		"session killed": {"UPDATE [items]", mssqltest.Error{Number: 596, Ends: true, Breaks: true},
			connector.Ambiguous, "connection_lost", false},
		"commit refused": {"COMMIT TRANSACTION", mssqltest.Error{Number: 3930}, connector.Terminal, "sql_error", false},
		"commit invalid": {"COMMIT TRANSACTION", mssqltest.Error{Number: 41305, Ends: true},
			connector.Transient, "serialization", false},
		"commit, log full": {"COMMIT TRANSACTION", mssqltest.Error{Number: 9002},
			connector.Ambiguous, "commit_unclear", false},
		"commit lost before": {"COMMIT TRANSACTION", mssqltest.Error{Silent: true, Before: true},
			connector.Ambiguous, "commit_unclear", false},
		"commit lost after": {"COMMIT TRANSACTION", mssqltest.Error{Silent: true},
			connector.Ambiguous, "commit_unclear", true},
		"begin lost": {"BEGIN TRANSACTION", mssqltest.Error{Silent: true}, 0, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tg, c := newShop(t, "sqlserver")
			mustExecute(t, c, call("update", "SKU-2", "1", "", `{"qty":5}`)) // creates the table of records
			test.failure.Message = "m"
			tg.mssql.Answer(test.at, &test.failure)
			update := call("update", "SKU-1042", "7", "", `{"price":"12.50"}`)
			_, err := c.Execute(t.Context(), update)
			if test.code != "" {
				wantFailure(t, err, test.kind, test.code)
			} else if err != nil {
				t.Error(err) // the pool gave another connection
			}
			want := map[bool]string{false: "7", true: "8"}[test.committed]
			if got := tg.one(t, `SELECT version FROM items WHERE sku = 'SKU-1042'`); got != want {
				t.Errorf("the version is %s, want %s", got, want)
			}
			mustExecute(t, c, update)
			if got := tg.one(t, `SELECT version FROM items WHERE sku = 'SKU-1042'`); got != "8" {
				t.Errorf("the version is %s after the call was repeated", got)
			}
		})
	}
}

// TestSQLServerWaits: a call gives up on a locked row after the session's lock time-out.
func TestSQLServerWaits(t *testing.T) {
	t.Parallel()
	tg, c := newShop(t, "sqlserver")
	tg.mssql.LockTimeout(50 * time.Millisecond)
	other, err := tg.db.Begin()
	connectortest.Must(t, err)
	if _, err := other.Exec(`UPDATE items SET note = 'busy'`); err != nil {
		t.Fatal(err)
	}
	update := call("update", "SKU-1042", "7", "", `{"price":"12.50"}`)
	_, err = c.Execute(t.Context(), update)
	wantFailure(t, err, connector.Transient, "busy")
	connectortest.Must(t, other.Rollback())
	mustExecute(t, c, update)
}

// TestSQLServerRecordTable: a change is refused where a key could have two records.
func TestSQLServerRecordTable(t *testing.T) {
	t.Parallel()
	const columns = "(tenant BLOB varbinary(255), idempotency_key BLOB varbinary(255), digest BLOB nvarchar, " +
		"operation BLOB nvarchar, entity BLOB nvarchar, applied_at BLOB nvarchar, result BLOB nvarchar"
	const primary = ", PRIMARY KEY (tenant, idempotency_key))"
	for name, test := range map[string]struct{ table, code string }{
		"no key":        {columns + ")", "invalid_idempotency_table"},
		"texts as keys": {strings.ReplaceAll(columns, "varbinary", "nvarchar") + primary, "invalid_idempotency_table"},
		"as documented": {columns + primary, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tg := newTarget(t, "sqlserver", itemsSchema+`CREATE TABLE "ops.applied" `+test.table)
			cfg := items(tg.dsn)
			cfg.IdempotencyTable = "ops.applied"
			c := newConnector(t, cfg)
			_, err := c.Execute(t.Context(), call("update", "SKU-1042", "7", "", `{"price":"1"}`))
			if test.code != "" {
				wantFailure(t, err, connector.Terminal, test.code)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSQLServerLogin: a refused login proves that nothing was sent, and names no password.
func TestSQLServerLogin(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, "sqlserver", itemsSchema)
	u, err := url.Parse(tg.dsn)
	connectortest.Must(t, err)
	u.User = url.User(mssqltest.User)
	cfg := items(u.String())
	cfg.PasswordSecret = "SHOP"
	for password, reached := range map[string]bool{"wrong-7391": false, mssqltest.Password: true} {
		c, err := sqlconn.New(t.Context(), cfg, func(string) (string, error) { return password, nil })
		connectortest.Must(t, err)
		defer c.(*sqlconn.Connector).Close()
		_, err = c.Execute(t.Context(), call("update", "SKU-1042", "7", "", `{"price":"1"}`))
		if reached {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		wantFailure(t, err, connector.NotSent, "forbidden")
		if strings.Contains(failure(t, err).Detail, "7391") {
			t.Errorf("the password shows in %v", err)
		}
	}
}

// TestSQLServerWithTLS verifies the server's certificate and its name.
func TestSQLServerWithTLS(t *testing.T) {
	t.Parallel()
	certified := httptest.NewTLSServer(nil) // of 127.0.0.1 and example.com
	t.Cleanup(certified.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certified.Certificate().Raw})
	connectortest.Must(t, os.WriteFile(ca, block, 0o600))
	tg := newTarget(t, "sqlserver", itemsSchema)
	tg.mssql.OfferTLS(&tls.Config{Certificates: certified.TLS.Certificates, MinVersion: tls.VersionTLS12})
	u, err := url.Parse(tg.dsn)
	connectortest.Must(t, err)
	port := u.Port()
	for _, test := range []struct {
		host, parameters string
		reached          bool
	}{
		{"127.0.0.1", "encrypt=true&ca=" + ca, true},
		{"127.0.0.1", "encrypt=strict&ca=" + ca, true},
		{"127.0.0.1", "encrypt=true&trustservercertificate=true", true},
		{"127.0.0.1", "encrypt=strict&trustservercertificate=true", true},
		{"127.0.0.1", "encrypt=disable", true},
		{"127.0.0.1", "encrypt=true", false},            // nobody vouches for it
		{"localhost", "encrypt=true&ca=" + ca, false},   // another name
		{"localhost", "encrypt=strict&ca=" + ca, false}, // another name
	} {
		u.Host, u.RawQuery = test.host+":"+port, test.parameters
		c := newConnector(t, items(u.String()))
		if err := c.Probe(t.Context()); (err == nil) != test.reached {
			t.Errorf("%s?%s: %v", test.host, test.parameters, err)
		}
	}
}
