package rest

import (
	"context"
	"sync"
)

// Keyed is a set of named locks within this process. The zero value is ready to use.
type Keyed struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when the holder unlocks
}

// Lock waits for the lock of a name, or for the end of ctx. It returns the function that unlocks,
// or nil when ctx ended first.
func (k *Keyed) Lock(ctx context.Context, name string) (unlock func()) {
	for {
		k.mu.Lock()
		wait, taken := k.held[name]
		if !taken {
			if k.held == nil {
				k.held = make(map[string]chan struct{})
			}
			mine := make(chan struct{})
			k.held[name] = mine
			k.mu.Unlock()
			return func() {
				k.mu.Lock()
				delete(k.held, name)
				k.mu.Unlock()
				close(mine)
			}
		}
		k.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil
		}
	}
}
