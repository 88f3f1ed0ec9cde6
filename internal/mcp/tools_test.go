package mcp

import (
	"io"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestListedAgain: after the pins could not be read, the server's list is compared with them before
// the next call.
func TestListedAgain(t *testing.T) {
	t.Parallel()
	p, _ := newRecorded(t, io.Discard)
	_, err := p.tools(t.Context())
	must(t, err)
	must(t, os.WriteFile(p.Folder.path("pins.json"), []byte("{"), 0o600))
	p.stale.Store(true)
	if l, err := p.tools(t.Context()); err == nil {
		t.Errorf("pins that cannot be read: %+v", l)
	}
	must(t, p.Folder.setPins(&catalogue{Upstream: "recorder", Tools: []gatehouse.JSON{`{"name":"write","title":"W"}`}}))
	l, err := p.tools(t.Context())
	must(t, err)
	if !l.differs.quarantines("write") {
		t.Error("the changed tool is not in quarantine")
	}
	awaitAsked(t, p)
}

// TestInstructionsWithoutGreeting: the proxy pins the instructions of a server whose client does not ask for
// them, but only in the protocol without sessions.
func TestInstructionsWithoutGreeting(t *testing.T) {
	t.Parallel()
	for frame, want := range map[string]gatehouse.JSON{
		modernFrame("1", "resources/read", `{}`): `"Write."`, `{"jsonrpc":"2.0","id":1,"method":"ping"}`: "",
	} {
		p, _ := newRecorded(t, io.Discard)
		p.clientFrame(t.Context(), []byte(frame))
		l, err := p.tools(t.Context())
		must(t, err)
		if l.pinned.Instructions != want {
			t.Errorf("%s: the pinned instructions are %s, want %s", frame, l.pinned.Instructions, want)
		}
	}
}

// TestAcceptedAtOnce: of concurrent changes of the same pins through several sessions, only one is made.
func TestAcceptedAtOnce(t *testing.T) {
	t.Parallel()
	folder, err := OpenFolder(t.TempDir())
	must(t, err)
	for range 20 {
		pins := &catalogue{Upstream: "recorder"}
		must(t, folder.setPins(pins))
		push := &gatehouse.LeasedPush{}
		push.Target.Version, push.ProposedChange = catalogueHash(pins), `{"tool a":{"name":"a"}}`
		var accepted atomic.Int32
		var all sync.WaitGroup
		for range 4 {
			p, _ := newRecorded(t, io.Discard)
			p.Folder = folder
			all.Go(func() {
				if p.accept(push) == nil {
					accepted.Add(1)
				}
			})
		}
		if all.Wait(); accepted.Load() != 1 {
			t.Fatalf("%d changes of the same pins were made", accepted.Load())
		}
	}
}
