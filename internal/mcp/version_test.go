package mcp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// versionServer knows one version of the protocol without sessions. It answers at once.
type versionServer struct {
	*recorder
	known string
}

func (s *versionServer) Send(_ context.Context, raw []byte) error {
	f, err := parseFrame(raw, clientDepth)
	if err != nil {
		return err
	}
	if metaVersion(f) != s.known {
		go s.proxy.serverFrame(errorFrame(f.id, codeUnsupportedVersion, "unknown version"))
		return nil
	}
	go s.proxy.serverFrame(resultFrame(f.id, []byte(`{"tools":[{"name":"write"}]}`)))
	return nil
}

// TestBogusVersion: a version that the server does not know, named by a client that shares the proxy, does not reach
// the proxy's own requests; after a server no longer knows a version, the next request's version is used.
func TestBogusVersion(t *testing.T) {
	t.Parallel()
	said, out := io.Pipe()
	p, r := newRecorded(t, out)
	server := &versionServer{r, "2026-07-28"}
	p.Upstream = server
	answer := make([]byte, 4<<10)
	ping := func(version string) string {
		frame := strings.ReplaceAll(modernFrame("1", "ping", "{}"), "2026-07-28", version)
		p.clientFrame(t.Context(), []byte(frame))
		n, err := said.Read(answer)
		must(t, err)
		return string(bytes.TrimSpace(answer[:n]))
	}
	ask := func() string { return outcomeOf(p.ask(t.Context(), "tools/list", []byte("{}"))) }
	refused := fmt.Sprint("failure ", codeUnsupportedVersion)
	for i, step := range []struct{ known, version, want string }{
		{"2026-07-28", "bogus", refused},
		{"2026-07-28", "2026-07-28", "result"},
		{"2026-07-28", "bogus", "result"},
		{"2027-01-01", "bogus", refused},
		{"2027-01-01", "2027-01-01", "result"},
	} {
		server.known = step.known
		if i == 4 { // a call that the gate holds is not passed on
			frame := strings.ReplaceAll(modernFrame("1", "x", "{}"), "2026-07-28", step.version)
			f, err := parseFrame([]byte(frame), clientDepth)
			must(t, err)
			p.learn(f)
		} else if got := ping(step.version); strings.Contains(got, `"result"`) != (step.version == step.known) {
			t.Errorf("step %d: the client got %s", i+1, got)
		}
		if got := ask(); !strings.HasPrefix(got, step.want) {
			t.Errorf("step %d: the proxy's own request got %s, want %s", i+1, got, step.want)
		}
	}
}

// TestRefusals: the codes by which a server refuses a request prove that it did nothing; no other error does.
func TestRefusals(t *testing.T) {
	t.Parallel()
	p, _ := newRecorded(t, io.Discard)
	for code, want := range map[string][2]string{ // in the legacy and in the modern protocol
		"-32700": {"terminal", "terminal"}, "-32600": {"terminal", "terminal"}, "-32601": {"terminal", "terminal"},
		"-32602": {"terminal", "terminal"}, "-32020": {"ambiguous", "terminal"}, "-32021": {"ambiguous", "terminal"},
		"-32022": {"ambiguous", "terminal"}, "-32603": {"ambiguous", "ambiguous"}, "-32000": {"ambiguous", "ambiguous"},
		`"-32600"`: {"ambiguous", "ambiguous"},
	} {
		for i, modern := range []bool{false, true} {
			v := p.refused(&gatehouse.LeasedPush{},
				reply{failure: []byte(`{"code":` + code + `,"message":"no"}`), modern: modern})
			if v.failure.Kind != want[i] {
				t.Errorf("%s, modern %t: %s, want %s", code, modern, v.failure.Kind, want[i])
			}
		}
	}
}
