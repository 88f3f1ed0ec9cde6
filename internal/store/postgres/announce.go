package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

var _ gatehouse.Announcer = (*Store)(nil)

// announcement is a set of Updates announced to begin together. They enter the group queue
// together, so that one group takes them all; otherwise the first would find an idle queue and
// run alone. The mutex of the group queue guards it.
type announcement struct {
	expected int
	members  []*member
	released bool
	// timeout releases the waiting members if an expected one does not come.
	timeout *time.Timer
}

type announcementKey struct{}

// Announce announces n Updates; see [gatehouse.Announcer]. Nobody waits longer than maxHold.
func (s *Store) Announce(n int) func(context.Context) context.Context {
	if n < 2 || n > maxMembers {
		return func(ctx context.Context) context.Context { return ctx }
	}
	w := &announcement{expected: n}
	return func(ctx context.Context) context.Context { return context.WithValue(ctx, announcementKey{}, w) }
}

func announcementOf(ctx context.Context) *announcement {
	w, _ := ctx.Value(announcementKey{}).(*announcement)
	return w
}

// enqueue puts a member in the group queue, by itself or with its announcement.
func (s *Store) enqueue(m *member) {
	l := &s.groupQueue
	l.mu.Lock()
	defer l.mu.Unlock()
	w := m.t.mode.announced
	if w == nil || w.released {
		l.waiting = append(l.waiting, m)
		s.startIfReady()
		return
	}
	m.t.mode.announced, m.announced = nil, w
	w.members = append(w.members, m)
	if w.expected--; w.expected == 0 {
		s.releaseAnnouncement(w)
		return
	}
	if w.timeout == nil {
		w.timeout = time.AfterFunc(maxHold, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			s.releaseAnnouncement(w)
		})
	}
}

// skipAnnouncement tells the Update's announcement, if it has one, that the Update does not
// enter the queue.
func (t *tx) skipAnnouncement() {
	w := t.mode.announced
	if w == nil {
		return
	}
	t.mode.announced = nil
	t.s.groupQueue.mu.Lock()
	defer t.s.groupQueue.mu.Unlock()
	if w.expected--; w.expected == 0 {
		t.s.releaseAnnouncement(w)
	}
}

// releaseAnnouncement moves the waiting members to the group queue; later members enter it by
// themselves. The caller holds the queue's mutex.
func (s *Store) releaseAnnouncement(w *announcement) {
	if w.timeout != nil {
		w.timeout.Stop()
	}
	s.groupQueue.waiting = append(s.groupQueue.waiting, w.members...)
	w.members, w.released = nil, true
	s.startIfReady()
}

// startIfReady starts the next group if it may start. The caller holds the queue's mutex.
func (s *Store) startIfReady() {
	if l := &s.groupQueue; len(l.waiting) > 0 && l.canStart() {
		s.startGroup()
	}
}

// dequeue removes a member from the queue, or from its announcement. It reports false if the
// member was already admitted.
func (s *Store) dequeue(m *member) bool {
	l := &s.groupQueue
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, list := range []*[]*member{&l.waiting, m.announcedMembers()} {
		if i := slices.Index(*list, m); i >= 0 {
			*list = slices.Delete(*list, i, i+1)
			return true
		}
	}
	return false
}

func (m *member) announcedMembers() *[]*member {
	if m.announced == nil {
		return new([]*member)
	}
	return &m.announced.members
}
