package mcp

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestUnreadFrames: many frames for a server that does not read delay a client once. Requests are answered, and
// what else is dropped is logged. Once the server reads, frames reach it.
func TestUnreadFrames(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var said, log bytes.Buffer
		p, _ := newRecorded(t, &said)
		in, out := io.Pipe()
		p.Upstream = &process{stdin: out, turn: make(chan struct{}, 1), over: make(chan struct{})}
		p.Log = slog.New(slog.NewTextHandler(&log, nil))
		began := time.Now()
		const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
		p.clientFrame(t.Context(), []byte(initialized))
		p.clientFrame(t.Context(), []byte(`{"jsonrpc":"2.0","id":"answer","result":{}}`))
		for id := range 8 {
			p.clientFrame(t.Context(), fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id))
		}
		if took := time.Since(began); took > postPatience {
			t.Errorf("the client waited for %s", took)
		}
		if n := strings.Count(said.String(), errUnread.Error()); n != 8 || len(p.forwarded) > 0 {
			t.Errorf("%d requests were refused: %s", n, &said)
		}
		for _, dropped := range []string{"method=notifications/initialized", "answer"} {
			if !strings.Contains(log.String(), dropped) {
				t.Errorf("the log has no %s: %s", dropped, &log)
			}
		}
		select {
		case <-p.ready:
			t.Error("a server that was not initialized is ready")
		default:
		}

		lines := make(chan string, 16)
		go func() {
			for s := bufio.NewScanner(in); s.Scan(); {
				lines <- s.Text()
			}
		}()
		if got := <-lines; got != initialized { // its beginning was sent
			t.Errorf("the server read %s", got)
		}
		synctest.Wait()
		p.clientFrame(t.Context(), []byte(initialized))
		<-p.ready
		if got := <-lines; got != initialized {
			t.Errorf("the server read %s", got)
		}
		must(t, out.Close())
	})
}

// stuck is a transport over which no answer comes.
type stuck struct{}

func (stuck) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestUnacceptedFrames: many notifications for a server over HTTP that accepts none delay a client once.
func TestUnacceptedFrames(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newRemote(t, Remote{URL: "http://127.0.0.1:1"})
		p.Upstream.(*remote).client.Transport = stuck{}
		for _, want := range []time.Duration{postPatience, 0, 0, 0} {
			began := time.Now()
			p.clientFrame(t.Context(), []byte(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`))
			if took := time.Since(began); took != want {
				t.Errorf("the client waited for %s, want %s", took, want)
			}
		}
		time.Sleep(unreadAfter) // it is tried again
		began := time.Now()
		p.clientFrame(t.Context(), []byte(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`))
		if took := time.Since(began); took != postPatience {
			t.Errorf("the client waited for %s", took)
		}
		must(t, p.Upstream.Close())
	})
}
