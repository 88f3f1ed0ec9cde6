package api

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// The timing of an event stream.
const (
	// eventBeat is the interval of the messages that keep proxies from closing an idle
	// stream, and of the checks that the stream's key is still valid, and with which roles.
	eventBeat = 15 * time.Second
	// eventRetry is the time after which a client reconnects.
	eventRetry = 2 * time.Second
	// maxEventTypes bounds the types of one stream.
	maxEventTypes = 50
	mediaEvents   = "text/event-stream"
)

// eventRoutes stream the events of the log.
func (s *Server) eventRoutes() []route {
	if s.cfg.Events == nil {
		return nil
	}
	return []route{{
		method: "GET", path: "/events", name: "streamEvents", tag: tagAudit,
		summary: "Stream events",
		doc: "Server-sent events: each is an entry of the log as a CloudEvent 1.0, with its index as the id. The stream " +
			"starts now, or after the index in the header Last-Event-ID, which a client sends when it connects again, or in " +
			"the parameter after. An auditor receives the tenant's whole log, others the events of the actions and runs that " +
			"they may read; an agent that may read only its own actions receives only their events, even as an auditor. A " +
			"comment comes after 15 seconds without an event; a revoked key ends the stream.",
		status: http.StatusOK, out: typeOf[string](), media: mediaEvents,
		query: []param{
			{
				name: "after",
				kind: paramInteger,
				min:  -1,
				max:  math.MaxInt64 - 1,
				doc:  "The index of the last event that was read; -1 is before the first. Last-Event-ID takes precedence.",
			},
			{
				name: "type",
				max:  2000,
				doc:  "Only these types, with commas between them; hitl.* selects all types with the prefix hitl.",
			},
			{name: "action_id", max: 128, doc: "Only events of this action."},
		},
		handler: noBody(s.streamEvents),
	}}
}

func (s *Server) streamEvents(ctx context.Context, c *call) (reply, error) {
	f := gatehouse.EventFilter{ActionID: c.query["action_id"]}
	var v gatehouse.Violations
	for _, t := range strings.Split(c.query["type"], ",") {
		if t = strings.TrimSpace(t); t != "" {
			f.Types = append(f.Types, t)
		}
	}
	if len(f.Types) > maxEventTypes {
		v.Add("/query/type", "has more than %d types", maxEventTypes)
	}
	if _, given := c.query["after"]; given {
		after := c.query.integer("after", -1)
		f.After = &after
	}
	if c.lastEvent != "" {
		last, err := strconv.ParseInt(c.lastEvent, 10, 64)
		if err != nil || last < -1 || last == math.MaxInt64 {
			v.Add("/header/Last-Event-ID", "must be the id of an event of this stream")
		}
		f.After = &last
	}
	if err := v.Err(); err != nil {
		return reply{}, err
	}
	over, err := c.answers.wait(c.caller.Principal.ID)
	if err != nil {
		return reply{}, err
	}
	defer over()
	page, err := s.cfg.Events.ReadEvents(ctx, f) // a failed first read is answered as an error, not as an ended stream
	if err != nil {
		return reply{}, err
	}
	h := c.w.Header()
	h.Set("Content-Type", mediaEvents)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	c.w.WriteHeader(http.StatusOK)
	if !send(c.w, "retry: "+strconv.FormatInt(eventRetry.Milliseconds(), 10)+"\n\n") {
		return reply{written: true}, nil
	}
	f.Wait = s.eventBeat()
	opened := ctx
	for checked := time.Now(); ; {
		var b strings.Builder
		for _, e := range page.Events {
			b.WriteString("id: " + strconv.FormatInt(e.Index, 10) + "\nevent: " + lineOf(e.Type) + "\ndata: ")
			b.Write(e.Body) // canonical JSON has no line breaks
			b.WriteString("\n\n")
		}
		if len(page.Events) == 0 {
			// An id alone moves the client's Last-Event-ID past entries that
			// are not for it.
			b.WriteString("id: " + strconv.FormatInt(page.Last, 10) + "\n: keep-alive\n\n")
		}
		if !send(c.w, b.String()) || ctx.Err() != nil {
			return reply{written: true}, nil
		}
		if time.Since(checked) >= s.eventBeat() {
			checked = time.Now()
			p, err := s.cfg.Auth.Authenticate(ctx, c.secret)
			if err != nil {
				return reply{written: true}, nil // the client reconnects and gets the error
			}
			fresh := *c.caller
			fresh.Principal = p // its roles may have changed
			ctx = gatehouse.NewContext(opened, &fresh)
		}
		f.After = &page.Last
		if page, err = s.cfg.Events.ReadEvents(ctx, f); err != nil {
			return reply{written: true}, nil
		}
	}
}

// eventBeat returns the keep-alive interval of this server.
func (s *Server) eventBeat() time.Duration {
	if s.cfg.EventBeat > 0 {
		return s.cfg.EventBeat
	}
	return eventBeat
}

// send writes and flushes; false when the client is gone.
func send(w http.ResponseWriter, text string) bool {
	if _, err := w.Write([]byte(text)); err != nil {
		return false
	}
	return http.NewResponseController(w).Flush() == nil
}

// lineOf keeps a field of a stream on one line.
func lineOf(s string) string { return strings.NewReplacer("\n", " ", "\r", " ").Replace(s) }
