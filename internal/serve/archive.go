package serve

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

// archiveInterval is the archiver's pause after it has archived every old
// action.
const archiveInterval = 10 * time.Minute

// archive moves actions into the archive, at the configured time after their
// end.
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
