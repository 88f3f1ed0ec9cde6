package sqlconn_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	sqlconn "github.com/gatehouse-dev/gatehouse/connector/sql"
	"github.com/gatehouse-dev/gatehouse/internal/mariatest"
)

// ownTypes has a column of each kind that MariaDB has beside the common ones.
const ownTypes = "CREATE TABLE vals (" + `
  id BIGINT UNSIGNED PRIMARY KEY, u BIGINT UNSIGNED, ti TINYINT(1), bits BIT(12), z INT(6) ZEROFILL, y YEAR,
  big DECIMAL(65,10), f FLOAT,
  e ENUM('sad', 'happy'), s SET('a', 'b'), bin BINARY(4), vb VARBINARY(20), bl BLOB, d DATE,
  tm TIME(3), dt DATETIME(3), ts TIMESTAMP(6) NULL, uu UUID, j JSON,
  c CHAR(5), lat VARCHAR(20) CHARACTER SET latin1,
  twice BIGINT UNSIGNED AS (u * 2) STORED, ` + "`odd``name` TEXT" + `
);
INSERT INTO vals (id, u, ti, bits, z, y, big, f, e, s, bin, vb, bl, d, tm, dt, ts, uu, j, c, lat) VALUES
  (18446744073709551615, 9223372036854775807, 2, b'101', 42, 2026, 1234567890123456789012345.0123456789, 0.1,
   'sad', 'a,b', x'00ff0a01', x'', x'ff00', '2026-01-02', '-12:30:00.5', '2026-01-02 03:04:05.5',
   '2026-01-02 03:04:05.000001',
   '6f1f2a3e-0000-4000-8000-000000000001', '{"a":[1.50]}', 'abc', 'é');`

// TestMariaDBOwnTypes: each value is read exactly, can be changed, and comes back.
func TestMariaDBOwnTypes(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, "mariadb", ownTypes)
	c := newConnector(t, valuesConfig(tg.dsn))
	const ref = "18446744073709551615"
	dump := func() string {
		return tg.one(t, "SELECT CONCAT_WS('|', id, u, ti, bits + 0, z, y, big, f, e, s, HEX(bin), HEX(vb), HEX(bl), "+
			"d, tm, dt, ts, uu, j, c, lat, twice, `odd``name`) FROM vals")
	}
	before := dump()
	state := `{"u":9223372036854775807,"ti":2,"bits":5,"z":42,"y":2026,"f":0.1,` +
		`"big":"1234567890123456789012345.0123456789","e":"sad","s":"a,b","bin":"0x00ff0a01","vb":"0x","bl":"0xff00",` +
		`"d":"2026-01-02","tm":"-12:30:00.500","dt":"2026-01-02T03:04:05.5","ts":"2026-01-02T05:04:05.000001+02:00",` +
		`"uu":"6f1f2a3e-0000-4000-8000-000000000001",` +
		`"j":{"a":[1.5]},"c":"abc","lat":"é","twice":18446744073709551614,"odd` + "`" + `name":null}`
	change := `{"u":9223372036854775806,"ti":true,"bits":4095,"z":7,"y":1999,"big":-0.0000000001,"f":2.5,` +
		`"e":"happy","s":"b","bin":"0xFFFFFFFF","vb":"0x0001","bl":null,"d":"2028-02-29","tm":"838:59:59.000",` +
		`"dt":"2026-06-01T00:00:00+02:00",` +
		`"ts":"2026-06-01T00:00:00+02:00","uu":"6f1f2a3e-0000-4000-8000-000000000002","j":null,` +
		`"c":"","lat":"ü","odd` + "`" + `name":"text"}`
	res := mustExecute(t, c, call("update", ref, "", state, change))
	want := "18446744073709551615|9223372036854775806|1|4095|000007|1999|-0.0000000001|2.5|happy|b|FFFFFFFF|0001|" +
		"2028-02-29|838:59:59.000|2026-05-31 22:00:00.000|2026-05-31 22:00:00.000000|" +
		"6f1f2a3e-0000-4000-8000-000000000002||ü|18446744073709551612|text"
	if got := dump(); got != want {
		t.Errorf("holds\n%s, want\n%s", got, want)
	}
	mustExecute(t, c, again(res.Reversal))
	if got := dump(); got != before {
		t.Errorf("reversed to\n%s, was\n%s", got, before)
	}
	res = mustExecute(t, c, call("delete", ref, "", `{"u":9223372036854775807}`, `{}`))
	insert := again(res.Reversal)
	connectortest.Must(t, c.Validate(insert))
	mustExecute(t, c, insert)
	if got := dump(); got != before {
		t.Errorf("reversed to\n%s, was\n%s", got, before)
	}
	for bad, code := range map[string]string{
		`{"u":-1}`:                          "invalid_value",
		`{"u":18446744073709551616}`:        "invalid_value",
		`{"u":9223372036854775808}`:         "invalid_value", // twice would not fit
		`{"ti":200}`:                        "invalid_value",
		`{"bits":4096}`:                     "invalid_value",
		`{"y":26}`:                          "not_as_approved",
		`{"big":0.00000000001}`:             "not_as_approved",
		`{"f":16777217}`:                    "not_as_approved",
		`{"e":"angry"}`:                     "invalid_value",
		`{"e":"1"}`:                         "not_as_approved", // an index
		`{"e":"SAD"}`:                       "not_as_approved",
		`{"s":"b,a"}`:                       "not_as_approved",
		`{"bin":"0x00"}`:                    "not_as_approved", // padded
		`{"vb":"00ff"}`:                     "invalid",
		`{"d":"2026-02-30"}`:                "invalid_value",
		`{"d":"0000-00-00"}`:                "invalid_value",
		`{"d":"2026-1-2"}`:                  "not_as_approved",
		`{"dt":"2026-01-02T03:04:05.1234"}`: "not_as_approved",
		`{"dt":"yesterday"}`:                "invalid_value",
		`{"ts":"1969-01-01T00:00:00Z"}`:     "invalid_value",
		`{"uu":"none"}`:                     "invalid_value",
		`{"c":"abc "}`:                      "not_as_approved", // trailing spaces go
		`{"c":"abcdef"}`:                    "invalid_value",
		`{"lat":"😀"}`:                       "invalid_value",
		`{"twice":4}`:                       "invalid",
	} {
		_, err := c.Execute(t.Context(), call("update", ref, "", `{"y":2026}`, bad))
		if e := failure(t, err); e == nil || e.Kind != connector.Terminal || e.Code != code {
			t.Errorf("%s: got %v, want %s", bad, e, code)
		}
	}
	if got := dump(); got != before {
		t.Errorf("refused, and changed to\n%s, was\n%s", got, before)
	}
}

// TestMariaDBKeys: a key is its exact text and its exact number, whatever MariaDB takes for equal.
func TestMariaDBKeys(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, "mariadb", `
CREATE TABLE items (sku VARCHAR(20) COLLATE utf8mb4_general_ci PRIMARY KEY, price TEXT);
CREATE TABLE numbers (id BIGINT, price TEXT);
INSERT INTO items VALUES ('Straße', '1'), ('b', '1');
INSERT INTO numbers VALUES (9007199254740992, '1'), (9007199254740993, '1'), (42, '1');`)
	cfg := items(tg.dsn)
	cfg.Entities["item"] = sqlconn.Entity{Table: "items", Key: "sku"}
	c := newConnector(t, cfg)
	for _, ref := range []string{"straße", "Strase", "STRAßE", "Straße "} {
		_, err := c.Execute(t.Context(), call("update", ref, "", `{"price":"1"}`, `{"price":"2"}`))
		wantFailure(t, err, connector.Terminal, string(gatehouse.CodeTargetChanged))
	}
	_, err := c.Execute(t.Context(), call("insert", "B", "", "", `{"price":"2"}`))
	wantFailure(t, err, connector.Terminal, string(gatehouse.CodeAlreadyExists))
	mustExecute(t, c, call("update", "Straße", "", `{"price":"1"}`, `{"price":"2"}`))

	cfg.Entities["item"] = sqlconn.Entity{Table: "numbers", Key: "id"}
	c = newConnector(t, cfg)
	mustExecute(t, c, call("update", "9007199254740993", "", `{"price":"1"}`, `{"price":"2"}`))
	mustExecute(t, c, bulk("update", "", `{"price":"3"}`, "9007199254740993", "42"))
	for _, ref := range []string{"42abc", "042", "42.0"} {
		_, err := c.Execute(t.Context(), call("update", ref, "", `{"price":"3"}`, `{"price":"2"}`))
		wantFailure(t, err, connector.Terminal, string(gatehouse.CodeTargetChanged))
	}
	if got := tg.one(t, `SELECT GROUP_CONCAT(id, ':', price ORDER BY id) FROM numbers`); got !=
		"42:3,9007199254740992:1,9007199254740993:3" {
		t.Errorf("holds %s", got)
	}
}

// TestMariaDBUnsafeTables: a change is refused where it could not be rolled back with its record,
// or where a key could have two records.
func TestMariaDBUnsafeTables(t *testing.T) {
	t.Parallel()
	const record = "CREATE TABLE gatehouse_applied (tenant VARBINARY(255), idempotency_key VARBINARY(255), " +
		"digest TEXT, operation TEXT, entity TEXT, applied_at TEXT, result LONGTEXT"
	const primary, badRecord = ", PRIMARY KEY (tenant, idempotency_key))", "invalid_idempotency_table"
	for name, test := range map[string]struct{ alter, code, probe string }{
		"no transactions": {"ALTER TABLE items ENGINE=MyISAM", "invalid", "storage engine MyISAM"},
		"view": {"RENAME TABLE items TO b; CREATE VIEW items AS SELECT * FROM b", "invalid",
			"is a view"},
		"record, no transactions": {record + primary + " ENGINE=Aria", badRecord, "engine Aria"},
		"record, no key":          {record + ")", badRecord, ""},
		"record, key of a part":   {record + ", PRIMARY KEY (tenant, idempotency_key(9)))", badRecord, ""},
		"record, texts as keys":   {strings.ReplaceAll(record, "VARBINARY", "VARCHAR") + primary, badRecord, ""},
		"record as documented":    {record + primary, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tg := newTarget(t, "mariadb", itemsSchema+test.alter)
			c := newConnector(t, items(tg.dsn))
			update := call("update", "SKU-1042", "7", "", `{"price":"1"}`)
			if test.code == "" {
				mustExecute(t, c, update)
				return
			}
			_, err := c.Execute(t.Context(), update)
			wantFailure(t, err, connector.Terminal, test.code)
			if test.probe != "" {
				if err := c.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), test.probe) {
					t.Errorf("Probe says %v", err)
				}
			}
			if got := tg.one(t, `SELECT price FROM items WHERE sku = 'SKU-1042'`); got != "10.00" {
				t.Errorf("holds %s", got)
			}
		})
	}
}

// TestMariaDBWithTLS verifies the server's certificate and its name.
func TestMariaDBWithTLS(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, "mariadb", itemsSchema)
	tg.exec(t, "CREATE OR REPLACE USER encrypted@'%' IDENTIFIED BY 'pw' REQUIRE SSL; GRANT ALL ON *.* TO encrypted@'%'")
	u, err := url.Parse(newProxy(t, tg.dsn).dsn)
	connectortest.Must(t, err)
	ca := mariatest.Shared(t).CA()
	for _, test := range []struct {
		host, parameters string
		reached          bool
	}{
		{mariatest.ServerName, "tls=verify&ca=" + ca, true},
		{mariatest.ServerName, "tls=verify", false},         // nobody vouches for it
		{"127.0.0.1", "tls=verify&ca=" + ca, false},         // another name
		{mariatest.ServerName, "tls=none", false},           // the server refuses
		{mariatest.ServerName, "", false},                   // the default on this host is no TLS
		{"127.0.0.1", "tls=verify&ca=/etc/hostname", false}, // no certificate: refused at the start
	} {
		dsn := "mysql://encrypted:pw@" + test.host + ":" + u.Port() + u.Path + "?" + test.parameters
		c, err := sqlconn.New(t.Context(), items(dsn), nil)
		if err == nil {
			defer c.(*sqlconn.Connector).Close()
			err = c.(*sqlconn.Connector).Probe(t.Context())
		}
		if (err == nil) != test.reached {
			t.Errorf("%s?%s: %v", test.host, test.parameters, err)
		}
	}
}
