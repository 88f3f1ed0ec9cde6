package lease

import "sync"

// Walk bounds the queues of one look; the next look continues there.
const Walk = 64

// Cursor is the place after which the next look at queues begins, by their keys. It
// starts at the first.
type Cursor[K any] struct {
	mu    sync.Mutex
	after K
}

// After returns the key after which the next look begins.
func (c *Cursor[K]) After() K {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.after
}

// Looked records a look that saw n queues, of which the last has the key last. After
// a look that saw all, the next one begins at the first.
func (c *Cursor[K]) Looked(n int, last K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n < Walk {
		var first K
		last = first
	}
	c.after = last
}
