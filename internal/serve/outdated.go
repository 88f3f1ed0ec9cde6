package serve

import (
	"context"
	"errors"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
)

// versionInterval is the interval at which a replica checks the version of its tables.
const versionInterval = 5 * time.Second

// watchVersion ends the server if a newer program has migrated the database: the
// server's writes and calls might then be wrong.
func (s *Server) watchVersion(ctx context.Context) {
	dispatch.Loop(ctx, s.Log, "version check", versionInterval, func(ctx context.Context) (bool, error) {
		if err := s.Store.Ping(ctx); errors.Is(err, postgres.ErrNewer) {
			select {
			case s.failed <- err:
			default:
			}
		}
		return false, nil // other loops report an unreachable database
	})
}
