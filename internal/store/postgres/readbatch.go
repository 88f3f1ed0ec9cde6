package postgres

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// readQueue is where Reads wait while a batch of them is under way. They form the next batch. A Read that
// runs alone counts as a batch if a batch could have taken it.
type readQueue struct {
	mu      sync.Mutex
	busy    bool
	waiting []*batchedRead
}

// batchedRead is a Read on its way through the queue.
type batchedRead struct {
	queries []query
	// answers hold the rows, by query, and at the clock reading.
	answers [][][][]byte
	at      time.Time
	// admitted tells the outcome of the wait: nil means that the answers are there, errRunAlone that the
	// Read runs alone. It calls done, unless that is nil, when it has ended.
	admitted chan error
	done     func()
}

// joinReads answers a Read in a batch. Otherwise it connects the Read, and batched is false: the Read
// runs alone.
func (t *readTx) joinReads(queries []query) (batched bool, err error) {
	all := slices.Concat(queries, t.opening.queries)
	if !groupable(all) {
		return false, t.connectView()
	}
	t.nameTenant(all)
	r := &batchedRead{queries: all, admitted: make(chan error, 1)}
	err = t.s.waitForReads(t.ctx, r)
	if errors.Is(err, errRunAlone) {
		t.readDone = r.done
		return false, t.connectView()
	}
	if t.err = err; err != nil {
		return true, err
	}
	t.begun, t.opening.queries, t.at = true, nil, r.at
	return true, t.replay(all, r.answers)
}

// replay passes answers to the row functions of their queries.
func (t *readTx) replay(queries []query, answers [][][][]byte) (err error) {
	for i, q := range queries {
		for _, raw := range answers[i] {
			if q.row == nil || err != nil {
				break
			}
			t.r = q.reader(raw)
			err = q.row(&t.r)
		}
	}
	return err
}

// waitForReads waits for the answers. With errRunAlone, the Read runs alone.
func (s *Store) waitForReads(ctx context.Context, r *batchedRead) error {
	q := &s.reads
	q.mu.Lock()
	q.waiting = append(q.waiting, r)
	s.startReads()
	q.mu.Unlock()
	var gone error
	select {
	case err := <-r.admitted:
		return err
	case <-ctx.Done():
		gone = ctx.Err()
	case <-s.closing:
		gone = errClosed
	}
	q.mu.Lock()
	q.waiting = slices.DeleteFunc(q.waiting, func(o *batchedRead) bool { return o == r })
	q.mu.Unlock()
	if r.done != nil { // admitted meanwhile
		r.done()
	}
	return gone
}

// startReads starts a batch of the waiting Reads, unless one is under way. The caller holds the queue's
// mutex.
func (s *Store) startReads() {
	q := &s.reads
	if q.busy || len(q.waiting) == 0 {
		return
	}
	n := min(len(q.waiting), maxMembers)
	batch := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	q.busy = true
	done := s.holdReads()
	if n == 1 {
		batch[0].done = done
		batch[0].admitted <- errRunAlone
		return
	}
	go func() {
		defer done()
		err := s.readBatch(batch)
		for _, r := range batch {
			r.admitted <- err
		}
	}()
}

// holdReads returns the function that ends a batch. After maxHold the next batch may start anyway.
func (s *Store) holdReads() (done func()) {
	once := sync.OnceFunc(func() {
		s.reads.mu.Lock()
		defer s.reads.mu.Unlock()
		s.reads.busy = false
		s.startReads()
	})
	timer := time.AfterFunc(maxHold, once)
	return func() {
		timer.Stop()
		once()
	}
}

// readBatch reads for all members, on one snapshot, in one round trip. After any error each of them runs
// alone, so that no member gets the error of another.
func (s *Store) readBatch(members []*batchedRead) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.Patience)
	defer cancel()
	var reads mergedReads
	var asked [][]query
	for _, r := range members {
		asked = append(asked, r.queries)
		r.answers = make([][][][]byte, len(r.queries))
		for i, q := range r.queries {
			reads.add(q, &r.answers[i])
		}
	}
	var at time.Time
	err := s.view(ctx, "", false, func(t *readTx) error {
		t.useTenantsOf(asked...)
		batch := append(t.withTenant(t.pendingBatch(len(reads))), query{sql: readClock, row: t.setClock})
		batch = append(reads.appendTo(batch), query{sql: `commit`})
		t.begun = true
		var own error
		t.err, own = t.send(ctx, batch)
		at = t.at
		return own
	})
	if err != nil {
		s.log.DebugContext(ctx, "postgres: a batch of reads failed", "members", len(members), "error", err)
		return errRunAlone
	}
	for _, r := range members {
		r.at = at
	}
	return nil
}
