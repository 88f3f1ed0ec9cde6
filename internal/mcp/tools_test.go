package mcp

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

// acceptGate answers the first proposal and its repetitions with an action, and any other proposal with a new one.
type acceptGate struct {
	Gate
	key   string
	first gatehouse.Action
}

func (g *acceptGate) Propose(_ context.Context, p *gatehouse.Proposal) (*gatehouse.Action, bool, error) {
	if g.key != "" && g.key != p.IdempotencyKey {
		return &gatehouse.Action{Proposal: *p, ID: "act_2", Status: gatehouse.StatusPending}, false, nil
	}
	a, replayed := g.first, g.key != ""
	g.key, a.Proposal, a.ID = p.IdempotencyKey, *p, "act_1"
	return &a, replayed, nil
}

// TestAskedAgain: people are asked again to accept a change of the tools once the earlier action no longer stands, and
// the pins are still those that the change is from.
func TestAskedAgain(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, c := range map[string]struct {
		earlier gatehouse.Action
		moved   bool
		want    string
	}{
		"pending":       {gatehouse.Action{Status: gatehouse.StatusPending}, false, "act_1"},
		"approved":      {gatehouse.Action{Status: gatehouse.StatusApproved}, false, "act_1"},
		"unknown":       {gatehouse.Action{Status: gatehouse.StatusUnknown}, false, "act_1"},
		"rejected":      {gatehouse.Action{Status: gatehouse.StatusRejected}, false, "act_1"},
		"denied now":    {gatehouse.Action{Status: gatehouse.StatusDenied, ProposedAt: now}, false, "act_1"},
		"denied before": {gatehouse.Action{Status: gatehouse.StatusDenied, ProposedAt: now.Add(-time.Hour)}, false, "act_2"},
		"expired":       {gatehouse.Action{Status: gatehouse.StatusExpired}, false, "act_2"},
		"canceled":      {gatehouse.Action{Status: gatehouse.StatusCanceled}, false, "act_2"},
		"failed":        {gatehouse.Action{Status: gatehouse.StatusFailed}, false, "act_2"},
		"applied":       {gatehouse.Action{Status: gatehouse.StatusApplied}, false, "act_2"},
		"just applied":  {gatehouse.Action{Status: gatehouse.StatusApplied}, true, "act_1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := newRecorded(t, io.Discard)
			gate := &acceptGate{first: gatehouse.Action{Status: gatehouse.StatusPending}}
			p.Gate = gate
			pins := &catalogue{Upstream: "recorder"}
			must(t, p.Folder.setPins(pins))
			proposal := &gatehouse.Proposal{ActionType: acceptType, ProposedChange: `{"tool write":{"name":"write"}}`}
			proposal.Target.Version = catalogueHash(pins)
			_, err := p.askToAccept(t.Context(), proposal)
			must(t, err)
			if c.moved {
				must(t, p.Folder.setPins(&catalogue{Upstream: "other"}))
			}
			gate.first = c.earlier
			for range 2 {
				a, err := p.askToAccept(t.Context(), proposal)
				must(t, err)
				if a.ID != c.want {
					t.Errorf("the change waits for %s, want %s", a.ID, c.want)
				}
			}
		})
	}
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

// TestAcceptedAtOnce: of concurrent changes of the same pins through several processes, only one is made.
func TestAcceptedAtOnce(t *testing.T) {
	t.Parallel()
	folder, err := OpenFolder(t.TempDir())
	must(t, err)
	var proxies [4]*Proxy
	for i := range proxies {
		proxies[i], _ = newRecorded(t, io.Discard)
		proxies[i].Folder, err = OpenFolder(folder.dir)
		must(t, err)
	}
	for range 20 {
		pins := &catalogue{Upstream: "recorder"}
		must(t, folder.setPins(pins))
		push := &gatehouse.LeasedPush{}
		push.Target.Version, push.ProposedChange = catalogueHash(pins), `{"tool a":{"name":"a"}}`
		var accepted atomic.Int32
		var all sync.WaitGroup
		for _, p := range proxies {
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

// TestManyTools: a list of the greatest length is read, compared and shown.
func TestManyTools(t *testing.T) {
	t.Parallel()
	showTools(t, maxTools)
}

// BenchmarkManyTools: the cost of a tool is the same in a list of the greatest length, ten times as long as the
// baseline's. A search for each tool would make it ten times as dear.
func BenchmarkManyTools(b *testing.B) {
	var few, many time.Duration
	for b.Loop() {
		began := time.Now()
		for range 10 {
			showTools(b, maxTools/10)
		}
		between := time.Now()
		showTools(b, maxTools)
		few += between.Sub(began)
		many += time.Since(between)
	}
	b.ReportMetric(float64(many)/float64(few), "ratio-per-tool")
}

// showTools pins and shows n tools, and compares them with a list that lacks the first.
func showTools(t testing.TB, n int) {
	t.Helper()
	var tools [][]byte
	for i := range n {
		tools = append(tools, fmt.Appendf(nil, `{"description":"%02000d","name":"tool_%d"}`, i, i))
	}
	var pinned, found catalogue
	must(t, pinned.add(tools))
	must(t, found.add(tools[1:]))
	if d := diff(&pinned, &found); len(d) != 1 || !d.quarantines("tool_0") {
		t.Errorf("%d differences", len(d))
	}
	folder, err := OpenFolder(t.TempDir())
	must(t, err)
	must(t, folder.setPins(&pinned))
	shown, err := Pinned(folder, "peer")
	must(t, err)
	if len(shown) != n {
		t.Fatalf("%d of %d tools are shown", len(shown), n)
	}
	for i, tool := range shown {
		description, _ := tool.Proposal.Context.Get("tool_description")
		if tool.Name != fmt.Sprintf("tool_%d", i) || tool.Proposal.Operation != tool.Name ||
			tool.Proposal.Target.Version != pinned.pin(pinned.Tools[i]) || len(description) != 2002 {
			t.Fatalf("tool %d is shown as %+v", i, tool)
		}
	}
}
