package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// conformanceSuite is the program of the protocol's own test suite, and the node that runs it.
func conformanceSuite(t *testing.T) []string {
	t.Helper()
	suite, err := filepath.Abs("../../.tools/conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js")
	if err == nil {
		_, err = os.Stat(suite)
	}
	if err != nil {
		t.Fatalf("%v: scripts/tools installs it", err)
	}
	node := "node"
	if own, err := filepath.Abs("../../.tools/node/node_modules/.bin/node"); err == nil {
		if _, err := os.Stat(own); err == nil {
			node = own // the suite needs 22
		}
	}
	return []string{node, suite}
}

var scenarioLine = regexp.MustCompile(`(?m)^. ([a-z0-9-]+): \d+ passed, \d+ failed.*$`)

// conform runs the suite against a server, and returns the results of the scenarios, one per line.
func conform(t *testing.T, suite []string, address, version string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	dir := t.TempDir()
	cmd := exec.CommandContext(ctx, suite[0], suite[1], "server", "--url", address+"/mcp", "--spec-version", version,
		"--output-dir", dir)
	out, _ := cmd.CombinedOutput() // a failed scenario is in it
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s of %s:\n%s\nnot passed: %s", version, address, out, notPassed(t, dir))
		}
	})
	return strings.Join(scenarioLine.FindAllString(string(out), -1), "\n") + "\n"
}

// notPassed returns the checks of a run of the suite that neither passed nor give only information.
func notPassed(t *testing.T, dir string) (list []json.RawMessage) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	must(t, err)
	for _, name := range files {
		var checks []json.RawMessage
		b, err := os.ReadFile(name)
		must(t, err)
		must(t, json.Unmarshal(b, &checks))
		for _, check := range checks {
			var of struct{ Status string }
			must(t, json.Unmarshal(check, &of))
			if of.Status != "SUCCESS" && of.Status != "INFO" {
				list = append(list, check)
			}
		}
	}
	return list
}

// everythingServer starts the SDK's server for the suite.
func everythingServer(t *testing.T, program string, flags ...string) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	address := l.Addr().String()
	_ = l.Close()
	cmd := exec.Command(program, append(flags, "-http", address)...)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = c.Close()
			return "http://" + address
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// TestMCPConformance: the protocol's own suite has the same results with and without the proxy, for
// both protocol versions. Every call is an action that the policy allows. testdata/conformance has the
// results of the bare server; they change with the suite and with the SDK.
func TestMCPConformance(t *testing.T) {
	t.Parallel()
	suite := conformanceSuite(t)
	program := filepath.Join(t.TempDir(), "everything")
	const command = "github.com/modelcontextprotocol/go-sdk/conformance/everything-server"
	if out, err := buildProgram(program, command); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for version, flags := range map[string][]string{"2025-11-25": {"-stateless=false"}, "2026-07-28": nil} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			bare := everythingServer(t, program, flags...)
			tools, policy := allowAll(t, bare)
			w := newMCPWorldWith(t, tools, policy)
			l := w.listen("--upstream", bare+"/mcp")
			target, err := url.Parse(l.url)
			must(t, err)
			// The suite sends no credentials.
			keyed := httptest.NewServer(&httputil.ReverseProxy{
				FlushInterval: -1,
				Rewrite: func(r *httputil.ProxyRequest) {
					r.SetURL(target)
					r.Out.Host = r.In.Host
					r.Out.Header.Set("Authorization", "Bearer "+w.bot.Key)
					// The server behind it may answer before the transport has seen the end of the body. The inbound
					// body is closed then, and a transport that still reads it would cut the answer off.
					b, err := io.ReadAll(r.In.Body)
					if err != nil {
						t.Error(err)
					}
					r.Out.Body = io.NopCloser(bytes.NewReader(b))
				},
			})
			t.Cleanup(keyed.Close)
			want, err := os.ReadFile(filepath.Join("testdata", "conformance", version+".txt"))
			must(t, err)
			got := conform(t, suite, keyed.URL, version)
			if got != string(want) {
				t.Errorf("want:\n%s\nthrough the proxy:\n%s\nthe bare server:\n%s", want, got,
					conform(t, suite, bare, version))
			}
		})
	}
}

// allowAll is a configuration by which the policy allows every call of a server's tools.
func allowAll(t *testing.T, server string) (declared, more string) {
	t.Helper()
	agent := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	c, err := agent.Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: server + "/mcp", HTTPClient: http.DefaultClient,
	}, nil)
	must(t, err)
	defer c.Close()
	list, err := c.ListTools(t.Context(), nil)
	must(t, err)
	var tools, risks []string
	for _, tool := range list.Tools {
		tools = append(tools, fmt.Sprintf("%q: {floor: 1}", tool.Name))
		risks = append(risks, fmt.Sprintf("  %q: 1", strings.ToLower(tool.Name)))
	}
	name := filepath.Join(t.TempDir(), "policy.yaml")
	policy := "version: 1\nrisk:\n" + strings.Join(risks, "\n") +
		"\nrules:\n  - {id: safe, when: risk <= 2, then: allow}\n"
	must(t, os.WriteFile(name, []byte(policy), 0o600))
	return strings.Join(tools, ", "),
		fmt.Sprintf(", policy: {file: %q}, rate_limit: {per_second: 10000, burst: 10000}", name)
}
