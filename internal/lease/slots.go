package lease

import (
	"context"
	"time"
)

// Slots bounds the work in progress: it holds one element for each item.
type Slots chan struct{}

// Acquire waits until each of all has a free slot, and takes as many as are free then,
// up to most. If they are fewer than least, it waits up to patience for more. It
// returns how many it took of each; 0 means that ctx has ended.
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

// takeFree takes free slots in addition to n, up to a total of most, and returns the
// total.
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
