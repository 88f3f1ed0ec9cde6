package sqlconn

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	"github.com/gatehouse-dev/gatehouse/internal/mariatest"
)

// TestMySQLSession: what the server's defaults would make unsafe is set for each session.
func TestMySQLSession(t *testing.T) {
	t.Parallel()
	name := mariatest.Database(t)
	_, db, err := openMySQL(mariatest.Shared(t).DSN(name), "")
	connectortest.Must(t, err)
	defer db.Close()
	for variable, want := range map[string]string{
		"tx_isolation":             "REPEATABLE-READ",
		"innodb_lock_wait_timeout": "10",
		"lock_wait_timeout":        "10",
		"wait_timeout":             "120",
		"time_zone":                "+00:00",
		"character_set_client":     "utf8mb4",
		"autocommit":               "1",
		"foreign_key_checks":       "1",
		"lc_messages":              "en_US",
	} {
		var got string
		if err := db.QueryRowContext(t.Context(), "SELECT @@SESSION."+variable).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %s, not %s: %v", variable, got, want, err)
		}
	}
}
