package postgres

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
)

// TestLeafNeedsSeq: seq has no default, because the statement that stores a leaf must also store that the leaf waits
// for its number.
func TestLeafNeedsSeq(t *testing.T) {
	t.Parallel()
	c, err := pgx.Connect(t.Context(), pgtest.AllTenants(database(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	_, err = c.Exec(t.Context(), `INSERT INTO audit_leaf (tenant, action_id, body) VALUES ('default', '', '{}')`)
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.ColumnName != "seq" {
		t.Errorf("%v, want a refusal of a leaf without seq", err)
	}
}
