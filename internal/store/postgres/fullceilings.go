package postgres

import (
	"slices"
	"sync"
	"time"
)

const (
	// fullFor is how long a ceiling that refused a claim counts as full.
	fullFor = 10 * time.Second
	// maxFull bounds the ceilings that are remembered.
	maxFull = 1024
)

// fullCeilings remembers ceilings that refused a claim lately, by their locks. A claim on such a ceiling is
// not made in a group: if it is refused, it undoes the group.
type fullCeilings struct {
	mu sync.Mutex
	at map[int64]time.Time
}

func (f *fullCeilings) add(lock int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at == nil || len(f.at) >= maxFull {
		f.at = make(map[int64]time.Time)
	}
	f.at[lock] = time.Now()
}

// any reports whether one of the ceilings that a query locks was full lately.
func (f *fullCeilings) any(locks query) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.at) > 0 && slices.ContainsFunc(locks.rows, func(r any) bool {
		at, known := f.at[r.(ceilingLock).Hash]
		return known && time.Since(at) < fullFor
	})
}
