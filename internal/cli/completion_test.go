package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/term"
)

func completionScript(t *testing.T, shell string) string {
	t.Helper()
	g, out, errOut := testGlobals(t)
	if code := run(*g, []string{"completion", shell}); code != term.ExitDone {
		t.Fatalf("exit code %d: %s", code, errOut)
	}
	path := filepath.Join(t.TempDir(), "completion."+shell)
	must(t, os.WriteFile(path, out.Bytes(), 0o600))
	return path
}

// TestBashCompletion asks bash for its completions.
func TestBashCompletion(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Fatal("bash is not installed, and the completion for it cannot be tried")
	}
	script := completionScript(t, "bash")
	const ask = `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gatehouse; printf '%s\n' ` +
		`"${COMPREPLY[@]}"`
	for _, c := range []struct {
		words string // the words on the line; the last one is completed
		want  []string
		not   []string
	}{
		{"gatehouse ", []string{"propose", "approve", "policy", "serve", "--json"}, []string{"lint", "--status"}},
		{"gatehouse app", []string{"approve", "applied"}, []string{"propose"}},
		{"gatehouse policy ", []string{"lint", "test", "explain"}, []string{"propose"}},
		{"gatehouse policy explain --", []string{"--file", "--policy", "--url"}, []string{"--status"}},
		{"gatehouse list --", []string{"--status", "--all", "--json"}, []string{"--digest"}},
		{"gatehouse list --status ", []string{"pending", "applied"}, []string{"--all"}},
		{"gatehouse list --status p", []string{"pending", "pushing"}, []string{"applied"}},
		{"gatehouse --json push ", []string{"list", "drain", "resolve"}, []string{"propose"}},
		{"gatehouse dev --", []string{"--listen", "--data"}, []string{"--as"}},
		{"gatehouse completion ", []string{"bash", "zsh", "fish"}, nil},
		{"gatehouse policy lint /etc/host", []string{"/etc/hosts"}, nil},
		{"gatehouse connector import /etc/host", []string{"/etc/hosts"}, nil},
		{"gatehouse audit verify /etc/host", []string{"/etc/hosts"}, nil},
		{"gatehouse propose --file /etc/host", []string{"/etc/hosts"}, []string{"--json"}},
		{"gatehouse approve --digest ", nil, []string{"--json", "propose"}},
	} {
		words := strings.Split(c.words, " ")
		cmd := exec.CommandContext(t.Context(), "bash", append([]string{"--norc", "-c", ask, "bash", script}, words...)...)
		b, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", c.words, err, b)
		}
		got := strings.Fields(string(b))
		for _, w := range c.want {
			if !slices.Contains(got, w) {
				t.Errorf("%q does not offer %s: %v", c.words, w, got)
			}
		}
		for _, w := range c.not {
			if slices.Contains(got, w) {
				t.Errorf("%q offers %s", c.words, w)
			}
		}
	}
}

// TestOtherCompletions has zsh and fish parse their scripts, in which every command and flag is.
func TestOtherCompletions(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			path := completionScript(t, shell)
			b, err := os.ReadFile(path)
			must(t, err)
			for _, n := range completions(testParser(t).Model.Node) {
				for _, w := range n.words {
					if !strings.Contains(string(b), strings.TrimLeft(w.word, "-")) {
						t.Errorf("%s of %q is missing", w.word, n.path)
					}
				}
			}
			if quotes := strings.Count(string(b), "'"); quotes%2 != 0 {
				t.Errorf("%d single quotes: one has no end", quotes)
			}
			if out, err := exec.CommandContext(t.Context(), shell, "-n", path).CombinedOutput(); err != nil {
				t.Errorf("%s does not parse it: %v: %s; scripts/tools installs the shell", shell, err, out)
			}
		})
	}
}
