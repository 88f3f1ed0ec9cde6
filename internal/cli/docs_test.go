package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// testParser parses command lines without running anything.
func testParser(t *testing.T) *kong.Kong {
	t.Helper()
	g, _, _ := testGlobals(t)
	k, err := newParser(&cli{Globals: *g}, nil)
	must(t, err)
	return k
}

// parse parses a command line. If that fails, a new parser tries again, because a parser remembers
// the flags of earlier lines, which may exclude those of this one.
func parse(t *testing.T, parser *kong.Kong, args []string) (*kong.Context, error) {
	t.Helper()
	for _, arg := range args {
		if strings.HasPrefix(arg, "sha256:") && len(arg) != len(gatehouse.NewDigest("")) {
			return nil, fmt.Errorf("the server refuses the digest %s", arg)
		}
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return testParser(t).Parse(args)
	}
	return parsed, nil
}

// TestDocs parses each command line in the sh blocks of the pages.
func TestDocs(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	proof, err := filepath.Glob("../../docs/proof/*.md")
	if err != nil || len(proof) < 4 {
		t.Fatalf("%d pages of proof, %v", len(proof), err)
	}
	parser := testParser(t)
	connectors, err := filepath.Glob("../../docs/connectors/*.md")
	if err != nil || len(connectors) == 0 {
		t.Fatalf("%d pages of connectors, %v", len(connectors), err)
	}
	for _, page := range slices.Concat(pages, proof, connectors, []string{"../../README.md"}) {
		checkCommands(t, parser, page)
	}
}

// checkCommands parses the command lines of a page's blocks of the language sh.
func checkCommands(t *testing.T, parser *kong.Kong, page string) {
	t.Helper()
	src, err := os.ReadFile(page)
	must(t, err)
	fenced := false
	for n, line := range strings.Split(string(src), "\n") {
		if strings.HasPrefix(line, "```") {
			fenced = line == "```sh"
			continue
		}
		if !fenced || !strings.Contains(line, "gatehouse ") {
			continue
		}
		for _, args := range commandLines(t, line) {
			if _, err := parse(t, parser, args); err != nil {
				t.Errorf("%s:%d: %q: %v", page, n+1, args, err)
			}
		}
	}
}

// TestOperationsPages reads the configurations of the operators' pages as serve
// does, and looks for their metrics where a server shows them.
func TestOperationsPages(t *testing.T) {
	t.Parallel()
	var src []byte
	for _, name := range []string{"operations.md", "postgresql.md", "backup.md", "monitoring.md", "retention.md"} {
		page, err := os.ReadFile("../../docs/" + name)
		must(t, err)
		src = append(src, page...)
	}
	dir := t.TempDir()
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(src, -1)
	if len(blocks) == 0 {
		t.Fatal("no configuration on the pages")
	}
	policyFile := filepath.Join(dir, "policy.yaml")
	must(t, os.WriteFile(policyFile, policy.DefaultSource(), 0o600))
	all, err := os.ReadFile("../../docs/metrics.md") // TestMetricsPage compares it with the registry
	must(t, err)
	metrics := string(all)
	for _, b := range blocks {
		cfg, err := config.Parse(filepath.Join(dir, "gatehouse.yaml"), b[1])
		must(t, err)
		metrics += servedMetrics(t, t.TempDir(), cfg)
	}
	names := regexp.MustCompile("`(gatehouse_[a-z_]+)").FindAllSubmatch(src, -1)
	if len(names) < 4 {
		t.Fatalf("only %d metrics on the pages", len(names))
	}
	for _, m := range names {
		if !strings.Contains(metrics, string(m[1])) {
			t.Errorf("a server has no metric %s", m[1])
		}
	}
}

// servedMetrics starts a server with the configuration and reads its /metrics,
// after one decision that was refused.
func servedMetrics(t *testing.T, dir string, cfg *config.Config) string {
	t.Helper()
	s, creds := serveConfig(t, filepath.Join(dir, "data"), cfg)
	c := servetest.MustClient(t, s.URL, *creds)
	_, err := c.Decide(t.Context(), "act_none", gatehouse.Decision{Decision: gatehouse.Reject})
	if gatehouse.CodeOf(err) != gatehouse.CodeNotFound {
		t.Fatal(err)
	}
	// The checks of the log and of the targets have their own metrics, which appear after the
	// start.
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		body := servetest.Scrape(t, s.URL)
		looked := strings.Contains(body, "gatehouse_target_up") || len(cfg.Connectors) == 0
		if looked && strings.Contains(body, "gatehouse_audit_damaged") {
			return body
		}
		if time.Now().After(deadline) {
			t.Fatalf("the checks have no metrics after a minute:\n%s", body)
		}
	}
}

// TestHelp checks that the help of each command has an example, and parses it.
func TestHelp(t *testing.T) {
	t.Parallel()
	g, out, errOut := testGlobals(t)
	parser, err := newParser(&cli{Globals: *g}, nil)
	must(t, err)
	for _, leaf := range parser.Model.Leaves(true) {
		path := strings.Fields(leaf.Path())
		out.Reset()
		if code := helped(parser, path); code != term.ExitDone || errOut.Len() > 0 {
			t.Errorf("%v --help: exit code %d, %q on stderr", path, code, errOut)
		}
		if !strings.HasPrefix(out.String(), "Usage: gatehouse "+strings.Join(path, " ")) {
			t.Errorf("%v --help prints %q", path, out)
		}
		whole := out.String()
		out.Reset()
		if alone, err := newParser(&cli{Globals: *g}, path); err != nil || helped(alone, path) != term.ExitDone ||
			out.String() != whole {
			t.Errorf("%v --help of a parser of this command alone: %v\n%s\nnot\n%s", path, err, out, whole)
		}
		if leaf.Help == "" {
			t.Errorf("%v has no line of help", path)
		}
		detail := leaf.Detail
		if leaf.Parent.DefaultCmd == leaf {
			detail += leaf.Parent.Detail
		}
		detail = strings.ReplaceAll(detail, "\\\n", "")
		examples := 0
		for line := range strings.SplitSeq(detail, "\n") {
			line, found := strings.CutPrefix(line, "    ")
			if _, inline, ok := strings.Cut(line, "Example: "); ok {
				line, found = inline, true
			}
			if !found {
				continue
			}
			for _, args := range commandLines(t, line) {
				parsed, err := parse(t, parser, args)
				switch {
				case err != nil:
					t.Errorf("%v --help: %q: %v", path, args, err)
				case strings.Fields(parsed.Selected().Path())[0] == path[0]:
					examples++
				}
			}
		}
		if examples == 0 {
			t.Errorf("%v --help has no example:\n%s", path, detail)
		}
	}
}

// helped returns the exit code of the help text of the command at a path, or -1.
func helped(parser *kong.Kong, path []string) (code int) {
	defer func() {
		if status, ok := recover().(exited); ok {
			code = int(status)
		}
	}()
	_, _ = parser.Parse(append(path, "--help"))
	return -1
}

// TestEveryCommandTakesJSON: no command hides the global flag --json.
func TestEveryCommandTakesJSON(t *testing.T) {
	t.Parallel()
	for _, leaf := range testParser(t).Model.Leaves(true) {
		found := false
		for _, group := range leaf.AllFlags(true) {
			for _, f := range group {
				found = found || f.Name == "json"
			}
		}
		if !found {
			t.Errorf("%s does not accept --json", leaf.FullPath())
		}
	}
}

// commandLines finds the calls of gatehouse in a shell line, and splits them into arguments as the
// shell would, without expanding anything.
func commandLines(t *testing.T, line string) [][]string {
	t.Helper()
	var out [][]string
	var words []string
	var word bytes.Buffer
	quote, inWord := byte(0), false
	endWord := func() {
		if inWord {
			words = append(words, word.String())
		}
		word.Reset()
		inWord = false
	}
	endCommand := func() {
		endWord()
		if len(words) > 0 && words[0] == "gatehouse" {
			out = append(out, words[1:])
		}
		words = nil
	}
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '$' && quote != '\'' && strings.HasPrefix(line[i+1:], "("):
			end := strings.IndexByte(line[i:], ')')
			if end < 0 {
				t.Fatalf("%s: a substitution has no end", line)
			}
			out = append(out, commandLines(t, line[i+2:i+end])...)
			inWord, i = true, i+end
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteByte(c)
		case c == '\'' || c == '"':
			quote, inWord = c, true
		case c == '#' && !inWord:
			endCommand()
			return out
		case c == ' ':
			endWord()
		case c == '>':
			endCommand()
			words = []string{"(a file)"}
		case strings.IndexByte("|&;()", c) >= 0:
			endCommand()
		default:
			inWord = true
			word.WriteByte(c)
		}
	}
	if quote != 0 {
		t.Fatalf("%s: a quote has no end", line)
	}
	endCommand()
	return out
}

func TestCommandLines(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`gatehouse list --status pending | cut -f1`:        `[["list" "--status" "pending"]]`,
		`id=$(gatehouse propose -f x.json | cut -f1)`:      `[["propose" "-f" "x.json"]]`,
		`gatehouse a && gatehouse b "c d" > file # e`:      `[["a"] ["b" "c d"]]`,
		`eval "$(gatehouse a b)"; gatehouse c`:             `[["a" "b"] ["c"]]`,
		`# gatehouse a`:                                    `[]`,
		`gatehouse propose --rationale 'a "b" c' --set x=`: `[["propose" "--rationale" "a \"b\" c" "--set" "x="]]`,
		`awk '{print $1}' gatehouse`:                       `[]`,
	} {
		if got := fmt.Sprintf("%q", commandLines(t, in)); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}
