package main

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/engine"
)

// indexInterval is how often new actions are looked for that the search index
// lacks.
const indexInterval = 2 * time.Second

// index keeps the search index complete.
func (s *server) index(ctx context.Context) {
	s.work.Go(func() { engine.Loop(ctx, s.log, "search index", indexInterval, s.gate.IndexActions) })
}
