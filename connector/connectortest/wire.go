package connectortest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"strings"
	"sync"
	"testing"
	"time"
)

// wire is a handler in front of a fixture's server. It can alter requests and replace answers.
type wire struct {
	next    http.Handler
	changes func(*http.Request) bool

	mu        sync.Mutex
	broken    *breakage
	requests  int
	changed   int
	rewritten bool
	dirty     []string // the URIs of requests whose structure a string of the proposal has changed
}

// breakage is what a wire does to the requests that change something; if all is set, to every request.
type breakage struct {
	all bool
	// date is how far the header Date is off.
	date time.Duration
	// rewrite replaces the body of a request.
	rewrite func(body []byte) []byte
	// after lets the target carry out the request before answer runs. If answer is nil, the target answers.
	after  bool
	answer func(http.ResponseWriter, *http.Request)
}

// connect puts a wire in front of the fixture's server.
func (f *Fixture) connect() {
	if f.Server == nil {
		return
	}
	f.wire = &wire{next: f.Server.Config.Handler, changes: f.Changes}
	if f.Changes == nil {
		f.wire.changes = Changes
	}
	f.Server.Config.Handler = f.wire
}

// Changes is the default of [Fixture.Changes]: each request changes something, except GET, HEAD, requests
// for a token, and dry runs.
func Changes(r *http.Request) bool {
	end := strings.TrimSuffix(r.URL.Path, "s")
	return r.Method != http.MethodGet && r.Method != http.MethodHead && !strings.HasSuffix(end, "token") &&
		!r.URL.Query().Has("dryRun") && !r.URL.Query().Has("dry_run")
}

func (wi *wire) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	refill := func() { r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body)) }
	refill()
	changes := wi.changes(r)
	refill()
	wi.mu.Lock()
	wi.requests++
	if changes {
		wi.changed++
	}
	sent, _, _ := strings.Cut(r.RequestURI, "?")
	if r.Header.Get("X-Evil") != "" || path.Clean(sent) != strings.TrimSuffix(sent, "/") && sent != "/" {
		wi.dirty = append(wi.dirty, r.RequestURI)
	}
	b := wi.broken
	if b != nil && b.rewrite != nil && changes {
		was := body
		body = b.rewrite(body)
		wi.rewritten = wi.rewritten || !bytes.Equal(was, body)
		refill()
	}
	wi.mu.Unlock()
	if b == nil || !changes && !b.all {
		wi.next.ServeHTTP(w, r)
		return
	}
	if b.date != 0 {
		w.Header().Set("Date", time.Now().Add(b.date).UTC().Format(http.TimeFormat))
	}
	if b.after {
		wi.next.ServeHTTP(httptest.NewRecorder(), r)
	}
	if b.answer == nil {
		wi.next.ServeHTTP(w, r)
		return
	}
	b.answer(w, r)
}

// breakBy breaks requests and answers until it is called with nil.
func (wi *wire) breakBy(b *breakage) {
	wi.mu.Lock()
	defer wi.mu.Unlock()
	wi.broken = b
}

// count returns the number of all requests, and of the requests that change something.
func (wi *wire) count() (requests, changed int) {
	if wi == nil {
		return 0, 0
	}
	wi.mu.Lock()
	defer wi.mu.Unlock()
	return wi.requests, wi.changed
}

// hasRewritten reports whether a request was rewritten. It returns true without a wire, where
// Fixture.Break drops or changes the value.
func (wi *wire) hasRewritten() bool {
	if wi == nil {
		return true
	}
	wi.mu.Lock()
	defer wi.mu.Unlock()
	return wi.rewritten
}

func (wi *wire) wantClean(t *testing.T) {
	t.Helper()
	if wi == nil {
		return
	}
	wi.mu.Lock()
	defer wi.mu.Unlock()
	for _, uri := range wi.dirty {
		t.Errorf("a string of the proposal has changed the structure of the request %q", uri)
	}
}

// breakBy breaks the target until heal is called, with the fixture's own Break or with the wire. For Garbled with
// a server, the caller has set up the wire already, and only heal has an effect.
func (f *Fixture) breakBy(t *testing.T, fault Fault) (heal func()) {
	t.Helper()
	if f.Break != nil {
		if heal := f.Break(t, fault); heal != nil {
			return heal
		}
	}
	b, ok := breakages[fault]
	switch {
	case fault == Dropped && f.Field != "":
		b, ok = breakage{rewrite: f.drop}, true
	case fault == Changed && f.Value[0] != "":
		b, ok = breakage{rewrite: func(body []byte) []byte {
			return bytes.Replace(body, []byte(f.Value[0]), []byte(f.Value[1]), 1)
		}}, true
	}
	switch {
	case fault == Garbled && f.Server != nil:
	case f.Server == nil || !ok:
		t.Fatalf("the suite cannot cause %s: set Fixture.Break, or say in Harness.Skip why it cannot happen", fault)
	default:
		f.wire.breakBy(&b)
	}
	return func() { f.wire.breakBy(nil) }
}

// breakages are the faults that the wire can cause for every fixture with a server.
var breakages = map[Fault]breakage{
	LostBefore:   {answer: lost},
	LostAfter:    {after: true, answer: lost},
	Busy:         {all: true, answer: status(http.StatusTooManyRequests, "Retry-After", "1")},
	Outage:       {all: true, answer: status(http.StatusServiceUnavailable)},
	WrongDate:    {all: true, date: time.Hour},
	Unauthorized: {answer: status(http.StatusUnauthorized)},
}

// garbled are wrong answers to a change that the target has made.
var garbled = map[string]func(http.ResponseWriter, *http.Request){
	"a failure of a gateway": status(http.StatusBadGateway),
	"a page":                 text("<html>Sign in</html>"),
	"nothing":                text(""),
	"a list":                 text(`[[[{"id":{"id":[null]}}]]]`),
	"too much":               text(strings.Repeat("[", 3<<20)),
	"cut off": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "4096")
		fmt.Fprint(w, `{"id": "1`)
	},
	"values of other types": text(`{"id":"\u202e<script>","object":7,"message":{"text":[]},"ok":"yes","kind":{}}`),
}

func lost(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func text(s string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, s) }
}

func status(code int, header ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
	}
}

// drop removes the fixture's field from a body, which is a JSON document or a form.
func (f *Fixture) drop(body []byte) []byte {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var doc any
	if decoder.Decode(&doc) == nil {
		without(doc, f.Field)
		out, err := json.Marshal(doc)
		if err != nil {
			return body
		}
		return out
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return body
	}
	form.Del(f.Field)
	return []byte(form.Encode())
}

func without(doc any, name string) {
	switch d := doc.(type) {
	case map[string]any:
		delete(d, name)
		for _, inner := range d {
			without(inner, name)
		}
	case []any:
		for _, inner := range d {
			without(inner, name)
		}
	}
}
