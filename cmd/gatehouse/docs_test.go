package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// testParser parses command lines without running anything.
func testParser(t *testing.T) *kong.Kong {
	t.Helper()
	g, _, _ := testGlobals(t)
	k, err := newParser(&cli{Globals: *g})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestDocs parses each command line of the page, and wants each command on it.
func TestDocs(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	fenced := false
	for n, line := range strings.Split(string(src), "\n") {
		if strings.HasPrefix(line, "```") {
			fenced = line == "```sh"
			continue
		}
		if !fenced {
			continue
		}
		for _, args := range commandLines(t, line) {
			parsed, err := testParser(t).Parse(args)
			if err != nil {
				t.Errorf("docs/cli.md:%d: %q: %v", n+1, args, err)
				continue
			}
			seen[strings.TrimSpace(parsed.Selected().Path())] = true
		}
	}
	for _, leaf := range testParser(t).Model.Leaves(true) {
		if path := strings.TrimSpace(leaf.Path()); !seen[path] {
			t.Errorf("docs/cli.md does not show gatehouse %s", path)
		}
	}
}

// TestHelp wants a help with an example for each command, and parses it.
func TestHelp(t *testing.T) {
	t.Parallel()
	for _, leaf := range testParser(t).Model.Leaves(true) {
		path := strings.Fields(leaf.Path())
		g, out, errOut := testGlobals(t)
		if code := run(*g, append(path, "--help")); code != exitDone || errOut.Len() > 0 {
			t.Errorf("%v --help: exit code %d, %q on stderr", path, code, errOut)
		}
		if !strings.HasPrefix(out.String(), "Usage: gatehouse "+strings.Join(path, " ")) {
			t.Errorf("%v --help prints %q", path, out)
		}
		if leaf.Help == "" {
			t.Errorf("%v has no line of help", path)
		}
		detail := leaf.Detail
		if leaf.Parent.DefaultCmd == leaf {
			detail += leaf.Parent.Detail
		}
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
				parsed, err := testParser(t).Parse(args)
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

// TestEveryCommandTakesJSON: the flag is a global one, and no command hides it.
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
			t.Errorf("%s does not take --json", leaf.FullPath())
		}
	}
}

// commandLines finds the calls of gatehouse in a line for a shell, and splits
// them into arguments as the shell would, without expanding anything.
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
