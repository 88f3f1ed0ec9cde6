package console

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// The pace of the stream of changes.
const (
	// heartbeat keeps proxies from closing a stream, and finds out that its
	// session has ended.
	heartbeat = 20 * time.Second
	// quiet is the least time between two events of one stream.
	quiet = 500 * time.Millisecond
	// maxStreams bounds the streams of one process, personStreams those of one
	// person in it, whatever the session; who gets none polls.
	maxStreams    = 2000
	personStreams = 20
	// retryAfter is how long a browser waits before it connects again.
	retryAfter = 3 * time.Second
)

const (
	changesPath = "/events/changes"
	// unlogged is the parameter of a stream whose page shows what changes without
	// an entry of the log.
	unlogged = "unlogged"
)

// eventsPath is the stream that the page listens to.
func (v *view) eventsPath() string {
	if v.unlogged {
		return changesPath + "?" + unlogged + "=yes"
	}
	return changesPath
}

// changes streams that something changed in the tenant, and nothing else: what
// it was, the page asks for by itself, with the rights of who looks; that other
// tenants are busy nobody hears. Each stream is told at once: something may have
// changed since the page was made, or since its last stream broke off. A hint
// that was lost costs a heartbeat: the log's size tells, or, where that cannot,
// the page is told to look.
func (c *Console) changes(v *view) error {
	if v.r.Method == http.MethodHead {
		return nil // a stream without a body would never end
	}
	who := v.person.Tenant + "/" + v.person.Person
	if !c.streams.open(who) {
		return gatehouse.E(gatehouse.CodeBusy, "there are too many open pages")
	}
	defer c.streams.close(who)
	var hint <-chan struct{}
	if c.cfg.Hints != nil {
		h, end := c.cfg.Hints.Subscribe(usecase.TopicLog(v.person.Tenant))
		defer end()
		hint = h
	}
	grown := func() bool { return true }
	if v.query(unlogged) == "" {
		grown = c.logGrowth(v) // before the first word, which tells of what was before
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	v.w.WriteHeader(http.StatusOK)
	number := lastEventID(v.r) + 1
	if !v.send(fmt.Sprintf("retry: %d\n\n", retryAfter.Milliseconds()) + changedEvent(number)) {
		return nil
	}
	beat := time.NewTicker(c.heartbeat)
	defer beat.Stop()
	var rest <-chan time.Time
	waiting := hint
	for {
		var changed bool
		select {
		case <-v.ctx.Done():
			return nil
		case <-rest:
			waiting, rest = hint, nil
			continue
		case <-waiting:
			waiting, rest, changed = nil, time.After(quiet), true
		case <-beat.C:
			changed = grown()
		}
		if v.identify(true) != nil {
			return nil
		}
		text := ": still here\n\n"
		if changed {
			number++
			text = changedEvent(number)
		}
		if !v.send(text) {
			return nil
		}
	}
}

// logGrowth returns what tells whether the tenant's log has grown since it was
// asked last; a log that cannot be read is of another size.
func (c *Console) logGrowth(v *view) func() bool {
	size := func() int64 {
		head, err := c.cfg.Audit.Head(v.ctx)
		if err != nil {
			return 0
		}
		return head.Size
	}
	last := size()
	return func() bool {
		was := last
		last = size()
		return last != was
	}
}

// streams counts the open streams.
type streams struct {
	mu  sync.Mutex
	all int
	of  map[string]int // by person
}

func (s *streams) open(person string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= maxStreams || s.of[person] >= personStreams {
		return false
	}
	if s.of == nil {
		s.of = make(map[string]int)
	}
	s.all++
	s.of[person]++
	return true
}

func (s *streams) close(person string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.of[person]--; s.of[person] <= 0 {
		delete(s.of, person)
	}
}

func changedEvent(number int64) string {
	return "id: " + strconv.FormatInt(number, 10) + "\nevent: changed\ndata:\n\n"
}

// lastEventID is where a browser's stream broke off, 0 for a new one.
func lastEventID(r *http.Request) int64 {
	n, err := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// send writes to a stream and reports whether it got through.
func (v *view) send(text string) bool {
	rc := http.NewResponseController(v.w)
	// A server without deadlines needs none to be moved.
	_ = rc.SetWriteDeadline(time.Now().Add(2 * heartbeat))
	if _, err := v.w.Write([]byte(text)); err != nil {
		return false
	}
	return rc.Flush() == nil
}
