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

// The limits of the event stream.
const (
	// heartbeat is the interval at which a stream sends a message, so that proxies do not close the stream
	// and the server notices the end of its session.
	heartbeat = 20 * time.Second
	// quiet is the minimum time between two events of one stream.
	quiet = 500 * time.Millisecond
	// maxStreams limits the streams of one process, personStreams those of one person in it over
	// all sessions. A page without a stream polls.
	maxStreams    = 2000
	personStreams = 20
	// retryAfter is how long a browser waits before it reconnects.
	retryAfter = 3 * time.Second
)

const (
	changesPath = "/events/changes"
	// unlogged is the URL parameter of a page whose content also changes without a log entry.
	unlogged = "unlogged"
)

// eventsPath is the URL of the stream for this page.
func (v *view) eventsPath() string {
	if v.unlogged {
		return changesPath + "?" + unlogged + "=yes"
	}
	return changesPath
}

// changes sends an event whenever something has changed in the tenant. The event has no content:
// the page then asks for its own parts, with the rights of its reader. Changes in other tenants
// send nothing. Every new stream starts with an event, because something may have changed since the
// page was made or the last stream broke off. At each heartbeat, a changed size of the log sends an event too, in
// case a hint was lost; a log that cannot be read has size 0. A page whose content also changes without a log
// entry gets an event at each heartbeat.
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
		grown = c.logGrowth(v) // read the size before the first event, which covers all earlier changes
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
			grown() // the next heartbeat reports only later changes
		case <-beat.C:
			changed = grown()
		}
		if v.identify(true) != nil {
			return nil
		}
		text := ": keep-alive\n\n"
		if changed {
			number++
			text = changedEvent(number)
		}
		if !v.send(text) {
			return nil
		}
	}
}

// logGrowth returns a function that reports whether the size of the tenant's log has changed since
// the last call. A log that cannot be read has size zero.
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

// lastEventID is the id of the last event that the browser received, 0 for a new stream.
func lastEventID(r *http.Request) int64 {
	n, err := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// send writes to a stream and reports whether the write succeeded.
func (v *view) send(text string) bool {
	rc := http.NewResponseController(v.w)
	// A server without deadlines returns an error here, which does not matter.
	_ = rc.SetWriteDeadline(time.Now().Add(2 * heartbeat))
	if _, err := v.w.Write([]byte(text)); err != nil {
		return false
	}
	return rc.Flush() == nil
}
