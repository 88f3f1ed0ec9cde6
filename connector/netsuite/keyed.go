package netsuite

import (
	"context"
	"sync"
)

// keyed is a lock for each name. The zero value is ready.
type keyed struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when the holder is done
}

// lock waits for the name's lock, or for the end of ctx, and returns what gives it
// back; nil when the time was over.
func (k *keyed) lock(ctx context.Context, name string) (unlock func()) {
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
