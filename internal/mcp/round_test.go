package mcp

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// held is the answer to a held call.
type held struct {
	Result struct {
		Type    string `json:"resultType"`
		State   string `json:"requestState"`
		IsError bool   `json:"isError"`
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	} `json:"result"`
	Error struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// newRounds is a proxy for a key, whose calls are held briefly.
func newRounds(t *testing.T, gate *pendingGate, folder *Folder, key string) *Proxy {
	t.Helper()
	r := &recorder{}
	c := Config{Name: "peer", Upstream: r, Gate: keyed{gate, key}, Folder: folder, Hold: time.Millisecond,
		Log: slog.New(slog.DiscardHandler)}
	must(t, c.complete())
	r.proxy = newProxy(c, io.Discard)
	r.proxy.me = &gatehouse.Principal{ID: "prn_" + key}
	return r.proxy
}

// say sends a call of protocol 2026-07-28, with a requestState if it is not "".
func (p *Proxy) say(t *testing.T, arguments, state string) held {
	t.Helper()
	params := `{"name":"write","arguments":` + arguments + `}`
	if state != "" {
		params = string(setMember([]byte(params), "requestState", []byte(gatehouse.StringJSON(state))))
	}
	return p.sayParams(t, params)
}

func (p *Proxy) sayParams(t *testing.T, params string) (out held) {
	t.Helper()
	f, err := parseFrame([]byte(modernFrame("1", "tools/call", params)), clientDepth)
	must(t, err)
	p.learn(f)
	answer := p.call(t.Context(), f)
	if err := json.Unmarshal(answer, &out); err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	return out
}

func newFolder(t *testing.T, dir string) *Folder {
	t.Helper()
	folder, err := OpenFolder(dir)
	must(t, err)
	return folder
}

// TestRounds: a held call continues round by round, ends with a pending result,
// and asks people once.
func TestRounds(t *testing.T) {
	t.Parallel()
	gate := &pendingGate{byKey: map[string]*gatehouse.Action{}, decided: make(chan struct{})}
	dir := t.TempDir()
	p := newRounds(t, gate, newFolder(t, dir), "a")
	state := ""
	for n := 1; n < maxRounds; n++ {
		got := p.say(t, `{"text":"a"}`, state)
		if got.Result.Type != "input_required" || got.Result.State == "" || got.Result.State == state ||
			!got.Result.IsError || !strings.Contains(got.Result.Content[0].Text, "NOT been carried out") {
			t.Fatalf("round %d: %+v", n, got)
		}
		state = got.Result.State
		p = newRounds(t, gate, newFolder(t, dir), "a") // restart the proxy
	}
	if got := p.say(t, `{"text":"a"}`, state); got.Result.Type != "complete" || got.Result.State != "" ||
		!strings.Contains(got.Result.Content[0].Text, "gatehouse_wait") {
		t.Errorf("the last round: %+v", got)
	}
	if gate.proposals != 1 {
		t.Errorf("%d proposals", gate.proposals)
	}
	// An equal call joins the action; with its round, the client gets the
	// outcome.
	state = p.say(t, `{"text":"a"}`, "").Result.State
	close(gate.decided)
	if got := p.say(t, `{ "text" : "a" }`, state); got.Result.Type != "complete" ||
		!strings.Contains(got.Result.Content[0].Text, "expired") {
		t.Errorf("the outcome: %+v", got)
	}
	if len(gate.byKey) != 1 {
		t.Errorf("%d actions", len(gate.byKey))
	}
}

// TestRoundsTwice: two clients wait for one action. Each gets the outcome with
// its own round, and no new action is proposed.
func TestRoundsTwice(t *testing.T) {
	t.Parallel()
	gate := &pendingGate{byKey: map[string]*gatehouse.Action{}, decided: make(chan struct{})}
	p := newRounds(t, gate, newFolder(t, t.TempDir()), "a")
	states := []string{p.say(t, `{}`, "").Result.State, p.say(t, `{}`, "").Result.State}
	close(gate.decided)
	for _, state := range states {
		if got := p.say(t, `{}`, state); got.Result.Type != "complete" ||
			!strings.Contains(got.Result.Content[0].Text, "expired") {
			t.Errorf("%+v", got)
		}
	}
	if len(gate.byKey) != 1 {
		t.Errorf("%d actions", len(gate.byKey))
	}
}

// TestRoundsHostile: a requestState that was used, changed, or issued to
// another caller or for another call is refused, and nothing is proposed.
func TestRoundsHostile(t *testing.T) {
	t.Parallel()
	gate := &pendingGate{byKey: map[string]*gatehouse.Action{}, decided: make(chan struct{})}
	dir := t.TempDir()
	folder := newFolder(t, dir)
	p := newRounds(t, gate, folder, "a")
	other := newRounds(t, gate, folder, "b")
	elsewhere := newRounds(t, gate, newFolder(t, t.TempDir()), "a")
	renamed := newRounds(t, gate, folder, "a")
	renamed.Name = "peer2"
	fresh := func() string { return p.say(t, `{"text":"a"}`, "").Result.State }
	refused := func(name, why string, got held) {
		t.Helper()
		if got.Error.Code != codeInvalidParams || !strings.Contains(got.Error.Message, why) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	used := fresh()
	p.say(t, `{"text":"a"}`, used)
	expired, err := p.signRound(&call{tool: "write", arguments: `{"text":"a"}`}, round{
		Action: "act_a_1", Until: time.Now().Add(-time.Second).Unix(), Nonce: "n",
	})
	must(t, err)
	before := gate.proposals
	refused("replayed", "used before", p.say(t, `{"text":"a"}`, used))
	refused(
		"replayed to another proxy of the folder",
		"used before",
		newRounds(t, gate, newFolder(t, dir), "a").say(t, `{"text":"a"}`, used),
	)
	refused("expired", "expired", p.say(t, `{"text":"a"}`, expired))
	proposals := gate.proposals - before
	state := fresh()
	before = gate.proposals
	refused("another's", "not issued", other.say(t, `{"text":"a"}`, state))
	refused("another gate's", "not issued", elsewhere.say(t, `{"text":"a"}`, state))
	refused("another server's", "not issued", renamed.say(t, `{"text":"a"}`, state))
	refused("other arguments", "not issued", p.say(t, `{"text":"b"}`, state))
	refused("another tool", "not issued",
		p.sayParams(t, `{"name":"gatehouse_wait","arguments":{"text":"a"},"requestState":`+
			string(gatehouse.StringJSON(state))+`}`))
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	end := len(state) - 1
	spare := digits[strings.IndexByte(digits, state[end])^1] // differs in a bit that no byte has
	refused("changed in a spare bit", "not", p.say(t, `{"text":"a"}`, state[:end]+string(spare)))
	for i := range len(state) {
		for _, c := range []byte{'A', '.', '='} {
			if state[i] == c {
				continue
			}
			refused(fmt.Sprint("changed at ", i), "not", p.say(t, `{"text":"a"}`, state[:i]+string(c)+state[i+1:]))
		}
		refused(fmt.Sprint("cut at ", i), "not", p.say(t, `{"text":"a"}`, state[:i]+"."))
	}
	for _, raw := range []string{`1`, `null`, `{}`, `[]`, `""`, `"."`, `"a.b"`, `"` + strings.Repeat("a", 1<<20) + `.b"`} {
		refused(
			raw[:min(len(raw), 9)],
			"not issued",
			p.sayParams(t, `{"name":"write","arguments":{"text":"a"},"requestState":`+raw+`}`),
		)
	}
	for _, raw := range []string{`{"x":{}}`, `[]`, `1`, `"x"`} {
		refused("inputResponses "+raw, "no input",
			p.sayParams(t, `{"name":"write","arguments":{"text":"a"},"inputResponses":`+raw+
				`,"requestState":`+string(gatehouse.StringJSON(state))+`}`))
	}
	if proposals += gate.proposals - before; proposals != 0 {
		t.Errorf("%d proposals", proposals)
	}
	if got := p.say(t, `{"text":"a"}`, state); got.Result.State == "" {
		t.Errorf("the state that nobody has used: %+v", got)
	}
	// Concurrently: only one of many succeeds.
	state = fresh()
	answers := make(chan held, 16)
	for range cap(answers) {
		go func() { answers <- p.say(t, `{"text":"a"}`, state) }()
	}
	taken := 0
	for range cap(answers) {
		if got := <-answers; got.Error.Code == 0 {
			taken++
		}
	}
	if taken != 1 {
		t.Errorf("one requestState was accepted %d times", taken)
	}
	if info, err := os.Stat(folder.path("rounds.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v: %v", err, info)
	}
}
