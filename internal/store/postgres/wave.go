package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

var _ gatehouse.Gathering = (*Store)(nil)

// wave is Updates that were announced to begin together. They get in line
// together, so that one group has them all; else the first would find nobody
// under way, and go alone. It is guarded by the line's lock.
type wave struct {
	coming int
	held   []*member
	gone   bool
	// late releases those who wait for one that does not come.
	late *time.Timer
}

type waveKey struct{}

// Together announces Updates; see [gatehouse.Gathering]. Nobody waits for longer
// than maxHold.
func (s *Store) Together(n int) func(context.Context) context.Context {
	if n < 2 || n > maxMembers {
		return func(ctx context.Context) context.Context { return ctx }
	}
	w := &wave{coming: n}
	return func(ctx context.Context) context.Context { return context.WithValue(ctx, waveKey{}, w) }
}

func waveOf(ctx context.Context) *wave {
	w, _ := ctx.Value(waveKey{}).(*wave)
	return w
}

// enter gets in line, alone or with one's wave.
func (s *Store) enter(m *member) {
	l := &s.line
	l.mu.Lock()
	defer l.mu.Unlock()
	w := m.t.course.wave
	if w == nil || w.gone {
		l.waiting = append(l.waiting, m)
		s.proceed()
		return
	}
	m.t.course.wave, m.wave = nil, w
	w.held = append(w.held, m)
	if w.coming--; w.coming == 0 {
		s.release(w)
		return
	}
	if w.late == nil {
		w.late = time.AfterFunc(maxHold, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			s.release(w)
		})
	}
}

// absent tells an Update's wave, if it has one that counts on it, that it does
// not get in line.
func (t *tx) absent() {
	w := t.course.wave
	if w == nil {
		return
	}
	t.course.wave = nil
	t.s.line.mu.Lock()
	defer t.s.line.mu.Unlock()
	if w.coming--; w.coming == 0 {
		t.s.release(w)
	}
}

// release lets those in line who were held; who comes later comes alone. The
// line is locked.
func (s *Store) release(w *wave) {
	if w.late != nil {
		w.late.Stop()
	}
	s.line.waiting = append(s.line.waiting, w.held...)
	w.held, w.gone = nil, true
	s.proceed()
}

// proceed lets those who wait go on, if they may. The line is locked.
func (s *Store) proceed() {
	if l := &s.line; len(l.waiting) > 0 && l.enough() {
		s.next()
	}
}

// quit takes a member out of the line, or of the wave that it waits with. It
// reports false when it was called already.
func (s *Store) quit(m *member) bool {
	l := &s.line
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, list := range []*[]*member{&l.waiting, m.held()} {
		if i := slices.Index(*list, m); i >= 0 {
			*list = slices.Delete(*list, i, i+1)
			return true
		}
	}
	return false
}

func (m *member) held() *[]*member {
	if m.wave == nil {
		return new([]*member)
	}
	return &m.wave.held
}
