package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Gate is the part of Gatehouse that a proxy uses.
type Gate interface {
	WhoAmI(ctx context.Context) (*gatehouse.Principal, error)
	Propose(ctx context.Context, p *gatehouse.Proposal) (a *gatehouse.Action, replayed bool, err error)
	FindAction(ctx context.Context, id string) (*gatehouse.Action, error)
	WaitAction(ctx context.Context, id string, wait time.Duration, until gatehouse.Until) (*gatehouse.Action, error)
	WaitAsked(
		ctx context.Context, id string, wait time.Duration, until gatehouse.Until, seen int,
	) (*gatehouse.Action, error)
	Comment(ctx context.Context, id string, r gatehouse.CommentRequest) (*gatehouse.Action, error)
	LeasePushes(ctx context.Context, r gatehouse.PushLeaseRequest) ([]gatehouse.LeasedPush, error)
	HeartbeatPush(ctx context.Context, id string, r gatehouse.Heartbeat) (*gatehouse.LeaseState, error)
	CompletePush(ctx context.Context, id string, r gatehouse.PushResult) (*gatehouse.Push, error)
	FailPush(ctx context.Context, id string, f gatehouse.PushFailure) (*gatehouse.Push, error)
	Cancel(ctx context.Context, id string) (*gatehouse.CancelAnswer, error)
}

// Config configures a proxy.
type Config struct {
	// Name is the server's name; the connector is mcp:NAME.
	Name     string
	Upstream Upstream
	// Gate uses the agent's key, which has the role proposer and, without Worker, the role worker.
	Gate Gate
	// Worker uses a key with the role worker, which leases the agent's actions and reports their outcomes; nil lets Gate
	// do both.
	Worker Gate
	Folder *Folder
	// ReadOnly lists tools whose pinned readOnlyHint the operator trusts: their
	// calls pass without an action.
	ReadOnly []string
	// Hold is how long a call waits for people before it is answered as
	// pending; 45 s by default, and at most 45 s in protocol 2026-07-28.
	Hold time.Duration
	// Progress is the interval of progress notifications while a call waits; 5
	// s by default.
	Progress time.Duration
	// Lease is how long a call belongs to the proxy without a heartbeat; 60 s
	// by default. After a crash, the outcome is ambiguous when the lease ends:
	// a call of class A is sent again, any other becomes unknown.
	Lease time.Duration
	// Timeout bounds a tool's execution; 10 min by default. After that the
	// outcome is ambiguous, as after a crash.
	Timeout time.Duration
	// Relist is how long a list of the server's tools is valid; 0 means
	// forever. For a server that announces changes of its tools, 0 is enough.
	Relist time.Duration
	// Log is slog.Default by default.
	Log *slog.Logger
}

func (c *Config) complete() error {
	if !gatehouse.ValidName(c.connector()) {
		return fmt.Errorf("%s cannot name a server: a name consists of letters, digits and ._@+-", gatehouse.Quote(c.Name))
	}
	for value, standard := range map[*time.Duration]time.Duration{
		&c.Hold: 45 * time.Second, &c.Progress: 5 * time.Second, &c.Lease: gatehouse.DefaultStepLease,
		&c.Timeout: 10 * time.Minute,
	} {
		if *value == 0 {
			*value = standard
		}
	}
	if c.Lease < gatehouse.MinStepLease || c.Lease > gatehouse.MaxStepLease {
		return fmt.Errorf("the lease must be %s to %s", gatehouse.Duration(gatehouse.MinStepLease),
			gatehouse.Duration(gatehouse.MaxStepLease))
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return nil
}

func (c *Config) connector() string { return "mcp:" + c.Name }

// Proxy is the gate between one client and one server.
type Proxy struct {
	Config
	me  *gatehouse.Principal
	out io.Writer
	// writing is held while a frame is written to the client.
	writing sync.Mutex
	// queued says that out only queues answers: whoever sends them calls delivered.
	queued bool

	mu sync.Mutex
	// forwarded holds the requests that the server has not answered yet, by id.
	forwarded map[string]forwardedRequest
	// pending holds the proxy's own requests, by id.
	pending map[string]chan reply
	count   int
	// held cancels the wait of a call, by the id of the client's request.
	held map[string]context.CancelFunc
	// delivering holds what to call once an answer is delivered or lost, by the id of the client's request.
	delivering map[string]func(received bool)
	// handling counts the requests in held. Once ended is set, no request is added.
	handling sync.WaitGroup
	// gone is closed when the server has ended and the worker has reported the outcome of each call
	// that was sent. The held calls are then answered with the present state of their actions.
	gone chan struct{}
	// lastQuestions is the number of the last question that the client got, by action.
	lastQuestions map[string]int
	// watching holds the watchers of each action's progress, by the action's id.
	watching map[string]map[*watcher]bool
	// meta is the _meta of each modern request, nil for the legacy protocol. metaProven says that the server has
	// answered a request of this version.
	meta       []byte
	metaProven bool
	// tasked says that client and server use protocol 2025-11-25, the only
	// version with both sessions and tasks.
	tasked bool
	// serverTasks says that the server offers its own tasks, as an extension.
	serverTasks bool
	// greeted says that the server has answered initialize or server/discover.
	greeted bool
	// instructions are the server's own, unchanged.
	instructions gatehouse.JSON
	ended        error

	// listing is the lock of the list of tools; waiting for it ends with the caller's context.
	listing chan struct{}
	// fresh is the server's list of tools, nil when the server must be asked.
	fresh *listed
	// freshAt is when the server was asked.
	freshAt time.Time
	// stale says that the server must be asked again.
	stale atomic.Bool

	ready   chan struct{}
	readied sync.Once
	done    *executed

	// wants is called with each call before it becomes an action; may be nil.
	wants func(tool string, arguments gatehouse.JSON)
	// pinsChanged is called when the pins have changed.
	pinsChanged func()
}

// forwardedRequest is a request that was passed on to the server.
type forwardedRequest struct {
	method string
	// meta is the _meta for the proxy's own requests of the same version, nil for the legacy protocol.
	meta []byte
	// canceled says that the client has canceled the request: the answer may never come.
	canceled bool
}

// reply is the server's answer to one of the proxy's own requests.
type reply struct {
	result, failure []byte
	// modern says that the request named a version of the modern protocol.
	modern bool
	err    error
}

// errServerGone says that the server has ended or closed its output.
var errServerGone = errors.New("the MCP server has ended")

// howEnded returns the error for the client: err itself if it says how the server has ended, or that the server
// does not read its input; or else errServerGone, which hides the text of err.
func howEnded(err error) error {
	if errors.Is(err, errServerGone) || errors.Is(err, errUnread) {
		return err
	}
	return errServerGone
}

func newProxy(c Config, out io.Writer) *Proxy {
	p := &Proxy{
		Config: c, out: out, forwarded: map[string]forwardedRequest{}, pending: map[string]chan reply{},
		held: map[string]context.CancelFunc{}, ready: make(chan struct{}), done: newExecuted(),
		watching: map[string]map[*watcher]bool{}, gone: make(chan struct{}), listing: make(chan struct{}, 1),
		delivering: map[string]func(bool){},
	}
	p.pinsChanged = p.refresh
	return p
}

// Run proxies until the client closes its end, ctx ends, or the server ends. If the
// server ends, Run answers the open requests and returns an error. Otherwise, it
// gives the calls in progress at the server some time to return.
func Run(ctx context.Context, c Config, in io.Reader, out io.Writer) error {
	if err := c.complete(); err != nil {
		return err
	}
	p := newProxy(c, out)
	defer c.Upstream.Close()
	var err error
	if p.me, err = c.identify(ctx, c.Gate); err != nil {
		return err
	}
	if err := c.CheckWorker(ctx, p.me.Tenant); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client, server := make(chan error, 1), make(chan error, 1)
	go func() { client <- p.fromClient(ctx, newLines(in, maxClientFrame)) }()
	go func() { server <- p.fromServer() }()
	working, stopWork := context.WithCancel(ctx)
	defer stopWork()
	var worker sync.WaitGroup
	worker.Go(func() { p.work(working) })
	select {
	case err = <-client:
	case <-ctx.Done():
	case err = <-server:
		p.end(howEnded(err))
		if !errors.Is(err, errServerGone) {
			err = errors.Join(errServerGone, err)
		}
		p.answerForwarded()
		stopWork()
		worker.Wait()
		close(p.gone)
		time.AfterFunc(drainGrace, cancel)
		p.handling.Wait()
	}
	cancel()
	worker.Wait()
	p.end(errServerGone)
	return err
}

// end fails the proxy's own open requests, and all later ones.
func (p *Proxy) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = err
	for id, waiting := range p.pending {
		waiting <- reply{err: err}
		delete(p.pending, id)
	}
}

// answerForwarded answers the requests that the server has left without an answer.
func (p *Proxy) answerForwarded() {
	p.mu.Lock()
	open, ended := p.forwarded, p.ended
	p.forwarded = map[string]forwardedRequest{}
	p.mu.Unlock()
	for id := range open {
		p.answer(errorFrame([]byte(id), codeInternal, ended.Error()))
	}
}

// fromClient handles the client's frames until there are no more.
func (p *Proxy) fromClient(ctx context.Context, in *lines) error {
	for {
		line, err := in.next()
		switch {
		case errors.Is(err, errTooLong):
			p.answer(errorFrame(nil, codeInvalidRequest, "the frame is longer than 4 MiB"))
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		default:
			p.clientFrame(ctx, line)
		}
	}
}

func (p *Proxy) clientFrame(ctx context.Context, line []byte) {
	f, err := parseFrame(line, clientDepth)
	if err == nil {
		err = p.checkClient(f)
	}
	var bad *frameError
	if errors.As(err, &bad) {
		p.Log.Warn("a frame of the client was refused", "why", bad.detail)
		if bad.needsAnswer() {
			p.answer(errorFrame(bad.id, bad.code, bad.detail))
		}
		return
	}
	p.learn(f)
	sent := false
	switch {
	case f.method == "notifications/cancelled" && p.cancel(f):
	case f.method == "tools/call" && f.isRequest():
		p.begin(ctx, f, p.call)
	case f.method == "tools/list" && f.isRequest():
		p.begin(ctx, f, p.list)
	case strings.HasPrefix(f.method, "tasks/") && f.isRequest():
		p.begin(ctx, f, p.task)
	default:
		sent = p.forward(f)
	}
	if f.method == "notifications/initialized" && sent {
		p.readied.Do(func() { close(p.ready) })
	}
}

// checkClient refuses frames that the server could read as a tool call, ids
// that the gate or an open request uses, and more than maxOpen open requests.
func (p *Proxy) checkClient(f *frame) error {
	refuse := func(code int, detail string) error { return &frameError{code, detail, f.id, f.isRequest()} }
	known := f.method == "tools/call" || f.method == "tools/list"
	switch {
	case toolMethod(f.method) && (!known || !f.isRequest()):
		return refuse(codeNoMethod, "the gate accepts only the requests tools/call and tools/list")
	case f.isRequest() && isOwn(f.id), f.method == "notifications/cancelled" && isOwn(memberOf(f.params, "requestId")):
		return refuse(codeInvalidRequest, "the id has a prefix that only the gate uses")
	}
	if !f.isRequest() {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.forwarded)+len(p.held) >= maxOpen {
		maps.DeleteFunc(p.forwarded, func(_ string, r forwardedRequest) bool { return r.canceled })
	}
	_, open := p.forwarded[string(f.id)]
	_, held := p.held[string(f.id)]
	switch {
	case open || held:
		return refuse(codeInvalidRequest, "a request with this id has not been answered yet")
	case len(p.forwarded)+len(p.held) >= maxOpen:
		return refuse(codeInternal, "too many requests are open")
	}
	return nil
}

// maxOpen bounds the client's unanswered requests.
const maxOpen = 10_000

const ownPrefix = "gatehouse:"

func isOwn(id []byte) bool { return strings.HasPrefix(text(id), ownPrefix) }

// forward passes a frame on unchanged; false if it was not sent. A request is then answered.
func (p *Proxy) forward(f *frame) (sent bool) {
	if f.isRequest() {
		p.mu.Lock()
		ended := p.ended
		if ended == nil {
			p.forwarded[string(f.id)] = forwardedRequest{method: f.method, meta: metaOf(f)}
		}
		p.mu.Unlock()
		if ended != nil {
			p.answer(errorFrame(f.id, codeInternal, ended.Error()))
			return false
		}
	}
	err := p.post(f.raw)
	switch {
	case err == nil:
		return true
	case f.isRequest():
		if _, open := p.answered(f.id); open {
			p.answer(errorFrame(f.id, codeInternal, howEnded(err).Error()))
		}
	default:
		p.Log.Warn("a frame of the client did not reach the server", "method", f.method, "id", string(f.id), "error", err)
	}
	return false
}

// postPatience is how long a server may take to accept a frame of the client.
const postPatience = 30 * time.Second

// post sends a frame of the client.
func (p *Proxy) post(frame []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), postPatience)
	defer cancel()
	return p.Upstream.Send(ctx, frame)
}

// begin handles a request concurrently. The client can cancel the wait, but not
// the action.
func (p *Proxy) begin(ctx context.Context, f *frame, handle func(context.Context, *frame) []byte) {
	ctx, cancel := context.WithCancel(ctx)
	p.mu.Lock()
	ended := p.ended
	if ended == nil {
		p.held[string(f.id)] = cancel
		p.handling.Add(1)
	}
	p.mu.Unlock()
	if ended != nil {
		cancel()
		p.answer(errorFrame(f.id, codeInternal, ended.Error()))
		return
	}
	go func() {
		defer p.handling.Done()
		defer cancel()
		answer := handle(ctx, f)
		p.mu.Lock()
		delete(p.held, string(f.id))
		p.mu.Unlock()
		if answer != nil {
			p.answerHeld(f.id, answer)
		}
	}()
}

// cancel ends the wait of the call that a notification names; false when the
// gate does not hold it.
func (p *Proxy) cancel(f *frame) bool { return p.leave(memberOf(f.params, "requestId")) }

// leave ends the wait of a call; false when the gate does not hold it. A request that was passed on is
// marked as canceled.
func (p *Proxy) leave(id []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r, open := p.forwarded[string(id)]; open {
		r.canceled = true
		p.forwarded[string(id)] = r
	}
	end, held := p.held[string(id)]
	if held {
		end()
	}
	return held
}

// fromServer handles the server's frames until there are no more.
func (p *Proxy) fromServer() error {
	for {
		line, err := p.Upstream.Receive()
		switch {
		case errors.Is(err, errTooLong):
			p.failBroken(line, nil, "the server's frame is longer than 16 MiB")
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		default:
			p.serverFrame(line)
		}
	}
}

func (p *Proxy) serverFrame(line []byte) {
	f, err := parseFrame(line, serverDepth)
	var bad *frameError
	if errors.As(err, &bad) {
		p.Log.Warn("a frame of the server was refused", "why", bad.detail)
		p.failBroken(line, bad.id, bad.detail)
		return
	}
	if !f.isResponse() {
		if p.deliverProgress(f) {
			return
		}
		if f.method == "notifications/tools/list_changed" {
			p.stale.Store(true)
		}
		p.answer(f.raw)
		return
	}
	if f.id == nil { // an error that answers no request
		p.answer(f.raw)
		return
	}
	p.mu.Lock()
	waiting, own := p.pending[string(f.id)]
	delete(p.pending, string(f.id))
	p.mu.Unlock()
	if own {
		waiting <- reply{result: f.result, failure: f.failure}
		return
	}
	r, open := p.answered(f.id)
	if !open {
		p.Log.Warn("the server answered an unknown request", "id", gatehouse.Quote(string(f.id)))
		return
	}
	p.proveVersion(r.meta, f.result, f.failure)
	if (r.method == "initialize" || r.method == "server/discover") && f.result != nil {
		p.answer(p.greeting(f))
		return
	}
	p.answer(f.raw)
}

// answered removes a request from those that the server has not answered yet.
func (p *Proxy) answered(id []byte) (r forwardedRequest, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, open = p.forwarded[string(id)]
	delete(p.forwarded, string(id))
	return r, open
}

// ask sends one of the proxy's own requests and waits for the answer.
func (p *Proxy) ask(ctx context.Context, method string, params []byte) reply {
	return p.askWithin(ctx, ctx, method, params)
}

// askWithin is ask for a request that must not be sent after the context sending has ended. sending is ctx or derived
// from it. Only the end of ctx ends the wait for the answer.
func (p *Proxy) askWithin(ctx, sending context.Context, method string, params []byte) reply {
	waiting := make(chan reply, 1)
	p.mu.Lock()
	if p.ended != nil {
		p.mu.Unlock()
		return reply{err: errNotSent{p.ended}}
	}
	p.count++
	id := strconv.Quote(ownPrefix + strconv.Itoa(p.count) + ":")
	p.pending[id] = waiting
	meta := p.meta
	if meta != nil {
		sent := meta
		if token := memberOf(memberOf(params, "_meta"), "progressToken"); token != nil {
			sent = setMember(meta, "progressToken", token)
		}
		params = setMember(params, "_meta", sent)
	}
	p.mu.Unlock()
	frame := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params)
	if sending.Err() != nil {
		p.forget(id)
		return reply{err: errNotSent{context.Cause(sending)}}
	}
	stop := context.AfterFunc(ctx, func() { p.Upstream.Abandon([]byte(id)) })
	defer stop()
	if err := p.Upstream.Send(sending, frame); err != nil {
		p.forget(id)
		return reply{err: err}
	}
	select {
	case r := <-waiting:
		p.proveVersion(meta, r.result, r.failure)
		r.modern = meta != nil
		return r
	case <-ctx.Done():
		p.forget(id)
		return reply{err: context.Cause(ctx)}
	}
}

// errNotSent wraps the error of a request that the server has not executed: the request was never sent, or
// the server's status proves that it was refused.
type errNotSent struct{ error }

func (e errNotSent) Unwrap() error { return e.error }

func (p *Proxy) forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pending, id)
}
