package serve

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	// foldFor is the time in which a logged warning is not logged again.
	foldFor = time.Minute
	// maxFolds bounds the number of remembered warnings; further warnings are
	// logged each time.
	maxFolds = 512
)

// foldingHandler logs identical warnings and errors once a minute, with the
// number of records left out since. While a store is unreachable, every loop of
// the background work logs an error each second.
type foldingHandler struct {
	slog.Handler
	// before identifies the attributes and groups of WithAttrs and WithGroup.
	before string
	folds  *folds
}

type folds struct {
	mu    sync.Mutex
	known map[string]*fold
}

type fold struct {
	loggedAt time.Time
	left     int
}

func newFoldingHandler(h slog.Handler) slog.Handler {
	return &foldingHandler{Handler: h, folds: &folds{known: make(map[string]*fold)}}
}

// Handle logs r, or counts it as left out.
func (h *foldingHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return h.Handler.Handle(ctx, r)
	}
	var key strings.Builder
	fmt.Fprintf(&key, "%s\x00%d\x00%s", h.before, r.Level, r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&key, "\x00%s=%s", a.Key, a.Value)
		return true
	})
	left, say := h.folds.take(key.String(), r.Time)
	if !say {
		return nil
	}
	if left > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("repeated", left))
	}
	return h.Handler.Handle(ctx, r)
}

// take reports whether to log a record with this key at a time, and how many
// such records were left out since the last logged one.
func (f *folds) take(key string, at time.Time) (left int, say bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.known[key]; known != nil {
		if at.Sub(known.loggedAt) < foldFor {
			known.left++
			return 0, false
		}
		left = known.left
	} else if len(f.known) >= maxFolds {
		for k, known := range f.known {
			if at.Sub(known.loggedAt) >= foldFor {
				delete(f.known, k)
			}
		}
		if len(f.known) >= maxFolds {
			return 0, true
		}
	}
	f.known[key] = &fold{loggedAt: at}
	return left, true
}

// WithAttrs returns a handler that shares the remembered warnings.
func (h *foldingHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &foldingHandler{h.Handler.WithAttrs(attrs), fmt.Sprint(h.before, attrs), h.folds}
}

// WithGroup returns a handler that shares the remembered warnings.
func (h *foldingHandler) WithGroup(name string) slog.Handler {
	return &foldingHandler{h.Handler.WithGroup(name), h.before + name + ".", h.folds}
}
