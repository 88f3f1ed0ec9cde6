package mcp

import (
	"bytes"
	"strings"
	"testing"
)

// TestBrokenAnswers: a request of the client whose answer is broken gets an error; a request whose id is elsewhere in
// the broken frame stays open.
func TestBrokenAnswers(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", maxServerFrame)
	for name, c := range map[string]struct{ frame, answered string }{
		"a lone surrogate":      {`{"jsonrpc":"2.0","id":5,"result":{"id":6,"text":"\ud800"}}`, "5"},
		"a duplicate member":    {`{"jsonrpc":"2.0","id":5,"result":{"a":1,"a":{"id":6}}}`, "5"},
		"an id at the end":      {`{"result":{"id":6,"text":"\ud800"},"id":5}`, "5"},
		"a text id":             {`{"jsonrpc":"2.0","id":"x","result":{"a":1,"a":5}}`, `"x"`},
		"too long":              {`{"jsonrpc":"2.0","id":5,"result":{"id":6,"text":"` + long + `"}}`, "5"},
		"too long, id last":     {`{"result":{"id":6,"text":["` + long + `",{"id":6}]}, "id" : 5, "jsonrpc":"2.0"}`, "5"},
		"too long, text id":     {`{"result":{"id":6,"text":["` + long + `",{"id":6}]},"id":"x"}`, `"x"`},
		"a request":             {`{"jsonrpc":"2.0","id":5,"method":"roots/list","params":{"a":1,"a":2}}`, ""},
		"a too long request":    {`{"jsonrpc":"2.0","id":5,"method":"x","params":{"a":"` + long + `"}}`, ""},
		"another request's end": {`{"method":"x","params":{"a":"` + long + `"},"jsonrpc":"2.0","id":5}`, ""},
		"a notification":        {`{"jsonrpc":"2.0","method":"x","params":{"id":5,"a":1,"a":2}}`, ""},
		"no object":             {`[{"id":5}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			p, r := newRecorded(t, &out)
			for _, id := range []string{"5", "6", `"x"`} {
				p.clientFrame(t.Context(), []byte(`{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`))
			}
			p.Upstream = &lineServer{r, newLines(strings.NewReader(c.frame+"\n"), maxServerFrame)}
			must(t, p.fromServer())
			want := ""
			if c.answered != "" {
				want = `{"jsonrpc":"2.0","id":` + c.answered +
					`,"error":{"code":-32603,"message":"the server's answer to ping was refused`
			}
			if got := out.String(); !strings.HasPrefix(got, want) || want == "" && got != "" || strings.Count(got, "\n") > 1 {
				t.Errorf("the client got %s, want %s", got, want)
			}
		})
	}
}

// lineServer is a recorder whose output is lines.
type lineServer struct {
	*recorder
	lines *lines
}

func (s *lineServer) Receive() ([]byte, error) { return s.lines.next() }
