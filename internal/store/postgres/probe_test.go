package postgres_test

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/pgtest/migrated"
	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
)

// TestProbe: the probe finds the tables, also at an address with parameters of the store's pool.
func TestProbe(t *testing.T) {
	t.Parallel()
	found, err := postgres.Probe(t.Context(), migrated.Database(t)+"&pool_max_conns=4")
	if err != nil || found.Server == "" || found.Schema == 0 {
		t.Errorf("found %+v, %v", found, err)
	}
}
