// Package aside passes over work that fails, so that it never keeps other work waiting. Loops that
// poll a store for due work, in batches of a fixed size, keep a [Set] of what failed.
package aside

import (
	"sync"
	"time"
)

// The first failure sets an item aside for the time first; each further failure doubles the time, up to longest.
const (
	first   = time.Second
	longest = 5 * time.Minute
)

// maxItems bounds a set, because each poll also reads all its members. Items beyond the bound are
// retried at each poll.
const maxItems = 10_000

// Set holds the items that failed, by key, with the time of the next try. Each process has its own
// set: another process, or this one after a restart, tries each item once before it sets it aside.
// The zero Set is empty. Its methods may be called concurrently.
type Set[K comparable] struct {
	mu    sync.Mutex
	items map[K]item
}

type item struct {
	tries int
	at    time.Time
}

// Size returns the number of items that are set aside. A poll reads that many items in addition
// to those that it needs, since it may find all the items that are set aside.
func (s *Set[K]) Size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.items)
}

// Due returns up to limit of the polled items, without those whose wait has not ended. It puts
// items that have never failed first, so that slow retries do not delay them.
func Due[K comparable, T any](s *Set[K], polled []T, key func(T) K, limit int, now time.Time) []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, i := range s.items { // drop items that polls no longer find
		if now.Sub(i.at) > longest {
			delete(s.items, k)
		}
	}
	var due, again []T
	for _, t := range polled {
		switch i, failed := s.items[key(t)]; {
		case !failed:
			due = append(due, t)
		case !now.Before(i.at):
			again = append(again, t)
		}
	}
	due = append(due, again...)
	return due[:min(len(due), limit)]
}

// Note records the result of a try, and returns the number of failures.
func (s *Set[K]) Note(key K, failure error, now time.Time) (tries int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if failure == nil {
		delete(s.items, key)
		return 0
	}
	i := s.items[key]
	i.tries++
	i.at = now.Add(min(first<<min(i.tries-1, 20), longest))
	if s.items == nil {
		s.items = make(map[K]item)
	}
	if _, known := s.items[key]; known || len(s.items) < maxItems {
		s.items[key] = i
	}
	return i.tries
}
