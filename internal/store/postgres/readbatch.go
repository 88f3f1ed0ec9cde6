package postgres

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// readQueue holds the Reads that wait while a batch of Reads is under way. The waiting Reads form the next
// batch. A single waiting Read runs alone, and counts as a batch.
type readQueue struct {
	mu      sync.Mutex
	busy    bool
	waiting []*batchedRead
}

// batchedRead is a Read that waits for a batch or belongs to one.
type batchedRead struct {
	queries []query
	// answers holds the rows of the result, by query. at is the clock reading.
	answers [][][][]byte
	at      time.Time
	// admitted receives the end of the wait: nil means that the answers have arrived, errRunAlone that the
	// Read runs alone. A Read that runs alone calls done, if it is not nil, at its end.
	admitted chan error
	done     func()
}

// joinReads answers a Read through a batch. If no batch can take the Read, it runs alone: joinReads connects
// it, and batched is false.
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

// replay passes the answers to the row functions of their queries, and returns the first error of a row
// function.
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

// waitForReads waits for the answers. It returns errRunAlone if the Read has to run alone.
func (s *Store) waitForReads(ctx context.Context, r *batchedRead) error {
	q := &s.reads
	q.mu.Lock()
	q.waiting = append(q.waiting, r)
	s.startReads()
	q.mu.Unlock()
	var gaveUp error
	select {
	case err := <-r.admitted:
		return err
	case <-ctx.Done():
		gaveUp = ctx.Err()
	case <-s.closing:
		gaveUp = errClosed
	}
	q.mu.Lock()
	q.waiting = slices.DeleteFunc(q.waiting, func(o *batchedRead) bool { return o == r })
	q.mu.Unlock()
	if r.done != nil { // the Read was admitted meanwhile, to run alone
		r.done()
	}
	return gaveUp
}

// startReads starts a batch of waiting Reads, unless another batch is under way. The caller holds the
// queue's mutex.
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

// holdReads returns the function that lets the next batch start. It is called after maxBusy at the latest.
func (s *Store) holdReads() (done func()) {
	once := sync.OnceFunc(func() {
		s.reads.mu.Lock()
		defer s.reads.mu.Unlock()
		s.reads.busy = false
		s.startReads()
	})
	timer := time.AfterFunc(maxBusy, once)
	return func() {
		timer.Stop()
		once()
	}
}

// readBatch reads for all members, on one snapshot, in one round trip. After any error, each member runs
// alone, so that no member gets the error of another.
func (s *Store) readBatch(members []*batchedRead) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.Patience)
	defer cancel()
	var reads mergedReads
	var queries [][]query
	for _, r := range members {
		queries = append(queries, r.queries)
		r.answers = make([][][][]byte, len(r.queries))
		for i, q := range r.queries {
			reads.add(q, &r.answers[i])
		}
	}
	var at time.Time
	err := s.view(ctx, "", false, func(t *readTx) error {
		t.useTenantsOf(queries...)
		batch := t.withTenant(t.pendingBatch(len(reads)))
		batch = append(batch, query{sql: readClock, row: t.setClock})
		batch = reads.appendTo(batch)
		batch = append(batch, query{sql: `commit`})
		t.begun = true
		var rowErr error
		t.err, rowErr = t.send(ctx, batch)
		at = t.at
		return rowErr
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
