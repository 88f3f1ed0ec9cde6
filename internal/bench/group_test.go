package bench

import (
	"errors"
	"iter"
	"sync"
	"testing"
	"time"
)

// TestGroup: each item is written once, in a batch of at most groupBatch, and a failure reaches all callers of its
// batch.
func TestGroup(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	var mu sync.Mutex
	seen := map[int]int{}
	failed := 0
	g := newGroup(2, func(list iter.Seq[int]) error {
		n, fails := 0, false
		mu.Lock()
		defer mu.Unlock()
		for item := range list {
			n++
			seen[item]++
			fails = fails || item%100 == 0
		}
		if n == 0 || n > groupBatch {
			t.Errorf("a batch of %d", n)
		}
		if fails {
			failed += n
			return broken
		}
		return nil
	})
	const callers = 1000
	errs := make([]error, callers)
	var wg sync.WaitGroup
	mu.Lock() // both writers wait with their first item until the queue is full
	for i := range callers {
		wg.Go(func() { errs[i] = g.do(i) })
	}
	for end := time.Now().Add(time.Minute); len(g.queue) < cap(g.queue) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if len(g.queue) < cap(g.queue) {
		t.Error("the queue does not fill")
	}
	mu.Unlock()
	wg.Wait()
	g.close()
	told := 0
	for i, err := range errs {
		if seen[i] != 1 {
			t.Errorf("%d is written %d times", i, seen[i])
		}
		if errors.Is(err, broken) {
			told++
		}
	}
	if told != failed || failed < callers/100 {
		t.Errorf("%d are told of a failure, of %d", told, failed)
	}
}
