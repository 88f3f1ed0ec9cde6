package serve

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

// archiveInterval is how long the archiver rests after it has been over all
// that is old.
const archiveInterval = 10 * time.Minute

// archive moves what ended long ago into the archive, where the configuration
// says how long ago.
func (s *Server) archive(ctx context.Context, metrics gate.ArchiveMetrics) error {
	retention := s.config.Retention.Finished.D()
	if retention == 0 {
		return nil
	}
	a, err := s.Gate.NewArchiver(retention, metrics)
	if err != nil {
		return err
	}
	s.work.Go(func() {
		dispatch.Loop(ctx, s.Log, "archiver", archiveInterval, func(ctx context.Context) (bool, error) {
			_, more, err := a.Step(ctx)
			return more, err
		})
	})
	return nil
}
