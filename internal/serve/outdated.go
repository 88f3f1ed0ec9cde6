package serve

import (
	"context"
	"errors"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
)

// versionInterval is how often a replica looks whether its tables are still its own.
const versionInterval = 5 * time.Second

// watchVersion ends a server under which a newer program has migrated the
// database: what it would write there, and send, is no longer known to be right.
func (s *Server) watchVersion(ctx context.Context) {
	dispatch.Loop(ctx, s.Log, "version check", versionInterval, func(ctx context.Context) (bool, error) {
		if err := s.Store.Ping(ctx); errors.Is(err, postgres.ErrNewer) {
			select {
			case s.failed <- err:
			default:
			}
		}
		return false, nil // that a database is away is told by those who need it
	})
}
