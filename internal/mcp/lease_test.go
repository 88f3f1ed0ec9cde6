package mcp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// unleased is a gate that renews no lease, and that records the outcome.
type unleased struct {
	Gate
	heartbeat error
	result    *gatehouse.PushResult
	failure   *gatehouse.PushFailure
}

func (g *unleased) HeartbeatPush(context.Context, string, gatehouse.Heartbeat) (*gatehouse.LeaseState, error) {
	return nil, g.heartbeat
}

func (g *unleased) CompletePush(_ context.Context, _ string, r gatehouse.PushResult) (*gatehouse.Push, error) {
	g.result = &r
	return &gatehouse.Push{}, nil
}

func (g *unleased) FailPush(_ context.Context, _ string, f gatehouse.PushFailure) (*gatehouse.Push, error) {
	g.failure = &f
	return &gatehouse.Push{}, nil
}

// slowServer answers each method after a pause, and counts the calls.
type slowServer struct {
	*recorder
	pause map[string]time.Duration
	calls int
}

func (s *slowServer) Send(_ context.Context, frame []byte) error {
	f, err := parseFrame(frame, clientDepth)
	if err != nil {
		return err
	}
	result := `{"tools":[{"name":"write"}]}`
	if f.method == "tools/call" {
		s.calls++
		result = `{"content":[]}`
	}
	go func() {
		time.Sleep(s.pause[f.method])
		s.proxy.serverFrame(resultFrame(f.id, []byte(result)))
	}()
	return nil
}

// TestLeaseEnds: a call is not sent after its lease has ended, whether the gate says so or does not answer. The
// result of a call that was sent before is reported.
func TestLeaseEnds(t *testing.T) {
	t.Parallel()
	lost := gatehouse.E(gatehouse.CodeLeaseLost, "the lease ended")
	for name, c := range map[string]struct {
		heartbeat error
		slow      string
		calls     int
		ends      time.Duration
	}{
		"lost before the call":        {lost, "tools/list", 0, 10 * time.Second},
		"unreachable before the call": {errors.New("no answer"), "tools/list", 0, 30 * time.Second},
		"lost during the call":        {lost, "tools/call", 1, 50 * time.Second},
		"unreachable during the call": {errors.New("no answer"), "tools/call", 1, 50 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, r := newRecorded(t, io.Discard)
				s := &slowServer{recorder: r, pause: map[string]time.Duration{c.slow: 50 * time.Second}}
				gate := &unleased{heartbeat: c.heartbeat}
				p.Upstream, p.Gate, p.Lease = s, gate, 30*time.Second
				pins := &catalogue{Upstream: "recorder", Tools: []gatehouse.JSON{`{"name":"write"}`}}
				must(t, p.Folder.setPins(pins))
				push := &gatehouse.LeasedPush{
					Push: &gatehouse.Push{ID: "psh_1"}, ActionID: "act_1", Operation: "write", ProposedChange: `{}`,
				}
				push.Target.Version = pins.pin(pins.Tools[0])
				began := time.Now()
				p.execute(t.Context(), push)
				if took := time.Since(began); took != c.ends || s.calls != c.calls {
					t.Errorf("%d calls, after %s", s.calls, took)
				}
				if sent := gate.result != nil; sent != (c.calls > 0) || !sent && gate.failure.Kind != "not_sent" {
					t.Errorf("reported %+v, %+v", gate.result, gate.failure)
				}
				time.Sleep(time.Minute) // the server's answers
			})
		})
	}
}

// TestUnpinnedTool: a call of a tool that is not pinned is not sent, even with the hash of an empty definition.
func TestUnpinnedTool(t *testing.T) {
	t.Parallel()
	p, r := newRecorded(t, io.Discard)
	s, gate := &slowServer{recorder: r}, &unleased{}
	p.Upstream, p.Gate = s, gate
	pins := &catalogue{Upstream: "recorder", Tools: []gatehouse.JSON{`{"name":"write"}`}}
	must(t, p.Folder.setPins(pins))
	push := &gatehouse.LeasedPush{
		Push: &gatehouse.Push{ID: "psh_1"}, ActionID: "act_1", Operation: "hidden", ProposedChange: `{}`,
	}
	push.Target.Version = pins.pin("")
	p.execute(t.Context(), push)
	if s.calls > 0 || gate.failure == nil || gate.failure.Code != "tool_changed" {
		t.Errorf("%d calls; reported %+v, %+v", s.calls, gate.result, gate.failure)
	}
}

// TestLeaseEndsBeforeTheTurn: a call is not written once its lease has ended, even if the server reads.
func TestLeaseEndsBeforeTheTurn(t *testing.T) {
	t.Parallel()
	p, r := newRecorded(t, io.Discard)
	s := &slowServer{recorder: r}
	p.Upstream = s
	over, lose := context.WithCancelCause(t.Context())
	lose(errLeaseEnded)
	if r := p.askWithin(t.Context(), over, "tools/call", []byte(`{}`)); outcomeOf(r) != "not sent" || s.calls > 0 {
		t.Errorf("%d calls: %v", s.calls, r.err)
	}
	for range 20 { // a select chooses at random
		in, out := io.Pipe()
		server := &process{stdin: out, turn: make(chan struct{}, 1), over: make(chan struct{})}
		go func() { _, _ = io.Copy(io.Discard, in) }()
		var unsent errNotSent
		if err := server.Send(over, []byte("{}")); !errors.As(err, &unsent) {
			t.Fatalf("the call was sent: %v", err)
		}
		must(t, out.Close())
	}
}

// TestListingIsLeft: a call that waits for the list of tools that another one requests ends with its own context.
func TestListingIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, r := newRecorded(t, io.Discard)
		p.Upstream = &slowServer{recorder: r, pause: map[string]time.Duration{"tools/list": time.Hour}}
		go func() { _, _ = p.tools(t.Context()) }()
		synctest.Wait()
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.tools(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		time.Sleep(2 * time.Hour)
	})
}

// TestLeaseEndsDuringARemoteCall: the end of the lease does not cut the connection of a call to a server over HTTP;
// the end of the wait does.
func TestLeaseEndsDuringARemoteCall(t *testing.T) {
	t.Parallel()
	reached, answer := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in := readRequest(t, r)
		reached <- struct{}{}
		select {
		case <-answer:
			answerJSON(w, `{"jsonrpc":"2.0","id":%s,"result":{"a":1}}`, in.ID)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	p := newRemote(t, Remote{URL: server.URL})
	for _, want := range []string{`result {"a":1}`, "unknown"} {
		ctx, cancel := context.WithCancel(t.Context())
		leased, lose := context.WithCancelCause(ctx)
		answered := make(chan reply, 1)
		go func() { answered <- p.askWithin(ctx, leased, "tools/call", []byte(`{"name":"a"}`)) }()
		<-reached
		lose(errLeaseEnded)
		select {
		case r := <-answered:
			t.Fatalf("after the end of the lease: %s", outcomeOf(r))
		case <-time.After(50 * time.Millisecond):
		}
		if want != "unknown" {
			answer <- struct{}{}
		} else {
			cancel()
		}
		if got := outcomeOf(<-answered); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		cancel()
	}
}
