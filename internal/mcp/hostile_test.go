package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// recorder is an upstream that records what is sent to it, except the proxy's own
// requests: it answers those.
type recorder struct {
	mu    sync.Mutex
	sent  [][]byte
	proxy *Proxy
}

func (r *recorder) Identity() string         { return "recorder" }
func (r *recorder) Receive() ([]byte, error) { return nil, io.EOF }
func (r *recorder) Abandon([]byte)           {}
func (r *recorder) Close() error             { return nil }

func (r *recorder) Send(_ context.Context, frame []byte) error {
	if f, err := parseFrame(frame, clientDepth); err == nil && isOwn(f.id) {
		result := `{"tools":[{"name":"write"}]}`
		if f.method == "server/discover" {
			result = `{"capabilities":{},"instructions":"Write."}`
		}
		go r.proxy.serverFrame(resultFrame(f.id, []byte(result)))
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = append(r.sent, bytes.Clone(frame))
	return nil
}

func (r *recorder) take() (sent [][]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sent, r.sent = r.sent, nil
	return sent
}

// denier is a gate that denies everything.
type denier struct{ Gate }

func (denier) Propose(context.Context, *gatehouse.Proposal) (*gatehouse.Action, bool, error) {
	return &gatehouse.Action{ID: "act_1", Status: gatehouse.StatusDenied}, false, nil
}

func newRecorded(t *testing.T, out io.Writer) (*Proxy, *recorder) {
	t.Helper()
	folder, err := OpenFolder(t.TempDir())
	must(t, err)
	r := &recorder{}
	c := Config{Name: "peer", Upstream: r, Gate: denier{}, Folder: folder, Log: slog.New(slog.DiscardHandler)}
	must(t, c.complete())
	r.proxy = newProxy(c, out)
	r.proxy.me = &gatehouse.Principal{ID: "prn_1"}
	return r.proxy, r
}

// readings returns the methods that careless servers could read in a frame:
// names in any case, the last of duplicates, lines ended by a carriage return.
func readings(frame []byte) (methods []string) {
	for _, line := range bytes.FieldsFunc(frame, func(r rune) bool { return r == '\r' || r == '\n' }) {
		var one struct{ Method string }
		var many []struct{ Method string }
		if json.Unmarshal(line, &one) == nil {
			methods = append(methods, one.Method)
		}
		if json.Unmarshal(line, &many) == nil {
			for _, m := range many {
				methods = append(methods, m.Method)
			}
		}
	}
	return methods
}

// passes sends a frame of the client, and checks that it reaches the server
// unchanged or not at all, and never as a tool call.
func (r *recorder) passes(t *testing.T, frame []byte) (passed bool) {
	t.Helper()
	r.proxy.mu.Lock()
	clear(r.proxy.forwarded)
	r.proxy.mu.Unlock()
	r.proxy.clientFrame(t.Context(), frame)
	for _, got := range r.take() {
		if passed || !bytes.Equal(got, frame) {
			t.Errorf("%q reached the server as %q", frame, got)
		}
		passed = true
		for _, method := range readings(got) {
			if toolMethod(method) {
				t.Errorf("%q reached the server, which could read a call of a tool", frame)
			}
		}
	}
	return passed
}

// hostile are frames that must be refused.
func hostile() (list []string) {
	args := `"params":{"name":"write","arguments":{"text":"a"}}`
	for _, name := range []string{"Method", "METHOD", "mEthod", `m\u0045thod`, "method ", "meth\u00f6d", ""} {
		list = append(list,
			fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"ping","%s":"tools/call",%s}`, name, args),
			fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"%s":"tools/call","method":"ping",%s}`, name, args))
	}
	for _, name := range []string{"Params", "PARAMS", "Id", "ID", "JSONRPC", "Result", "Error", "extra", "__proto__"} {
		for _, value := range []string{`{}`, `1`, `null`, `"x"`} {
			list = append(list, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"ping","%s":%s}`, name, value))
		}
	}
	for _, method := range []string{
		"Tools/Call", "TOOLS/CALL", "tools/Call", "tools/call ", " tools/call", `\ttools/call`, `tools/call\u0000`,
		"tools//call",
		"tools/invoke", "tools", "tools/", `tool\u017f/call`, "tools /call", "tools/List", `\u0000tools/call`,
		`tools/call\n`,
	} {
		list = append(list, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"%s",%s}`, method, args),
			fmt.Sprintf(`{"jsonrpc":"2.0","method":"%s",%s}`, method, args))
	}
	for _, id := range []string{
		"null", "true", "[]", "{}", `"` + strings.Repeat("x", 300) + `"`, strings.Repeat("9", 300), `"gatehouse:1"`,
		"01", "+1", "1.", ".5",
		"NaN", "Infinity", "0x1", `'a'`, `"\ud800"`,
	} {
		list = append(list, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"ping"}`, id))
	}
	for _, version := range []string{`"1.0"`, `2.0`, `"2.00"`, `null`, `["2.0"]`} {
		list = append(list, fmt.Sprintf(`{"jsonrpc":%s,"id":1,"method":"ping"}`, version))
	}
	for _, params := range []string{"null", "[]", "1", `"x"`, "true"} {
		list = append(list, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"ping","params":%s}`, params))
	}
	call := `{"jsonrpc":"2.0","id":2,"method":"tools/call",` + args + `}`
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	list = append(list,
		"["+call+"]", "["+ping+","+call+"]", "[]", ping+call, ping+" "+ping, ping+"\x00",
		"\ufeff"+ping, ping+",",
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":`+"\r"+call+"\r"+`}}`, "\r"+ping,
		`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call",`+args+`}`,
		`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"method":"ping",
		"params":{"a":1,"a":2}}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1,"\u0061":2}}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":`+strings.Repeat("[", 40)+strings.Repeat("]", 40)+`}}`,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"a\":\"\xff\"}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"a\":\"\xc0\xaf\"}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"a\":\"\xed\xa0\x80\"}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"a\":\"\x01\"}}",
		`{"jsonrpc":"2.0","id":1,"method":"ping",}`, `{"jsonrpc":"2.0","id":1,"method":"ping"/**/}`, `{jsonrpc:"2.0"}`,
		`{}`, `null`, `"x"`, `1`,
		`{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`, `{"jsonrpc":"2.0","result":{}}`, `{"jsonrpc":"2.0","id":1}`,
		`{"jsonrpc":"2.0","id":1,"result":{},"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"result":{},"params":{}}`,
		`{"jsonrpc":"2.0","id":1,"error":"x"}`, `{"jsonrpc":"2.0","id":1,"method":""}`, `{"jsonrpc":"2.0",
		"id":1,"method":["ping"]}`,
		`{"jsonrpc":"2.0","id":1,"method":"`+strings.Repeat("m", 200)+`"}`,
		`{"jsonrpc":"2.0","method":"tools/call",`+args+`}`, `{"jsonrpc":"2.0","method":"tools/list"}`,
	)
	for mask := 1; mask < 64; mask++ { // method in mixed case
		name := []byte("method")
		for i := range name {
			if mask>>i&1 == 1 {
				name[i] -= 'a' - 'A'
			}
		}
		list = append(list, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"%s":"tools/call",%s}`, name, args))
	}
	for _, cut := range []int{1, 5, 10, 20, 30, 35} {
		list = append(list, ping[:cut], call[:cut], ping[cut:], call[cut:])
	}
	return list
}

func TestHostileFrames(t *testing.T) {
	t.Parallel()
	_, r := newRecorded(t, io.Discard)
	list := hostile()
	if len(list) < 200 {
		t.Fatalf("only %d frames", len(list))
	}
	for _, frame := range list {
		if r.passes(t, []byte(frame)) {
			t.Errorf("passed: %q", frame)
		}
	}
	for _, frame := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `  {"method":"ping" , "id" : "a" , "jsonrpc":"2.0"}  `,
		`{"jsonrpc":"2.0","id":12345678901234567890123,"method":"resources/read","params":{"uri":"\u0061"}}`,
		`{"jsonrpc":"2.0","id":1.50,"\u006dethod":"ping"}`, `{"jsonrpc":"2.0","method":"notifications/x",
		"params":{"n":1e400}}`,
		`{"jsonrpc":"2.0","id":7,"result":{"roots":[]}}`, `{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"no"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"vendor/tools/call"}`,
	} {
		if !r.passes(t, []byte(frame)) {
			t.Errorf("refused: %q", frame)
		}
	}
}

// TestRefusedFrames: a refused frame that may be a request is answered, with its id if that is valid.
func TestRefusedFrames(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	_, r := newRecorded(t, &out)
	long := strings.Repeat("m", maxMethod+1)
	for frame, id := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"` + long + `"}`:                         "1",
		`{"jsonrpc":"2.0","id":1,"method":5}`:                                      "1",
		`{"jsonrpc":"2.0","method":"ping","id":{}}`:                                "null",
		`{"jsonrpc":"2.0","method":"ping","id":"` + strings.Repeat(long, 2) + `"}`: "null",
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`:                               "null",
		`{"jsonrpc":"2.0","method":"` + long + `"}`:                                "",
		`{"jsonrpc":"2.0","id":{},"result":{}}`:                                    "",
	} {
		want := ""
		if id != "" {
			want = `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32600,`
		}
		out.Reset()
		if r.passes(t, []byte(frame)) || !strings.HasPrefix(out.String(), want) || want == "" && out.Len() > 0 {
			t.Errorf("%s is answered with %q, want %s", frame, out.String(), want)
		}
	}
}

// TestCanceledRequests: requests that the client canceled, and that the server therefore does not
// answer, leave room for others; a late answer is passed on.
func TestCanceledRequests(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p, r := newRecorded(t, &out)
	for id := range maxOpen {
		p.clientFrame(t.Context(), fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id))
		if id > 0 {
			p.clientFrame(t.Context(), fmt.Appendf(nil,
				`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id))
		}
	}
	answer := `{"jsonrpc":"2.0","id":1,"result":{}}`
	if p.serverFrame([]byte(answer)); out.String() != answer+"\n" {
		t.Errorf("the client got %q, want %q", out.String(), answer)
	}
	r.take()
	for _, id := range []string{"1", `"next"`} {
		p.clientFrame(t.Context(), []byte(`{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`))
	}
	if sent := r.take(); len(sent) != 2 || len(p.forwarded) != 3 {
		t.Errorf("%d requests reached the server, and %d are open: %s", len(sent), len(p.forwarded), &out)
	}
}

// TestRandomFrames mutates frames; each one passes unchanged or not at all.
func TestRandomFrames(t *testing.T) {
	t.Parallel()
	p, r := newRecorded(t, io.Discard)
	random := rand.New(rand.NewPCG(20261124, 7))
	seeds := []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write","arguments":{"text":"a"}}}`,
		`{"jsonrpc":"2.0","id":"x","method":"resources/read","params":{"uri":"file:///a","_meta":{"progressToken":3}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"tools/call"}}`,
		`{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"é\u2028\"tools/call\""}]}}`,
	}
	parts := []string{
		`"method":"tools/call"`, `"Method":"tools/call",`, `tools/call`, "\r", "\n", `\u0000`, `{`, `}`, `[`, `]`, `"`,
		`,`, `:`, ` `, "\xff", `"id":2,`,
		`null`, `1e9`, "\x00", `\`, `"params":{"name":"write"},`, "\u2028",
	}
	passed := 0
	for range 5000 {
		frame := []byte(seeds[random.IntN(len(seeds))])
		for range random.IntN(4) {
			at := random.IntN(len(frame))
			switch random.IntN(4) {
			case 0:
				frame[at] ^= byte(1 << random.IntN(8))
			case 1:
				frame = append(frame[:at:at], frame[min(len(frame), at+1+random.IntN(8)):]...)
			case 2:
				frame = append(append(frame[:at:at], parts[random.IntN(len(parts))]...), frame[at:]...)
			default:
				if c := frame[at]; c >= 'a' && c <= 'z' {
					frame[at] = c - 'a' + 'A'
				}
			}
			if len(frame) == 0 {
				break
			}
		}
		if len(frame) > 0 && r.passes(t, frame) {
			passed++
		}
	}
	if passed < 500 || passed > 4500 {
		t.Errorf("%d of 5000 passed: the generated frames are unsuitable", passed)
	}
	deadline := time.Now().Add(time.Minute)
	for open := 1; open > 0; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		open = len(p.held)
		p.mu.Unlock()
		if time.Now().After(deadline) {
			t.Fatalf("%d calls are held", open)
		}
	}
	if sent := r.take(); len(sent) > 0 {
		t.Errorf("%d calls of tools reached the server", len(sent))
	}
}

// TestHostileServer: the server cannot answer something that it was not asked,
// or a call that the gate holds. An invalid answer becomes an error for the
// client.
func TestHostileServer(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p, r := newRecorded(t, &out)
	said := func(frame string) string {
		out.Reset()
		p.serverFrame([]byte(frame))
		return strings.TrimSuffix(out.String(), "\n")
	}
	p.held["5"] = func() {}
	for _, frame := range []string{
		`{"jsonrpc":"2.0","id":5,"result":{"content":[]}}`, `{"jsonrpc":"2.0","id":6,"result":{}}`,
		`{"jsonrpc":"2.0","id":"gatehouse:9:","result":{}}`,
		`not json`, `[{"jsonrpc":"2.0","id":6,"result":{}}]`, `{"jsonrpc":"2.0","id":6,"ID":5,"result":{}}`,
	} {
		if got := said(frame); got != "" {
			t.Errorf("%s reached the client as %s", frame, got)
		}
	}
	r.passes(t, []byte(`{"jsonrpc":"2.0","id":6,"method":"ping"}`))
	got := said(`{"jsonrpc":"2.0","id":6,"ID":5,"result":{}}`)
	if !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":6,"error"`) {
		t.Errorf("a wrong answer reached the client as %s", got)
	}
	r.passes(t, []byte(`{"jsonrpc":"2.0","id":6,"method":"ping"}`))
	for _, frame := range []string{
		`{"jsonrpc":"2.0","id":6,"result":{ "big":12345678901234567890, "x":"\u0041"}}`,
		`{"jsonrpc":"2.0","method":"notifications/message","params":{}}`,
		`{"jsonrpc":"2.0","id":5,"method":"sampling/createMessage","params":{}}`,
		`{"jsonrpc":"2.0","error":{"code":-32700,"message":"x"}}`,
	} {
		if got := said(frame); got != frame {
			t.Errorf("%s reached the client as %s", frame, got)
		}
	}
	if got := said(`{"jsonrpc":"2.0","id":6,"result":{}}`); got != "" {
		t.Errorf("a second answer reached the client: %s", got)
	}
}

// TestServerEnds: a request that the server leaves without an answer gets one before the proxy ends.
func TestServerEnds(t *testing.T) {
	t.Parallel()
	folder, err := OpenFolder(t.TempDir())
	must(t, err)
	server := &scripted{out: make(chan []byte, 16), gone: make(chan struct{}), wait: make(chan struct{})}
	gate := keyed{&pendingGate{byKey: map[string]*gatehouse.Action{}, decided: make(chan struct{})}, "a"}
	in, client := io.Pipe()
	said, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		c := Config{Name: "peer", Upstream: server, Gate: gate, Folder: folder, Log: slog.New(slog.DiscardHandler)}
		ended <- Run(t.Context(), c, in, out)
		_ = out.Close()
	}()
	_, err = io.WriteString(client, `{"jsonrpc":"2.0","id":5,"method":"resources/read",`+
		`"params":{"uri":"x","_meta":{"progressToken":7}}}`+"\n")
	must(t, err)
	lines := bufio.NewScanner(said)
	lines.Scan() // the server has got it
	must(t, server.Close())
	lines.Scan()
	want := `{"jsonrpc":"2.0","id":5,"error":{"code":-32603,"message":"the MCP server has ended"}}`
	if lines.Text() != want {
		t.Errorf("answered %q, want %s", lines.Text(), want)
	}
	if err := <-ended; !errors.Is(err, errServerGone) {
		t.Error(err)
	}
}

// endings are servers that end when they have read a line, and what the client learns: never what
// they wrote to standard error.
var endings = map[string]string{
	"echo secret >&2; exit 3":                      "the MCP server has ended: exit status 3",
	"kill -9 $$":                                   "the MCP server has ended: signal: killed",
	"exec 1>&-; while read line; do :; done":       "the MCP server has ended: it closed its output",
	`printf '{"jsonrpc":"2.0"'; exec 0<&-; exit 0`: "the MCP server has ended: exit status 0",
}

// TestHowTheServerEnds: the client of a proxy on stdio learns how the server has ended.
func TestHowTheServerEnds(t *testing.T) {
	t.Parallel()
	for script, want := range endings {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			folder, err := OpenFolder(t.TempDir())
			must(t, err)
			log := slog.New(slog.DiscardHandler)
			server, err := Start(Command{Args: []string{"sh", "-c", "read line; " + script}}, log)
			must(t, err)
			gate := keyed{&pendingGate{byKey: map[string]*gatehouse.Action{}, decided: make(chan struct{})}, "a"}
			in, client := io.Pipe()
			var said bytes.Buffer
			go func() { _, _ = io.WriteString(client, `{"jsonrpc":"2.0","id":5,"method":"ping"}`+"\n") }()
			c := Config{Name: "peer", Upstream: server, Gate: gate, Folder: folder, Log: log}
			if err := Run(t.Context(), c, in, &said); !errors.Is(err, errServerGone) || err.Error() != want {
				t.Errorf("the proxy ended with %v", err)
			}
			if got := memberOf(memberOf(said.Bytes(), "error"), "message"); string(got) != strconv.Quote(want) {
				t.Errorf("answered %s, want %s", said.String(), want)
			}
		})
	}
}

// TestUnreadableFrame: a frame that cannot be parsed may be a request, and gets an answer; a response with a fault
// gets none.
func TestUnreadableFrame(t *testing.T) {
	t.Parallel()
	for frame, want := range map[string]string{
		`{"jsonrpc":"2.0",`: `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`,
		"{\"jsonrpc\":\"2.0\",\r\"id\":1,\"method\":\"ping\"}": `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`,
		`{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`:      "",
	} {
		var said bytes.Buffer
		p, r := newRecorded(t, &said)
		p.clientFrame(t.Context(), []byte(frame))
		got, sent := said.String(), r.take()
		if !strings.HasPrefix(got, want) || want == "" && got != "" || len(sent) > 0 {
			t.Errorf("%q is answered by %q; the server got %q", frame, got, sent)
		}
	}
}

// TestServerDoesNotRead: a server on stdio that reads nothing delays nothing beyond the proxy's own time limits.
func TestServerDoesNotRead(t *testing.T) {
	t.Parallel()
	server, err := Start(Command{Args: []string{"sleep", "60"}}, slog.New(slog.DiscardHandler))
	must(t, err)
	t.Cleanup(func() { server.(*process).kill(); _ = server.Close() })
	p, _ := newRecorded(t, io.Discard)
	p.Upstream = server
	long := []byte(`{"name":"` + strings.Repeat("a", 1<<20) + `"}`)
	for _, want := range []string{"unknown", "not sent"} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		answered := make(chan reply, 1)
		go func() { answered <- p.ask(ctx, "tools/call", long) }()
		select {
		case r := <-answered:
			if got := outcomeOf(r); got != want || !errors.Is(r.err, errUnread) {
				t.Errorf("%s: %v, want %s", got, r.err, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the proxy waits for the server")
		}
	}
}

// TestLastLogged: the last line of a server's standard error is logged, although it has no line feed.
func TestLastLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	server, err := Start(Command{Args: []string{"sh", "-c", "printf 'one\\ntwo' >&2"}},
		slog.New(slog.NewTextHandler(&log, nil)))
	must(t, err)
	must(t, server.Close())
	if !strings.Contains(log.String(), "line=one ") || !strings.Contains(log.String(), "line=two ") {
		t.Errorf("the log is %s", &log)
	}
}

// TestLines: a too long line is dropped except its ends, and the next line is
// read.
func TestLines(t *testing.T) {
	t.Parallel()
	in := newLines(strings.NewReader("a\r\n\n  \n"+`{"id":"first"`+strings.Repeat("x",
		300_000)+`"last"}`+"\nb"), 200_000)
	line, err := in.next()
	if err != nil || string(line) != "a" {
		t.Errorf("%q %v", line, err)
	}
	line, err = in.next()
	if !errors.Is(err, errTooLong) || !bytes.Contains(line, []byte("first")) || !bytes.Contains(line, []byte("last")) ||
		len(line) > 3*edge {
		t.Errorf("%d bytes, %v", len(line), err)
	}
	if line, err = in.next(); err != nil || string(line) != "b" {
		t.Errorf("%q %v", line, err)
	}
	if _, err = in.next(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}
