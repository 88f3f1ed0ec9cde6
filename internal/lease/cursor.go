package lease

import "sync"

// MaxScan is the largest number of queues that one scan reads; the next scan continues after them.
const MaxScan = 64

// Cursor is the key of the queue after which the next scan begins. It starts before the
// first queue.
type Cursor[K any] struct {
	mu    sync.Mutex
	after K
}

// After returns the key after which the next scan begins.
func (c *Cursor[K]) After() K {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.after
}

// Scanned records a scan of n queues; last is the key of the last one. If n is below
// MaxScan, the next scan begins at the first queue.
func (c *Cursor[K]) Scanned(n int, last K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n < MaxScan {
		var zero K
		last = zero
	}
	c.after = last
}
