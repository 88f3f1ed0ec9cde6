package mcp

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The codes of the protocol of 2026-07-28.
const (
	codeHeaderMismatch     = -32020
	codeMissingCapability  = -32021
	codeUnsupportedVersion = -32022
)

// The time limits of an answer over HTTP.
const (
	// streamAfter is how long an answer may take before it becomes a stream.
	streamAfter = time.Second
	// beat is the interval of comments on a quiet stream.
	beat = 15 * time.Second
	// writePatience is how long a client may take to read one write.
	writePatience = 30 * time.Second
)

// legacyVersions are the versions of the protocol with sessions.
var legacyVersions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}

// post handles one frame of a client.
func (k *keyState) post(w http.ResponseWriter, r *http.Request) {
	if !accepts(r, jsonType) || !accepts(r, streamType) {
		http.Error(w, "Accept must have "+jsonType+" and "+streamType, http.StatusNotAcceptable)
		return
	}
	raw, ok := k.front.body(w, r)
	if !ok {
		return
	}
	f, err := parseFrame(raw, clientDepth)
	var bad *frameError
	if errors.As(err, &bad) {
		answerError(w, http.StatusBadRequest, bad.id, bad.code, bad.detail)
		return
	}
	version, session := r.Header.Get(versionHeader), r.Header.Get(sessionHeader)
	switch {
	case f.method == "initialize" && session == "":
		k.initialize(w, r, f)
	case session != "":
		k.inSession(w, r, f, session)
	case metaVersion(f) != "" || version != "" && !slices.Contains(legacyVersions, version):
		k.withoutSession(w, r, f)
	default:
		answerError(w, http.StatusBadRequest, f.id, codeInvalidRequest,
			"there is no session: send initialize first, or give the protocol version in each request")
	}
}

// accepts reports whether a client accepts a content type.
func accepts(r *http.Request, kind string) bool {
	family, _, _ := strings.Cut(kind, "/")
	for _, line := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(line, ",") {
			name, _, _ := strings.Cut(part, ";")
			switch strings.ToLower(strings.TrimSpace(name)) {
			case kind, family + "/*", "*/*":
				return true
			}
		}
	}
	return false
}

// prefersStream reports whether a client lists streams before JSON.
func prefersStream(r *http.Request) bool {
	accept := strings.ToLower(r.Header.Get("Accept"))
	stream, plain := strings.Index(accept, streamType), strings.Index(accept, jsonType)
	return stream >= 0 && plain >= 0 && stream < plain
}

// initialize starts a session.
func (k *keyState) initialize(w http.ResponseWriter, r *http.Request, f *frame) {
	if !f.isRequest() {
		answerError(w, http.StatusBadRequest, nil, codeInvalidRequest, "initialize has no id")
		return
	}
	s, err := k.begin(false)
	if err != nil {
		k.notBegun(w, f, err)
		return
	}
	w.Header().Set(sessionHeader, s.id)
	k.handle(w, r, s, f)
}

func (k *keyState) notBegun(w http.ResponseWriter, f *frame, err error) {
	k.front.logFor(k.me).Error("a session could not be started", "error", err)
	status, detail := http.StatusBadGateway, "the MCP server could not be started"+whyNotStarted(err)
	if errors.Is(err, errFull) || errors.Is(err, errStopping) {
		status, detail = http.StatusServiceUnavailable, err.Error()
		w.Header().Set("Retry-After", "5")
	}
	answerError(w, status, f.id, codeInternal, detail)
}

// inSession handles a frame of the protocol with sessions.
func (k *keyState) inSession(w http.ResponseWriter, r *http.Request, f *frame, id string) {
	s := k.find(id)
	version := r.Header.Get(versionHeader)
	switch {
	case s == nil:
		answerError(w, http.StatusNotFound, f.id, codeInvalidRequest, errNoSession.Error())
	case version != "" && !slices.Contains(legacyVersions, version), metaVersion(f) != "":
		answerError(w, http.StatusBadRequest, f.id, codeInvalidRequest,
			"this protocol version has no sessions")
	case f.method == "initialize":
		answerError(w, http.StatusBadRequest, f.id, codeInvalidRequest, "the session has begun already")
	default:
		k.handle(w, r, s, f)
	}
}

// withoutSession handles a frame of the protocol without sessions.
func (k *keyState) withoutSession(w http.ResponseWriter, r *http.Request, f *frame) {
	if !f.isRequest() {
		if f.isResponse() {
			answerError(w, http.StatusBadRequest, nil, codeInvalidRequest, "there is no request to answer")
			return
		}
		w.WriteHeader(http.StatusAccepted) // ignored: a client cancels a request by closing the answer
		return
	}
	if metaVersion(f) == "" {
		answerError(w, http.StatusBadRequest, f.id, codeInvalidParams,
			"_meta lacks io.modelcontextprotocol/protocolVersion")
		return
	}
	if why := mismatch(r, f); why != "" {
		answerError(w, http.StatusBadRequest, f.id, codeHeaderMismatch, why)
		return
	}
	s, err := k.sharedSession()
	if err != nil {
		k.notBegun(w, f, err)
		return
	}
	if why := s.mismatch(r, f); why != "" {
		answerError(w, http.StatusBadRequest, f.id, codeHeaderMismatch, why)
		return
	}
	k.handle(w, r, s, f)
}

// mismatch names the header that differs from the body, "" for none.
func mismatch(r *http.Request, f *frame) string {
	want := (&remote{}).headersOf(&frame{method: f.method, params: f.params})
	want[versionHeader] = metaVersion(f)
	for _, name := range []string{versionHeader, methodHeader, nameHeader} {
		sent, expected := r.Header.Get(name), want[name]
		if name == nameHeader { // of these, only a name can be in base64
			sent, expected = unmasked(sent), unmasked(expected)
		}
		if len(r.Header.Values(name)) > 1 || sent != expected {
			return name + " differs from the body"
		}
	}
	return ""
}

// mismatch names the header of a tool that differs from the arguments, "" for
// none.
func (s *session) mismatch(r *http.Request, f *frame) string {
	if f.method != "tools/call" {
		return ""
	}
	tool := text(memberOf(f.params, "name"))
	if ownTool(tool) {
		return ""
	}
	l, err := s.proxy.tools(r.Context())
	if err != nil {
		return "" // the call reports the error
	}
	for _, m := range mirrorsOf(memberOf([]byte(l.pinned.tool(tool)), "inputSchema")) {
		value := memberOf(f.params, "arguments")
		for _, name := range m.path {
			value = memberOf(value, name)
		}
		want, _ := headerValue(value)
		name := mirrorPrefix + m.header
		if values := r.Header.Values(name); len(values) > 1 || unmasked(r.Header.Get(name)) != unmasked(want) {
			return name + " differs from the body"
		}
	}
	return ""
}

// unmasked decodes a header's value that may be in base64.
func unmasked(value string) string {
	if inner, ok := strings.CutPrefix(value, "=?base64?"); ok {
		if inner, ok = strings.CutSuffix(inner, "?="); ok {
			if b, err := base64.StdEncoding.DecodeString(inner); err == nil {
				return string(b)
			}
		}
	}
	return value
}

// handle passes a frame to a session's proxy, and answers if it is a request.
func (k *keyState) handle(w http.ResponseWriter, r *http.Request, s *session, f *frame) {
	if !f.isRequest() {
		s.proxy.clientFrame(s.ctx, f.raw)
		w.Header().Del(sessionHeader)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	o, raw := s.request(f)
	if o == nil {
		detail := "a request with this id is open, or the session has ended"
		s.proxy.mu.Lock()
		if s.proxy.ended != nil {
			detail = s.proxy.ended.Error()
		}
		s.proxy.mu.Unlock()
		answerError(w, http.StatusBadRequest, f.id, codeInvalidRequest, detail)
		return
	}
	defer s.leave(o)
	s.proxy.clientFrame(s.ctx, raw)
	a := &answering{w: w, r: r, s: s, o: o, method: f.method}
	a.run()
	s.leave(o)
	s.proxy.delivered([]byte(o.known), a.delivered)
	if !a.succeeded {
		switch f.method {
		case "initialize": // the client has no session
			k.end(s)
		case "server/discover": // the server knows only the older protocol
			k.endUnused(s)
		}
	}
}

// endUnused ends the shared session if it has not been used yet.
func (k *keyState) endUnused(s *session) {
	if !s.isReady.Load() && s.idle() {
		k.end(s)
	}
}

// answering writes the answer to one request.
type answering struct {
	w       http.ResponseWriter
	r       *http.Request
	s       *session
	o       *outlet
	method  string
	streams bool
	// succeeded says that the answer is a result. delivered says that it was written to a connected client.
	succeeded, delivered bool
}

// run writes the frames of a request up to its answer. It writes JSON if the
// answer comes at once and alone, unless the answer is a result and the client
// prefers a stream. Otherwise it writes a stream.
func (a *answering) run() {
	timeout := streamAfter
	if a.method == "server/discover" {
		timeout = a.s.state.front.discoverTimeout
	}
	tick := time.NewTimer(timeout)
	defer tick.Stop()
	for {
		frames, _ := a.o.take()
		for _, frame := range frames {
			f, err := parseFrame(frame, serverDepth)
			last := err == nil && f.isResponse()
			a.succeeded = last && f.result != nil
			plain := !a.streams && (!a.succeeded || !prefersStream(a.r))
			connected := a.r.Context().Err() == nil // a client may disconnect once it has the answer
			if last && plain {
				answerFrame(a.w, a.status(f), frame)
				a.delivered = connected && http.NewResponseController(a.w).Flush() == nil
				return
			}
			written := a.write(frame)
			if a.delivered = last && connected && written; last || !written {
				return
			}
		}
		select {
		case <-a.o.wake:
		case <-a.r.Context().Done():
			return
		case <-tick.C:
			if a.method == "server/discover" && !a.streams {
				answerError(a.w, http.StatusNotFound, a.o.id, codeNoMethod, "the server does not answer: it supports only older "+
					"protocols")
				return
			}
			if !a.comment() {
				return
			}
			tick.Reset(a.s.state.front.beat)
		}
	}
}

// status returns the HTTP status of an answer. The protocol without sessions
// defines the status for some errors.
func (a *answering) status(f *frame) int {
	if f.failure == nil {
		return http.StatusOK
	}
	if a.method == "initialize" {
		a.w.Header().Del(sessionHeader)
	}
	if !a.s.modern {
		return http.StatusOK
	}
	switch string(memberOf(f.failure, "code")) {
	case fmt.Sprint(codeNoMethod):
		return http.StatusNotFound
	case fmt.Sprint(codeHeaderMismatch), fmt.Sprint(codeMissingCapability), fmt.Sprint(codeUnsupportedVersion):
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// keyCheck is how long a stream waits for the gate's answer about its key. Without an answer, the stream goes on.
const keyCheck = 3 * time.Second

// comment writes a comment on a quiet stream; false for a disconnected client or a revoked key.
func (a *answering) comment() bool {
	if !a.write(nil) {
		return false
	}
	ctx, cancel := context.WithTimeout(a.r.Context(), keyCheck)
	defer cancel()
	_, err := a.s.state.front.caller(a.r.WithContext(ctx))
	return !revoked(err)
}

// write writes an event, or a comment for nil; false for a disconnected client.
func (a *answering) write(frame []byte) bool {
	c := http.NewResponseController(a.w)
	if !a.streams {
		a.streams = true
		a.w.Header().Set("Content-Type", streamType)
		a.w.Header().Set("X-Accel-Buffering", "no")
		a.w.WriteHeader(http.StatusOK)
	}
	_ = c.SetWriteDeadline(time.Now().Add(writePatience)) // test recorders have no deadlines
	event := []byte(":\n\n")
	if frame != nil {
		event = append(append([]byte("event: message\ndata: "), frame...), "\n\n"...)
	}
	if _, err := a.w.Write(event); err != nil {
		return false
	}
	return c.Flush() == nil
}

// listen streams the server's unsolicited messages.
func (k *keyState) listen(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get(sessionHeader)
	if id == "" {
		w.Header().Set("Allow", "POST")
		http.Error(w, "there is no stream without a session", http.StatusMethodNotAllowed)
		return
	}
	if !accepts(r, streamType) {
		http.Error(w, "Accept must have "+streamType, http.StatusNotAcceptable)
		return
	}
	s := k.find(id)
	if s == nil {
		http.Error(w, errNoSession.Error(), http.StatusNotFound)
		return
	}
	o := s.openStream()
	if o == nil {
		http.Error(w, "the session has a stream already", http.StatusConflict)
		return
	}
	defer s.closeStream(o)
	a := &answering{w: w, r: r, s: s, o: o}
	tick := time.NewTicker(k.front.beat)
	defer tick.Stop()
	for more := a.write(nil); more; {
		frames, over := o.take()
		for _, frame := range frames {
			more = more && a.write(frame)
		}
		if over || !more {
			return
		}
		select {
		case <-o.wake:
		case <-r.Context().Done():
			return
		case <-tick.C:
			more = a.comment()
		}
	}
}
