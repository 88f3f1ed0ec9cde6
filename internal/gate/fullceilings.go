package gate

import (
	"slices"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

const (
	// fullFor is how long a ceiling that refused a claim counts as full.
	fullFor = 10 * time.Second
	// maxFull bounds the ceilings that are remembered.
	maxFull = 1024
)

// fullCeilings remembers ceilings that refused a claim lately. On a remote store, decisions under such a ceiling
// look at it before their transaction: a refused claim would undo the group that its decision is in.
type fullCeilings struct {
	mu sync.Mutex
	at map[[3]string]time.Time // by tenant, ceiling and scope
}

func (f *fullCeilings) add(tenant string, c gatehouse.CeilingClaim) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at == nil || len(f.at) >= maxFull {
		f.at = make(map[[3]string]time.Time)
	}
	f.at[[3]string{tenant, c.Ceiling, c.Scope}] = time.Now()
}

// any reports whether the action claims such a ceiling.
func (f *fullCeilings) any(a *gatehouse.Action) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.at) > 0 && slices.ContainsFunc(a.Ceilings, func(c gatehouse.CeilingClaim) bool {
		at, known := f.at[[3]string{a.Tenant, c.Ceiling, c.Scope}]
		return known && time.Since(at) < fullFor
	})
}
