package sqlconn_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	sqlconn "github.com/gatehouse-dev/gatehouse/connector/sql"
)

const valuesSchema = `CREATE TABLE vals (
  id VARCHAR(200) PRIMARY KEY, i BIGINT, n NUMERIC(20,4), f DOUBLE PRECISION, b BOOLEAN, t TEXT, v VARCHAR(5),
	j JSON, at TIMESTAMP(6) NULL, d DATE
);
INSERT INTO vals (id) VALUES ('1');`

func valuesConfig(dsn string) sqlconn.Config {
	return sqlconn.Config{DSN: dsn, Entities: map[string]sqlconn.Entity{"item": {Table: "vals", Key: "id"}}}
}

// TestValuesAreStoredExactly replaces a null with each value, and reads the stored value without the
// connector.
func TestValuesAreStoredExactly(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		tg := newTarget(t, engine, valuesSchema)
		c := newConnector(t, valuesConfig(tg.dsn))
		for i, test := range []struct {
			column, value string
			// The stored value as text; "" when the connector must refuse the value.
			sqlite, postgres, mariadb, sqlserver string
		}{
			{"i", `1234567890123456789`, "1234567890123456789", "1234567890123456789", "1234567890123456789",
				"1234567890123456789"},
			{"i", `-9223372036854775808`, "-9223372036854775808", "-9223372036854775808", "-9223372036854775808",
				"-9223372036854775808"},
			{"i", `12345678901234567890`, "", "", "", ""}, // SQLite would store a float
			{"i", `"42"`, "42", "42", "42", "42"},
			{"i", `1.5`, "1.5", "", "", ""}, // SQLite's INTEGER columns hold it
			{"n", `12.50`, "12.5", "12.5000", "12.5000", "12.5000"},
			{"n", `"12.50"`, "12.5", "12.5000", "12.5000", "12.5000"},
			{"n", `12.50005`, "12.50005", "", "", ""}, // PostgreSQL would round it
			{"n", `1234567890123456.1234`, "", "1234567890123456.1234", "1234567890123456.1234",
				"1234567890123456.1234"},
			{"f", `0.1`, "0.1", "0.1", "0.1", "0.1"},
			{"f", `0.12345678901234567890`, "", "", "", ""}, // no float has this value
			{"b", `true`, "1", "true", "1", "1"},
			{"b", `false`, "0", "false", "0", "0"},
			{"t", `"plain"`, "plain", "plain", "plain", "plain"},
			{"t", `12.50`, "12.50", "12.50", "12.50", "12.50"},
			{"t", `"12.50"`, "12.50", "12.50", "12.50", "12.50"},
			{"t", `1234567890123456789`, "1234567890123456789", "1234567890123456789", "1234567890123456789",
				"1234567890123456789"},
			{"t", `"'; DROP TABLE vals; --"`, "'; DROP TABLE vals; --", "'; DROP TABLE vals; --",
				"'; DROP TABLE vals; --", "'; DROP TABLE vals; --"},
			{"t", `""`, "", "", "", ""},
			{"t", `"ünïcödé \ud83d\ude00"`, "ünïcödé 😀", "ünïcödé 😀", "ünïcödé 😀", "ünïcödé 😀"},
			{"t", `{"a":[1,2.50]}`, `{"a":[1,2.50]}`, `{"a":[1,2.50]}`, `{"a":[1,2.50]}`,
				`{"a":[1,2.50]}`},
			{"v", `"12345"`, "12345", "12345", "12345", "12345"},
			{"v", `"123456"`, "123456", "", "", ""}, // PostgreSQL would cut it off or fail
			{"j", `{"b":2,"a":[1,{"c":12.50}]}`, `{"a":[1,{"c":12.50}],"b":2}`, `{"a":[1,{"c":12.50}],"b":2}`,
				`{"a":[1,{"c":12.50}],"b":2}`, `{"a":[1,{"c":12.50}],"b":2}`},
			{"j", `"text"`, `"text"`, `"text"`, `"text"`, `text`}, // SQL Server stores JSON as text
			{"at", `"2026-11-20T21:00:00.5Z"`, "2026-11-20T21:00:00.5Z", "2026-11-20 21:00:00.5",
				"2026-11-20 21:00:00.500000", "2026-11-20T21:00:00.500000"},
			{"d", `"2026-11-20"`, "2026-11-20", "2026-11-20", "2026-11-20", "2026-11-20"},
			{"d", `"no date"`, "no date", "", "", ""},
		} {
			want := map[string]string{"sqlite": test.sqlite, "postgres": test.postgres, "mariadb": test.mariadb,
				"sqlserver": test.sqlserver}[engine]
			refused := want == "" && test.value != `""`
			t.Run(test.column+"="+test.value, func(t *testing.T) {
				ref := fmt.Sprint("row-", i)
				tg.exec(t, `INSERT INTO vals (id) VALUES ('`+ref+`')`)
				state := `{"` + test.column + `":null}`
				update := call("update", ref, "", state, `{"`+test.column+`":`+test.value+`}`)
				res, err := c.Execute(t.Context(), update)
				if refused {
					if e := failure(t, err); e == nil || e.Kind != connector.Terminal {
						t.Fatalf("got %v, want a terminal error", e)
					}
					want = "<null>"
				} else if err != nil {
					t.Fatal(err)
				}
				query := `SELECT ` + asText(engine, test.column) + ` FROM vals WHERE id = '` + ref + `'`
				if got := tg.one(t, query); got != want {
					t.Fatalf("the column holds %s, want %s", got, want)
				}
				if refused {
					return
				}
				// The written value matches the next pre-image.
				again := call("update", ref, "", string(update.ProposedChange), state)
				if s, err := c.Check(t.Context(), again); err != nil || !s.Matches {
					t.Errorf("Check against the written value: %+v, %v", s, err)
				}
				undo := call(res.Reversal.Operation, ref, "", string(res.Reversal.CurrentState),
					string(res.Reversal.ProposedChange))
				mustExecute(t, c, undo)
				if got := tg.one(t, query); got != "<null>" {
					t.Errorf("after the reversal, the column holds %s", got)
				}
			})
		}
	})
}

// TestPreImages compares pre-images with rows that the connector has not written.
func TestPreImages(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		schema := valuesSchema + `UPDATE vals
			SET i = 9007199254740993, n = 10, f = 2.5, b = true, t = '10.00', j = '{"a": 1.0}', at = '2026-01-02 03:04:05';`
		tg := newTarget(t, engine, schema)
		c := newConnector(t, valuesConfig(tg.dsn))
		for state, matches := range map[string]bool{
			`{"i":9007199254740993}`:       true,
			`{"i":9007199254740992}`:       false, // equal only as floats
			`{"i":"9007199254740993"}`:     true,
			`{"i":null}`:                   false,
			`{"n":"10.00"}`:                true,
			`{"n":10.01}`:                  false,
			`{"f":2.50}`:                   true,
			`{"b":true}`:                   true,
			`{"b":false}`:                  false,
			`{"t":"10.00"}`:                true,
			`{"t":"10.0"}`:                 false, // texts are compared exactly
			`{"j":{"a":1}}`:                true,
			`{"j":{"a":2}}`:                false,
			`{"v":null}`:                   true,
			`{"v":""}`:                     false,
			`{"at":"2026-01-02 03:04:05"}`: true,
			`{"id":"1","n":10,"v":null}`:   true,
			`{"id":"1","n":10,"v":"x"}`:    false,
		} {
			if engine == "sqlserver" && strings.HasPrefix(state, `{"j":{"a":1}`) {
				matches = false // its JSON is text, which is compared exactly
			}
			wantMatch(t, c, state, matches)
		}
	})
}

// wantMatch checks whether the row 1 is in a state, and that an update is refused if the row is not.
func wantMatch(t *testing.T, c *sqlconn.Connector, state string, matches bool) {
	t.Helper()
	update := call("update", "1", "", state, `{"v":"new"}`)
	s, err := c.Check(t.Context(), update)
	if err != nil || s.Matches != matches {
		t.Errorf("%s: %+v, %v", state, s, err)
	}
	if !matches {
		_, err := c.Execute(t.Context(), update)
		wantFailure(t, err, connector.Terminal, string(gatehouse.CodeTargetChanged))
	}
}

// TestPostgresOwnTypes: a value without a JSON form is written and read in PostgreSQL's text form.
func TestPostgresOwnTypes(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, "postgres", `
CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE DOMAIN cents AS bigint CHECK (VALUE >= 0);
CREATE TABLE vals (id uuid PRIMARY KEY, m mood, arr int[], iv interval, by bytea, net inet, c cents, tz timestamptz,
  twice bigint GENERATED ALWAYS AS (c * 2) STORED);
INSERT INTO vals VALUES ('6f1f2a3e-0000-4000-8000-000000000001', 'sad', '{1,2}', '90 minutes', '\x00ff', '10.0.0.1',
  5, '2026-01-02T03:04:05+02');`)
	c := newConnector(t, valuesConfig(tg.dsn))
	const ref = "6f1f2a3e-0000-4000-8000-000000000001"
	all := `SELECT vals::text FROM vals`
	before := tg.one(t, all)

	state := `{"m":"sad","arr":"{1,2}","iv":"01:30:00","c":5,"tz":"2026-01-02T01:04:05Z","twice":10}`
	res := mustExecute(t, c,
		call("update", ref, "", state, `{"m":"happy","iv":"2 hours","c":7,"arr":"{3}","tz":"2026-06-01T00:00:00+02:00"}`))
	if got := tg.one(t, `SELECT m::text || iv || c || arr::text || twice FROM vals`); got != "happy02:00:007{3}14" {
		t.Errorf("the row holds %s", got)
	}
	mustExecute(t, c, call("update", ref, "", string(res.Reversal.CurrentState), string(res.Reversal.ProposedChange)))
	if got := tg.one(t, all); got != before {
		t.Errorf("after the reversal, the row is %s; before the change it was %s", got, before)
	}

	res = mustExecute(t, c, call("delete", ref, "", `{"m":"sad"}`, `{}`))
	insert := call("insert", ref, "", "", string(res.Reversal.ProposedChange))
	connectortest.Must(t, c.Validate(insert))
	mustExecute(t, c, insert)
	if got := tg.one(t, all); got != before {
		t.Errorf("after the reversal, the row is %s; before the change it was %s", got, before)
	}

	for change, code := range map[string]string{
		`{"m":"angry"}`: "invalid_value", `{"c":-1}`: "constraint_violation", `{"net":"nowhere"}`: "invalid_value",
		`{"twice":4}`: "invalid",
	} {
		_, err := c.Execute(t.Context(), call("update", ref, "", `{"m":"sad"}`, change))
		wantFailure(t, err, connector.Terminal, code)
	}
	// For PostgreSQL, an upper-case uuid names the same row, but a limit per target would count it as
	// another target, so it is refused.
	_, err := c.Execute(t.Context(), call("update", "6F1F2A3E-0000-4000-8000-000000000001", "", `{"m":"sad"}`, `{"c":1}`))
	wantFailure(t, err, connector.Terminal, string(gatehouse.CodeTargetChanged))
}

// TestPreImagesOfOtherTypes: a text matches only itself, except that hexadecimal digits match in either case.
func TestPreImagesOfOtherTypes(t *testing.T) {
	t.Parallel()
	for engine, test := range map[string]struct {
		schema  string
		matches map[string]bool
	}{
		"postgres": {`
CREATE TYPE mood AS ENUM ('sad', 'SAD');
CREATE TABLE vals (id text PRIMARY KEY, v text, m mood, tags text[], x xml, bits bit(3), big oid, u uuid, by bytea);
INSERT INTO vals VALUES
  ('1', NULL, 'SAD', '{VIP,EU}', '<a>B</a>', '010', 5, '6f1f2a3e-0000-4000-8000-000000000001', '\x00ff');`,
			map[string]bool{
				`{"m":"SAD"}`:         true,
				`{"m":"sad"}`:         false,
				`{"tags":"{VIP,EU}"}`: true,
				`{"tags":"{vip,eu}"}`: false,
				`{"x":"<a>b</a>"}`:    false,
				`{"bits":"010"}`:      true,
				`{"bits":"10"}`:       false,
				`{"bits":10}`:         false,
				`{"big":5}`:           true,
				`{"u":"6F1F2A3E-0000-4000-8000-000000000001"}`: true,
				`{"by":"\\x00FF"}`: true,
			}},
		"sqlite": {`
CREATE TABLE vals (id TEXT PRIMARY KEY, v TEXT, a, n);
INSERT INTO vals VALUES ('1', NULL, '2.10', 2.5);`,
			map[string]bool{`{"a":"2.10"}`: true, `{"a":"2.1"}`: false, `{"n":"2.50"}`: true},
		},
	} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			tg := newTarget(t, engine, test.schema)
			c := newConnector(t, valuesConfig(tg.dsn))
			for state, matches := range test.matches {
				wantMatch(t, c, state, matches)
			}
		})
	}
}

// TestPostgresSpellings: an approved value is applied in any spelling that loses nothing. One that is
// rounded, or that a trigger alters, is rolled back, and the preview says so.
func TestPostgresSpellings(t *testing.T) {
	t.Parallel()
	tg := newTarget(t, "postgres", `
CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE DOMAIN price AS money;
CREATE TABLE vals (
  id text PRIMARY KEY, amount money, p price, d date, at time(0), iv interval(0), u uuid, net inet, by bytea, m mood,
  x xml, tags text[], few numeric(10,2)[], floats float4[], moods mood[], span int4range, bits varbit, pt point
);
INSERT INTO vals (id) VALUES ('1'), ('altered');
CREATE FUNCTION alter_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF new.amount IS NOT NULL THEN new.amount := '1.00'; END IF;
  IF new.d IS NOT NULL THEN new.d := '2030-01-01'; END IF;
  IF new.u IS NOT NULL THEN new.u := '00000000-0000-0000-0000-0000000000ff'; END IF;
  IF new.m IS NOT NULL THEN new.m := 'sad'; END IF;
  IF new.tags IS NOT NULL THEN new.tags := '{}'; END IF;
  IF new.iv IS NOT NULL THEN new.iv := NULL; END IF;
  RETURN new; END $$;
CREATE TRIGGER t BEFORE UPDATE ON vals FOR EACH ROW WHEN (new.id = 'altered') EXECUTE FUNCTION alter_row();`)
	c := newConnector(t, valuesConfig(tg.dsn))
	for _, test := range []struct {
		ref, change string
		applied     bool
	}{
		{"1", `{"amount":"$12.50"}`, true},
		{"1", `{"amount":"-1234.5"}`, true},
		{"1", `{"amount":7}`, true},
		{"1", `{"amount":"12.505"}`, false},
		{"1", `{"amount":"$12.505"}`, false},
		{"1", `{"p":"$3.00"}`, true},
		{"1", `{"p":"3.005"}`, false},
		{"1", `{"d":"2026-12-24"}`, true},
		{"1", `{"d":"2026-12-24T23:00:00Z"}`, false}, // its hour would be lost
		{"1", `{"at":"12:30:00"}`, true},
		{"1", `{"at":"23:59:59.7"}`, false},
		{"1", `{"iv":"90 minutes"}`, true},
		{"1", `{"iv":"1.5 seconds"}`, false},
		{"1", `{"iv":"01:30:00"}`, true},
		{"1", `{"u":"{6F1F2A3E-0000-4000-8000-000000000001}"}`, true},
		{"1", `{"net":"10.0.0.1/32"}`, true},
		{"1", `{"by":"\\x00FF"}`, true},
		{"1", `{"m":"happy"}`, true},
		{"1", `{"x":"<a>B</a>"}`, true},
		{"1", `{"tags":"{ vip, \"eu\" }"}`, true},
		{"1", `{"few":"{1.50, 2}"}`, false}, // written as 2.00, which has another scale
		{"1", `{"few":"{1.505}"}`, false},
		{"1", `{"few":"{1.50,2.00}"}`, true},
		{"1", `{"floats":"{16777217}"}`, false},
		{"1", `{"floats":"{0.1,2}"}`, true},
		{"1", `{"moods":"{sad, happy}"}`, true},
		{"1", `{"span":"[1,3]"}`, true},
		{"1", `{"bits":"010"}`, true},
		{"1", `{"pt":"(1,2)"}`, true},
		{"1", `{"amount":null,"d":null,"u":null}`, true},
		{"altered", `{"amount":"$12.50"}`, false},
		{"altered", `{"amount":"12.50"}`, false},
		{"altered", `{"d":"2026-12-24"}`, false},
		{"altered", `{"u":"6f1f2a3e-0000-4000-8000-000000000001"}`, false},
		{"altered", `{"m":"happy"}`, false},
		{"altered", `{"tags":"{ vip }"}`, false},
		{"altered", `{"iv":"2 hours"}`, false},
		{"altered", `{"iv":"1.5 seconds"}`, false},
	} {
		t.Run(test.ref+test.change, func(t *testing.T) {
			before := tg.one(t, `SELECT vals::text FROM vals WHERE id = $1`, test.ref)
			update := call("update", test.ref, "", `{"id":"`+test.ref+`"}`, test.change)
			previewed, err := c.Preview(t.Context(), update)
			for range 10 { // may time out after its two seconds on a busy machine
				if e := failure(t, err); e == nil || e.Code != "timeout" {
					break
				}
				previewed, err = c.Preview(t.Context(), update)
			}
			if ok := previewed.Failure == nil && !previewed.Differs; err != nil || ok != test.applied {
				t.Errorf("previewed as %+v, %v", previewed, err)
			}
			_, err = c.Execute(t.Context(), update)
			if test.applied {
				connectortest.Must(t, err)
				return
			}
			e := failure(t, err)
			if e == nil || e.Kind != connector.Terminal || e.Code != "not_as_approved" && e.Code != "invalid_value" {
				t.Errorf("got %v", e)
			}
			if got := tg.one(t, `SELECT vals::text FROM vals WHERE id = $1`, test.ref); got != before {
				t.Errorf("changed to %s from %s", got, before)
			}
		})
	}
}
