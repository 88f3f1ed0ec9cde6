package wake

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestQueueTakesEachTopicOnceInOrder(t *testing.T) {
	t.Parallel()
	q := NewQueue()
	for range 1000 {
		q.Put("b")
		q.Put("a")
	}
	if diff := cmp.Diff([]string{"b", "a"}, q.Round(t.Context())); diff != "" {
		t.Error(diff)
	}
	q.Put("a")
	if diff := cmp.Diff([]string{"a"}, q.Round(t.Context())); diff != "" {
		t.Errorf("a hint after the round: %s", diff)
	}
}

func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	q := NewQueue()
	for i := range maxPending + 7 {
		q.Put(fmt.Sprint("act_", i))
	}
	if n := q.Dropped(); n != 7 {
		t.Errorf("%d dropped, want 7", n)
	}
	got := 0
	for got < maxPending {
		round := q.Round(t.Context())
		if len(round) == 0 || len(round) > maxRound {
			t.Fatalf("a round of %d", len(round))
		}
		got += len(round)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if round := q.Round(ended); round != nil {
		t.Errorf("left over: %v", round)
	}
}

// TestQueuePaces carries a first hint at once, and a constantly hinted topic at
// most 100 times a second.
func TestQueuePaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue()
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		q.Put("audit")
		q.Round(ctx)
		if waited := time.Since(began); waited != 0 {
			t.Errorf("the first hint waited %s", waited)
		}
		hinting := make(chan struct{})
		go func() {
			defer close(hinting)
			for ctx.Err() == nil {
				q.Put("audit")
				time.Sleep(100 * time.Microsecond)
			}
		}()
		rounds := 1
		for q.Round(ctx) != nil {
			rounds++
		}
		<-hinting
		if rounds < 90 || rounds > 101 {
			t.Errorf("%d rounds in a second", rounds)
		}
	})
}

// TestQueueKeepsTheRestOfARound ends a Round while it waits for its turn: the next Round has its topics.
func TestQueueKeepsTheRestOfARound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue()
		q.Put("a")
		q.Round(t.Context())
		q.Put("b")
		short, cancel := context.WithTimeout(t.Context(), roundGap/2)
		defer cancel()
		if round := q.Round(short); round != nil {
			t.Fatalf("a round before its time: %v", round)
		}
		if diff := cmp.Diff([]string{"b"}, q.Round(t.Context())); diff != "" {
			t.Error(diff)
		}
	})
}
