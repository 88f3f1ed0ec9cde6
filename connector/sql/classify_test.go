package sqlconn

import (
	"errors"
	"testing"

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
	for _, d := range []dialect{postgresDialect{}, sqliteDialect{}} {
		if v := d.classify(errors.New("unexpected EOF")); v.kind != connector.Ambiguous || v.answered {
			t.Errorf("no answer: %+v", v)
		}
	}
}
