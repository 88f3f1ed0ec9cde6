package rest

import (
	"context"
	"sync"
)

// Keyed is a lock for each name, within this process. The zero value is ready.
type Keyed struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when the holder is done
}

// Lock waits for the name's lock, or for the end of ctx, and returns what gives it
// back; nil when the time was over.
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
