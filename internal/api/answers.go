package api

import (
	"net/http"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

const (
	// maxUnread bounds the bytes of unread answers of one principal. Without it,
	// a client that sends requests but reads no answers would fill the memory.
	maxUnread = 32 << 20
	// smallAnswer is the size below which an answer is not counted, in bytes:
	// it fits into the kernel's buffers.
	smallAnswer = 16 << 10
	// answerTime is the time that a client has to read an answer, plus a second
	// per slowRead bytes.
	answerTime = 15 * time.Second
	slowRead   = 128 << 10
	// maxWaits bounds the concurrent waiting requests of one principal in this
	// process.
	maxWaits = 200
)

// answers counts the unread bytes and the waits of each principal. The zero
// value is ready to use.
type answers struct {
	mu    sync.Mutex
	bytes map[string]int
	waits map[string]int
}

// full reports whether a principal has too many unread bytes to get a further answer.
func (a *answers) full(principal string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bytes[principal] >= maxUnread
}

// send counts n bytes until sent is called.
func (a *answers) send(principal string, n int) (sent func()) {
	if n < smallAnswer {
		return func() {}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.count(&a.bytes, principal, n)
}

// wait counts a waiting request until over is called. It fails with code
// rate_limited when the principal has too many.
func (a *answers) wait(principal string) (over func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waits[principal] >= maxWaits {
		e := gatehouse.E(gatehouse.CodeRateLimited, "at most %d requests may wait at the same time; end some of them first",
			maxWaits)
		e.RetryAfter = 1
		return nil, e
	}
	return a.count(&a.waits, principal, 1), nil
}

// count adds n until done is called. The caller holds the lock.
func (a *answers) count(m *map[string]int, principal string, n int) (done func()) {
	if *m == nil {
		*m = make(map[string]int)
	}
	(*m)[principal] += n
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if (*m)[principal] -= n; (*m)[principal] <= 0 {
			delete(*m, principal)
		}
	}
}

// unread returns the error with code rate_limited.
func unread() error {
	e := gatehouse.E(gatehouse.CodeRateLimited, "%d MiB of answers are unread; read them first", maxUnread>>20)
	e.RetryAfter = 1
	return e
}

// countedWriter is a writer that counts unread answers and sets a deadline for
// reading them.
type countedWriter struct {
	http.ResponseWriter
	answers   *answers
	principal string
}

// Unwrap supports http.ResponseController.
func (w *countedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *countedWriter) Write(b []byte) (int, error) {
	// The error is ignored: a writer that does not support deadlines, as in tests, needs none.
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(
		time.Now().Add(answerTime + time.Duration(len(b)/slowRead)*time.Second))
	defer w.answers.send(w.principal, len(b))()
	return w.ResponseWriter.Write(b)
}
