package audit_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
)

// fenced returns the code blocks of a language in docs/evidence.md.
func fenced(t *testing.T, language string) []string {
	t.Helper()
	doc, err := os.ReadFile(filepath.FromSlash("../../docs/evidence.md"))
	must(t, err)
	var blocks []string
	for _, part := range strings.Split(string(doc), "\n```"+language+"\n")[1:] {
		code, _, _ := strings.Cut(part, "\n```\n")
		blocks = append(blocks, code+"\n")
	}
	if len(blocks) == 0 {
		t.Fatalf("docs/evidence.md has no %s", language)
	}
	return blocks
}

// script returns Python and the program that the page names. Python is required, without a
// skip: the page promises an independent implementation.
func script(t *testing.T) (python, path string) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatalf("this test runs the program of docs/evidence.md: install python3 (%v)", err)
	}
	return python, filepath.FromSlash("../../examples/evidence/verify.py")
}

// run runs the program and returns its output, and whether it succeeded.
func run(t *testing.T, python, path string, stdin []byte, args ...string) (string, bool) {
	t.Helper()
	cmd := exec.Command(python, append([]string{path}, args...)...)
	cmd.Stdin = bytes.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); err != nil && code != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out)), err == nil
}

// TestWorkedExample checks the page's example with this package and with verify.py.
func TestWorkedExample(t *testing.T) {
	t.Parallel()
	examples := fenced(t, "json")
	var entries []*gatehouse.Entry
	for line := range strings.Lines(examples[0]) {
		e := new(gatehouse.Entry)
		must(t, json.Unmarshal([]byte(line), e))
		if got := audit.LeafHash(e.Body); got != e.LeafHash {
			b, _ := got.MarshalText()
			t.Errorf("entry %d: leaf hash %s", e.Index, b)
		}
		entries = append(entries, e)
	}
	var head gatehouse.LogHead
	must(t, json.Unmarshal([]byte(examples[1]), &head))
	if r, err := audit.VerifyEntries(sequence(entries), head); err != nil || r.Err() != nil || r.Found != 3 {
		t.Errorf("%v, %v", err, r.Err())
	}
	python, path := script(t)
	root, _ := head.Root.MarshalText()
	if got, ok := run(t, python, path, []byte(examples[0])); !ok || got != "3 "+string(root) {
		t.Errorf("verify.py says %q", got)
	}
}

// TestEvidenceProgram runs the page's program on a log of unusual leaves, in each
// export format, intact and tampered with.
func TestEvidenceProgram(t *testing.T) {
	t.Parallel()
	python, path := script(t)
	data := []string{
		`{"z":1.00,"a":1e400,"n":-0,"i":1234567890123456789,"t":[true,false,null,{},[]]}`,
		`{"text":"<b>&\u2028\u2029\u0000\u001f\u007f\"\\\/\b\f\n\r\t é 😀"}`,
		`{"\ue000":1,"😀":2,"é":3,"":4,"\u0001":5}`, // UTF-16 order is not code point order
	}
	var entries []*gatehouse.Entry
	var tree audit.Tree
	var heads []string
	for i := range 37 {
		heads = append(heads, headText(&tree))
		l := gatehouse.Leaf{ID: fmt.Sprintf("leaf_%d", i), Tenant: "acme", Type: "hitl.approved", Subject: "act_1",
			Actor: "ana"}
		must(t, l.Data.UnmarshalJSON([]byte(data[i%len(data)])))
		e := &gatehouse.Entry{Index: int64(i), Body: gatehouse.MustJSON(l)}
		e.LeafHash = audit.LeafHash(e.Body)
		tree.Append(e.LeafHash, nil)
		entries = append(entries, e)
	}
	want := headText(&tree)

	lines := func(entries []*gatehouse.Entry) []byte {
		var out bytes.Buffer
		enc := json.NewEncoder(&out) // escapes HTML, as many do
		for _, e := range entries {
			must(t, enc.Encode(e))
		}
		return out.Bytes()
	}
	var pages bytes.Buffer
	for from := 0; from < len(entries); from += 10 {
		page := gatehouse.Page[*gatehouse.Entry]{Items: entries[from:min(from+10, len(entries))]}
		b, err := json.MarshalIndent(page, "", "\t")
		must(t, err)
		pages.Write(b)
	}
	changed := bytes.Replace(lines(entries), []byte("leaf_20"), []byte("leaf_02"), 1)
	removed := lines(append(entries[:5:5], entries[6:]...))
	rewritten := entries[:30:30]
	rewritten = append(rewritten, rehash(&gatehouse.Entry{Index: 30, Body: "{}"}))
	rewritten = append(rewritten, entries[31:]...)

	for _, tt := range []struct {
		name  string
		stdin []byte
		kept  string // head, "" for none
		ok    bool
		says  string
	}{
		{"lines", lines(entries), "", true, want},
		{"pages", pages.Bytes(), "", true, want},
		{"nothing", nil, "", true, heads[0]},
		{"kept whole", lines(entries), want, true, want},
		{"kept early", lines(entries), heads[11], true, want},
		{"kept empty", lines(entries), heads[0], true, want},
		{"changed", changed, "", false, "entry 20: its bytes give "},
		{"removed", removed, "", false, "entry 5 is missing"},
		{"rewritten, kept before", lines(rewritten), heads[30], true, "37 "},
		{"rewritten, kept after", lines(rewritten), heads[31], false, "the first 31 entries give "},
		{"cut off", lines(entries[:36]), want, false, "37 entries and the root "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, ok := run(t, python, path, tt.stdin, strings.Fields(tt.kept)...)
			if ok != tt.ok || !strings.HasPrefix(got, tt.says) {
				t.Errorf("succeeded: %v, says %q; want %v, %q", ok, got, tt.ok, tt.says)
			}
		})
	}
}

// headText is a tree's head as the program prints and takes it.
func headText(tree *audit.Tree) string {
	root := tree.Root()
	b, _ := root.MarshalText()
	return fmt.Sprintf("%d %s", tree.Size(), b)
}
