package wake

import (
	"context"
	"sync"
	"time"
)

const (
	// maxPending bounds the topics that wait for a carrier. Under load these
	// are ids of actions, and a caller may wait for each of them. A dropped
	// topic costs the waiting replica one poll interval.
	maxPending = 4096
	// maxRound bounds the topics of one round.
	maxRound = 256
	// roundGap is the minimum time between two rounds, so that a topic is
	// carried at most 100 times a second, however often it is hinted. The first
	// hint after a pause is carried at once.
	roundGap = 10 * time.Millisecond
)

// Queue collects topics for a carrier: bounded, each topic once, in the order
// of their first hint. Put never blocks. Create a Queue with NewQueue.
type Queue struct {
	mu      sync.Mutex
	topics  []string
	waiting map[string]struct{}
	dropped uint64
	ready   chan struct{}
	// last is the time of the last round; only the carrier uses it.
	last time.Time
}

// NewQueue returns an empty queue.
func NewQueue() *Queue {
	return &Queue{waiting: make(map[string]struct{}), ready: make(chan struct{}, 1)}
}

// Put adds a topic unless it is waiting already. If the queue is full, the
// topic is dropped.
func (q *Queue) Put(topic string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, waits := q.waiting[topic]; waits {
		return
	}
	if len(q.topics) >= maxPending {
		q.dropped++
		return
	}
	q.topics = append(q.topics, topic)
	q.waiting[topic] = struct{}{}
	q.signal()
}

// Round waits until there are topics and the last round is long enough ago,
// then takes up to 256 of them. It returns nil when ctx ends. Only one
// goroutine may call it at a time.
func (q *Queue) Round(ctx context.Context) []string {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-q.ready:
		}
		if wait := roundGap - time.Since(q.last); wait > 0 {
			timer := time.NewTimer(wait)
			select {
			case <-ctx.Done():
				timer.Stop()
				q.mu.Lock()
				q.signal() // the topics still wait for the next call
				q.mu.Unlock()
				return nil
			case <-timer.C:
			}
		}
		if topics := q.take(); len(topics) > 0 {
			q.last = time.Now()
			return topics
		}
	}
}

// Dropped counts the topics dropped because the queue was full.
func (q *Queue) Dropped() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

func (q *Queue) take() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.topics), maxRound)
	taken := q.topics[:n:n]
	q.topics = q.topics[n:]
	if len(q.topics) == 0 {
		q.topics = nil
	} else {
		q.signal()
	}
	for _, t := range taken {
		delete(q.waiting, t)
	}
	return taken
}

// signal tells Round that topics wait; the caller holds the lock.
func (q *Queue) signal() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}
