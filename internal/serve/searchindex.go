package serve

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
)

// indexInterval is the interval at which new actions are added to the search
// index.
const indexInterval = 2 * time.Second

// index keeps the search index complete.
func (s *Server) index(ctx context.Context) {
	s.work.Go(func() { dispatch.Loop(ctx, s.Log, "search index", indexInterval, s.Gate.IndexActions) })
}
