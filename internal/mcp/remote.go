package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Remote is how a server is reached over streamable HTTP, with protocol
// 2026-07-28 or with a version up to 2025-11-25.
type Remote struct {
	// URL is the server's endpoint: https, or http if no header is sent or the
	// server is on this machine.
	URL string
	// Header is sent with each request, for instance credentials.
	Header http.Header
}

// remote is a server reached by HTTP requests.
type remote struct {
	identity string
	url      string
	header   http.Header
	client   *http.Client
	log      *slog.Logger
	frames   chan []byte
	ctx      context.Context
	stop     context.CancelCauseFunc

	mu sync.Mutex
	// session and version are a legacy server's session id and protocol version.
	session, version string
	// modern says that the last request, of the client or of the proxy, used the
	// protocol without sessions.
	modern bool
	// open are the requests that the server has not answered yet, by id.
	open map[string]*exchange
	// silentUntil is the time until which messages that need no answer fail at once, because the server has not
	// accepted one.
	silentUntil time.Time
	// mirrored are the arguments that are repeated in headers, by tool.
	mirrored  map[string][]mirroredArgument
	listening sync.Once
}

// exchange is a request that waits for its answer.
type exchange struct {
	id     []byte
	method string
	cancel context.CancelFunc
}

// The time limits of a remote server.
const (
	// streamPause is the pause before a stream is reopened; a server may set
	// another.
	streamPause = time.Second
	// maxPause bounds the pause that a server sets.
	maxPause = 30 * time.Second
	// maxResumes bounds how many times in a row the stream of an answer is reopened without a new event.
	maxResumes = 5
)

// Connect prepares the connection to a server over HTTP. It sends nothing yet.
func Connect(c Remote, log *slog.Logger) (Upstream, error) {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the server's address is not an http or https URL")
	case u.User != nil:
		return nil, errors.New("the server's address holds credentials: send them in a header")
	case u.Scheme == "http" && len(c.Header) > 0 && !loopback(u.Hostname()):
		return nil, errors.New("a header would be sent in the clear: the server's address must be https")
	}
	transport, _ := http.DefaultTransport.(*http.Transport)
	transport = transport.Clone()
	transport.MaxIdleConnsPerHost = parallel
	r := &remote{
		identity: c.identity(u), url: u.String(), header: c.Header.Clone(), log: log,
		client: &http.Client{
			Transport: transport,
			// The credentials are only for this server.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		frames: make(chan []byte, 64), open: map[string]*exchange{}, mirrored: map[string][]mirroredArgument{},
	}
	r.ctx, r.stop = context.WithCancelCause(context.Background())
	return r, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// identity covers the address and the names of the headers.
func (c *Remote) identity(u *url.URL) string {
	b, _ := json.Marshal(struct { // strings always encode
		URL     string   `json:"url"`
		Headers []string `json:"headers,omitempty"`
	}{u.String(), slices.Sorted(maps.Keys(c.Header))})
	return string(b)
}

func (r *remote) Identity() string { return r.identity }

// Receive returns the next frame from any of the server's answers and streams.
func (r *remote) Receive() ([]byte, error) {
	select {
	case frame := <-r.frames:
		return frame, nil
	case <-r.ctx.Done():
		return nil, context.Cause(r.ctx)
	}
}

// Send posts a frame. For the proxy's own requests it waits until the server
// begins to answer, or Abandon, and for messages that need no answer until the server has
// accepted them. An errNotSent proves that the server has done nothing. The
// failure of any other request is delivered as its answer.
func (r *remote) Send(ctx context.Context, raw []byte) error {
	f, err := parseFrame(raw, serverDepth)
	if err != nil {
		return errNotSent{err}
	}
	switch {
	case f.isRequest() && isOwn(f.id):
		return r.exchange(ctx, f)
	case f.isRequest():
		go func() {
			if err := r.exchange(r.ctx, f); err != nil {
				r.fail(f.id, err.Error())
			}
		}()
		return nil
	case f.method == "notifications/cancelled" && r.speaksModern():
		r.Abandon(memberOf(f.params, "requestId"))
		return nil
	}
	return r.sendOneWay(ctx, f)
}

// Abandon closes the response of a request, which tells a modern server that
// the answer is no longer needed.
func (r *remote) Abandon(id []byte) {
	r.mu.Lock()
	x := r.open[string(id)]
	delete(r.open, string(id))
	r.mu.Unlock()
	if x != nil {
		x.cancel()
	}
}

// Close ends the session.
func (r *remote) Close() error {
	r.mu.Lock()
	session := r.session
	r.session = ""
	r.mu.Unlock()
	r.stop(io.EOF)
	defer r.client.CloseIdleConnections()
	if session == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	req, err := r.request(ctx, http.MethodDelete, nil)
	if err != nil {
		return err
	}
	req.Header.Set(sessionHeader, session)
	resp, err := r.client.Do(req)
	if err != nil {
		return plain(err)
	}
	return resp.Body.Close()
}

func (r *remote) speaksModern() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.modern
}

// sendOneWay posts a notification, or the client's answer to a server's request.
func (r *remote) sendOneWay(ctx context.Context, f *frame) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.ctx, cancel)()
	r.mu.Lock()
	silent := time.Now().Before(r.silentUntil)
	r.mu.Unlock()
	if silent {
		return errUnread
	}
	req, err := r.request(ctx, http.MethodPost, f)
	if err != nil {
		return err
	}
	resp, err := r.client.Do(req)
	if errors.Is(err, context.DeadlineExceeded) {
		r.mu.Lock()
		r.silentUntil = time.Now().Add(unreadAfter)
		r.mu.Unlock()
	}
	if err != nil {
		return plain(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("the server answered %s", status(resp))
	}
	if f.method == "notifications/initialized" {
		r.listening.Do(func() { go r.listen() })
	}
	return nil
}

// exchange posts a request and returns when the server begins to answer, when ctx ends before there is a
// connection, or when the request is abandoned.
func (r *remote) exchange(ctx context.Context, f *frame) error {
	answering, cancel := context.WithCancelCause(r.ctx)
	var connected atomic.Bool
	stop := context.AfterFunc(ctx, func() {
		if !connected.Load() {
			cancel(context.Cause(ctx))
		}
	})
	defer stop()
	traced := httptrace.WithClientTrace(answering, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		connected.Store(true)
		if ctx.Err() != nil {
			cancel(context.Cause(ctx))
		}
	}})
	x := &exchange{id: f.id, method: f.method, cancel: func() { cancel(nil) }}
	r.mu.Lock()
	if f.method == "initialize" {
		r.session, r.version = "", ""
	}
	r.modern = metaVersion(f) != ""
	r.open[string(f.id)] = x
	r.mu.Unlock()
	req, err := r.request(traced, http.MethodPost, f)
	if err != nil {
		err = errNotSent{err}
	} else if err = r.begin(answering, req, f, x); err != nil && !connected.Load() {
		err = errNotSent{err}
	}
	if err != nil {
		x.cancel()
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.open[string(f.id)] != x {
			return nil // abandoned: nobody waits for the answer
		}
		delete(r.open, string(f.id))
	}
	return err
}

// begin posts a request. If it returns nil, the answer is or will be delivered.
func (r *remote) begin(ctx context.Context, req *http.Request, f *frame, x *exchange) error {
	resp, err := r.client.Do(req)
	if err != nil {
		return plain(err)
	}
	if f.method == "initialize" {
		r.mu.Lock()
		r.session = resp.Header.Get(sessionHeader)
		r.mu.Unlock()
	}
	if resp.StatusCode < http.StatusMultipleChoices {
		go r.read(ctx, x, resp)
		return nil
	}
	defer resp.Body.Close()
	err = fmt.Errorf("the server answered %s", status(resp))
	// Whatever its body says, this status ends the session.
	if resp.StatusCode == http.StatusNotFound && req.Header.Get(sessionHeader) != "" {
		r.stop(errors.New("the server has ended its session"))
		return errNotSent{err}
	}
	failure := errorOf(resp)
	switch {
	case failure != nil && isOwn(f.id) && refuses(resp.StatusCode) && !provesRefusal(failure, metaOf(f) != nil):
		return errNotSent{fmt.Errorf("%w: %w", err, saysError(failure))}
	case failure != nil:
		r.deliver(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":%s}`, f.id, failure))
		x.cancel()
		return nil
	case refuses(resp.StatusCode):
		return errNotSent{err}
	}
	return err
}

// status returns the bounded status line of a response.
func status(resp *http.Response) string { return gatehouse.Quote(clip(resp.Status, 64)) }

// plain returns the cause of a failed request, without the URL.
func plain(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

const (
	jsonType      = "application/json"
	streamType    = "text/event-stream"
	sessionHeader = "Mcp-Session-Id"
)

func contentType(resp *http.Response) string {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return kind
}

// read passes on the frames of a response to its end. If the answer is
// missing, read answers with an error: the request may have been executed.
func (r *remote) read(ctx context.Context, x *exchange, resp *http.Response) {
	defer x.cancel()
	why := "the server's answer is incomplete"
	switch contentType(resp) {
	case jsonType:
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxServerFrame+1))
		_ = resp.Body.Close()
		switch {
		case err != nil:
		case len(body) > maxServerFrame:
			why = "the server's answer is longer than 16 MiB"
		default:
			r.deliver(body)
			why = "the server's answer is not valid, or has another request's id"
		}
	case streamType:
		r.follow(ctx, x, resp)
	default:
		_ = resp.Body.Close()
		why = "the server's answer is neither JSON nor a stream of events"
	}
	r.mu.Lock()
	waits := r.open[string(x.id)] == x
	r.mu.Unlock()
	if waits && ctx.Err() == nil {
		r.fail(x.id, why)
	}
}

// follow reads a stream to its end, which may come after the answer. If a legacy server
// ends the stream before the answer, follow reopens it.
func (r *remote) follow(ctx context.Context, x *exchange, resp *http.Response) {
	var s stream
	for resumes := 0; ; resumes++ {
		before := s.last
		s.read(resp.Body, r.deliver)
		_ = resp.Body.Close()
		if s.last != before {
			resumes = 0
		}
		r.mu.Lock()
		waits := r.open[string(x.id)] == x && !r.modern
		r.mu.Unlock()
		if !waits || s.last == "" || resumes == maxResumes || !pause(ctx, s.pause()) {
			return
		}
		var err error
		if resp, err = r.reopen(ctx, s.last); err != nil {
			return
		}
	}
}

// listen passes on a legacy server's unsolicited messages until the upstream is closed. After short
// streams without a message, it pauses longer.
func (r *remote) listen() {
	var s stream
	for quiet := 0; ; {
		opened := time.Now()
		resp, err := r.reopen(r.ctx, s.last)
		if errors.Is(err, errNoStream) {
			return
		}
		quiet++
		if err == nil {
			s.read(resp.Body, func(frame []byte) { quiet = 0; r.deliver(frame) })
			_ = resp.Body.Close()
			if time.Since(opened) > maxPause {
				quiet = 0
			}
		}
		if !pause(r.ctx, min(s.pause()*time.Duration(max(quiet, 1)), maxPause)) {
			return
		}
	}
}

var errNoStream = errors.New("the server has no stream of its own")

// reopen opens a stream. If last is not "", the stream continues after the event with this id.
func (r *remote) reopen(ctx context.Context, last string) (*http.Response, error) {
	req, err := r.request(ctx, http.MethodGet, nil)
	if err != nil {
		return nil, err
	}
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, plain(err)
	}
	if resp.StatusCode != http.StatusOK || contentType(resp) != streamType {
		_ = resp.Body.Close()
		if resp.StatusCode < http.StatusBadRequest || refuses(resp.StatusCode) {
			return nil, errNoStream
		}
		return nil, fmt.Errorf("the server answered %s", status(resp))
	}
	return resp, nil
}

// deliver examines a frame of the server and passes it on as one line.
func (r *remote) deliver(raw []byte) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 {
		return
	}
	if bytes.ContainsAny(raw, "\r\n") {
		var line bytes.Buffer
		if json.Compact(&line, raw) != nil {
			r.log.Warn("a frame of the server was refused", "why", "it is not JSON")
			return
		}
		raw = line.Bytes()
	}
	if f, err := parseFrame(raw, serverDepth); err == nil && f.isResponse() && f.id != nil {
		r.mu.Lock()
		if x := r.open[string(f.id)]; x != nil {
			delete(r.open, string(f.id))
			switch x.method {
			case "initialize":
				r.version = text(memberOf(f.result, "protocolVersion"))
			case "tools/list":
				maps.Copy(r.mirrored, mirrors(f.result))
			}
		}
		r.mu.Unlock()
	}
	r.pass(raw)
}

func (r *remote) pass(frame []byte) {
	select {
	case r.frames <- frame:
	case <-r.ctx.Done():
	}
}

// fail answers, with an error, a request that the server has not answered. The
// server may have executed the request.
func (r *remote) fail(id []byte, why string) {
	r.mu.Lock()
	delete(r.open, string(id))
	r.mu.Unlock()
	r.pass(errorFrame(id, codeInternal, why))
}

// request builds a request with the headers of the protocol and the operator. f
// is nil for a request without a body.
func (r *remote) request(ctx context.Context, method string, f *frame) (*http.Request, error) {
	var body io.Reader
	if f != nil {
		body = bytes.NewReader(f.raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.url, body)
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, r.header.Clone())
	req.Header.Set("Accept", jsonType+", "+streamType)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.session != "" {
		req.Header.Set(sessionHeader, r.session)
	}
	if r.version != "" {
		req.Header.Set(versionHeader, r.version)
	}
	if f == nil {
		req.Header.Set("Accept", streamType)
		return req, nil
	}
	req.Header.Set("Content-Type", jsonType)
	if version := metaVersion(f); version != "" {
		req.Header.Del(sessionHeader)
		req.Header.Set(versionHeader, version)
		for name, value := range r.headersOf(f) {
			req.Header.Set(name, value)
		}
	}
	return req, nil
}

// stream reads server-sent events.
type stream struct {
	// last is the id of the last complete event, "" for none.
	last  string
	retry time.Duration
}

func (s *stream) pause() time.Duration {
	if s.retry > 0 {
		return min(s.retry, maxPause)
	}
	return streamPause
}

// read passes on the data of each event until the stream ends, or a line or an
// event exceeds 16 MiB.
func (s *stream) read(body io.Reader, each func([]byte)) {
	in := newLines(body, maxServerFrame)
	var data []byte
	id := s.last
	for {
		line, err := in.line()
		if err != nil || len(data)+len(line) > maxServerFrame {
			return
		}
		if len(line) == 0 {
			if len(data) > 0 {
				each(data)
			}
			data, s.last = nil, id
			continue
		}
		name, value, _ := strings.Cut(string(line), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "data":
			if len(data) > 0 {
				data = append(data, '\n')
			}
			data = append(data, value...)
		case "id":
			if len(value) <= maxID && !strings.Contains(value, "\x00") {
				id = value
			}
		case "retry":
			if ms, err := strconv.ParseUint(value, 10, 32); err == nil && ms > 0 {
				s.retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
}
