package sqlconn

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gatehouse-dev/gatehouse/connector"
)

func TestClassifyPostgres(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]struct {
		kind connector.Kind
		code string
	}{
		"40001": {connector.Transient, "serialization"},
		"40P01": {connector.Transient, "serialization"},
		"55P03": {connector.Transient, "busy"},
		"57014": {connector.Transient, "timeout"},
		"57P01": {connector.Transient, "unavailable"},
		"53300": {connector.Transient, "unavailable"},
		"25P03": {connector.Transient, "unavailable"},
		"23505": {connector.Terminal, "constraint_violation"},
		"23514": {connector.Terminal, "constraint_violation"},
		"22P02": {connector.Terminal, "invalid_value"},
		"42501": {connector.Terminal, "forbidden"},
		"25006": {connector.Terminal, "forbidden"},
		"42P01": {connector.Terminal, "schema_changed"},
		"XX000": {connector.Terminal, "sql_error"},
	} {
		v := postgresDialect{}.classify(&pgconn.PgError{Code: code, Message: "m", Detail: "Key (sku)=(secret) exists"})
		if v.kind != want.kind || v.code != want.code || !v.answered || v.detail != "m (SQLSTATE "+code+")" ||
			v.says != "m" {
			t.Errorf("%s: %+v", code, v)
		}
	}
	for _, d := range []dialect{postgresDialect{}, sqliteDialect{}, mysqlDialect{}, sqlserverDialect{}} {
		if v := d.classify(errors.New("unexpected EOF")); v.kind != connector.Ambiguous || v.answered {
			t.Errorf("no answer: %+v", v)
		}
	}
}

func TestClassifyMySQL(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		number          uint16
		message         string
		kind            connector.Kind
		code, says      string
		unique, missing bool
	}{
		{1213, "m", connector.Transient, "serialization", "m", false, false},
		{1020, "m", connector.Transient, "serialization", "m", false, false},
		{1205, "m", connector.Transient, "busy", "m", false, false},
		{1317, "m", connector.Transient, "interrupted", "m", false, false},
		{1040, "m", connector.Transient, "unavailable", "m", false, false},
		{1927, "m", connector.Transient, "unavailable", "m", false, false},
		{1452, "m", connector.Terminal, "constraint_violation", "m", false, false},
		{4025, "m", connector.Terminal, "constraint_violation", "m", false, false},
		{1366, "m", connector.Terminal, "invalid_value", "m", false, false},
		{1142, "m", connector.Terminal, "forbidden", "m", false, false},
		{1146, "m", connector.Terminal, "schema_changed", "m", false, true},
		{1412, "m", connector.Terminal, "schema_changed", "m", false, true},
		{1064, "m", connector.Terminal, "sql_error", "m", false, false},
		{1062, "Duplicate entry 'own- for key -hidden' for key 'both'", connector.Terminal, "constraint_violation",
			"Duplicate entry for key 'both'", true, false},
		{1062, "Doppelter Eintrag 'own-hidden'", connector.Terminal, "constraint_violation",
			"Duplicate entry", true, false},
	} {
		v := mysqlDialect{}.classify(&mysql.MySQLError{Number: test.number, Message: test.message})
		want := verdict{
			kind: test.kind, code: test.code, says: test.says,
			detail: fmt.Sprintf("%s (error %d)", test.says, test.number),
			unique: test.unique, missing: test.missing, answered: true,
		}
		if v != want {
			t.Errorf("%d: %+v, want %+v", test.number, v, want)
		}
	}
}
