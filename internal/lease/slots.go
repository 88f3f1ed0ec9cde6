package lease

import (
	"context"
	"time"
)

// Slots bounds what is in progress: it holds an element for each.
type Slots chan struct{}

// Acquire waits until a slot of each of all is free, and takes as many as are free
// then, up to most. For least it waits up to patience longer. It returns how many it
// took of each; 0 means that ctx has ended.
func Acquire(ctx context.Context, least, most int, patience time.Duration, all ...Slots) int {
	if !take(ctx, nil, all) {
		return 0
	}
	n := takeFree(1, most, all)
	if least = min(least, most); n >= least {
		return n
	}
	enough := time.NewTimer(patience)
	defer enough.Stop()
	for ; n < least; n++ {
		if take(ctx, enough.C, all) {
			continue
		}
		if ctx.Err() != nil {
			Release(n, all...)
			return 0
		}
		return n
	}
	return takeFree(n, most, all)
}

// Release frees n slots of each.
func Release(n int, all ...Slots) {
	for range n {
		for _, s := range all {
			<-s
		}
	}
}

// take waits for one slot of each, until ctx ends or over fires.
func take(ctx context.Context, over <-chan time.Time, all []Slots) bool {
	for i, s := range all {
		select {
		case s <- struct{}{}:
			continue
		case <-over:
		case <-ctx.Done():
		}
		Release(1, all[:i]...)
		return false
	}
	return true
}

// takeFree takes the free slots in addition to n, and returns the new total, which
// is most at most.
func takeFree(n, most int, all []Slots) int {
	for n < most {
		for i, s := range all {
			select {
			case s <- struct{}{}:
				continue
			default:
			}
			Release(1, all[:i]...)
			return n
		}
		n++
	}
	return n
}
