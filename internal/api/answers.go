package api

import (
	"net/http"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

const (
	// maxUnread bounds the bytes of answers on their way to one principal: a client
	// that asks and does not read fills memory with them.
	maxUnread = 32 << 20
	// smallAnswer is the size of what is not counted, in bytes: the kernel's
	// buffers take it.
	smallAnswer = 16 << 10
	// answerTime is how long a client may take to read an answer, besides a second
	// for each slowRead bytes.
	answerTime = 15 * time.Second
	slowRead   = 128 << 10
	// maxWaits bounds the requests of one principal that wait for something at the
	// same time in this process.
	maxWaits = 200
)

// answers counts what is on its way to each principal. The zero value is ready
// for use.
type answers struct {
	mu    sync.Mutex
	bytes map[string]int
	waits map[string]int
}

// full reports whether so many bytes are on their way to a principal that it has
// to read some of them first.
func (a *answers) full(principal string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bytes[principal] >= maxUnread
}

// send counts n bytes until the returned function is called.
func (a *answers) send(principal string, n int) (sent func()) {
	if n < smallAnswer {
		return func() {}
	}
	return a.count(&a.bytes, principal, n)
}

// wait counts a request that waits until the returned function is called. It fails
// with code rate_limited where too many do.
func (a *answers) wait(principal string) (over func(), err error) {
	a.mu.Lock()
	n := a.waits[principal]
	a.mu.Unlock()
	if n >= maxWaits {
		e := gatehouse.E(gatehouse.CodeRateLimited, "at most %d requests may wait at the same time; end some of them first", maxWaits)
		e.RetryAfter = 1
		return nil, e
	}
	return a.count(&a.waits, principal, 1), nil
}

func (a *answers) count(m *map[string]int, principal string, n int) (done func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
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

// unread fails with code rate_limited.
func unread() error {
	e := gatehouse.E(gatehouse.CodeRateLimited, "%d MiB of answers wait for you to read them; read them first", maxUnread>>20)
	e.RetryAfter = 1
	return e
}

// bounded is a writer whose answers are counted, and have to be read in time.
type bounded struct {
	http.ResponseWriter
	answers   *answers
	principal string
}

// Unwrap serves http.ResponseController.
func (w *bounded) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *bounded) Write(b []byte) (int, error) {
	// A writer without deadlines needs none.
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(answerTime + time.Duration(len(b)/slowRead)*time.Second))
	defer w.answers.send(w.principal, len(b))()
	return w.ResponseWriter.Write(b)
}
