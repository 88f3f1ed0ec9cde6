package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const top = "../../.."

// TestPatchesApply: each bug can still be planted, in the place it was meant
// for, and its test is still there.
func TestPatchesApply(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, b := range bugs() {
		if names[b.name] {
			t.Errorf("%s: listed twice", b.name)
		}
		names[b.name] = true
		planted, err := b.apply(top)
		if err != nil {
			t.Error(err)
			continue
		}
		for file, text := range planted {
			if clean, err := os.ReadFile(filepath.Join(top, file)); err != nil || string(clean) == text {
				t.Errorf("%s: changes nothing in %s (%v)", b.name, file, err)
			}
		}
		test, in, _ := strings.Cut(b.run, "/")
		if b.pkg == browser {
			raw, err := os.ReadFile(filepath.Join(top, browser, "test", test+".test.mjs"))
			if err != nil || !strings.Contains(string(raw), "\ntest("+strconv.Quote(in)) {
				t.Errorf("%s: %s has no %q: %v", b.name, test, in, err)
			}
		} else if !hasTest(t, b.pkg, test) {
			t.Errorf("%s: %s has no %s", b.name, b.pkg, test)
		}
	}
}

func hasTest(t *testing.T, pkg, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(top, pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(raw), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}

// TestEveryInvariantIsBrokenTwice keeps the promise of the list.
func TestEveryInvariantIsBrokenTwice(t *testing.T) {
	t.Parallel()
	broken := map[string]int{}
	for _, b := range bugs() {
		for _, n := range regexp.MustCompile(`\d+`).FindAllString(b.breaks, -1) {
			broken[n]++
		}
	}
	for n := 1; n <= 20; n++ {
		if broken[fmt.Sprint(n)] < 2 {
			t.Errorf("invariant %d is broken by %d of the bugs, want two or more", n, broken[fmt.Sprint(n)])
		}
	}
	if n := len(bugs()); n < 40 {
		t.Errorf("%d bugs, want 40 or more", n)
	}
}

// TestTryDistinguishesCaughtFromMissed tries bugs in a small module.
func TestTryDistinguishesCaughtFromMissed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.test/m\n\ngo 1.26\n",
		"m/m.go": "package m\n\nfunc Two() int { return 2 }\n",
		"m/m_test.go": "package m\n\nimport \"testing\"\n\nfunc TestTwo(t *testing.T) {\n\tif Two() != 2 " +
			"{\n\t\tt.Error(Two())\n\t}\n}\n\nfunc TestBlind(t *testing.T) {}\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	three := plant("two is three", "1", "m/m.go", "return 2", "return 3", "m", "TestTwo")
	if err := sound(t.Context(), dir, []bug{three}); err != nil {
		t.Fatal(err)
	}
	if r, err := try(t.Context(), dir, three); err != nil || !r.caught {
		t.Errorf("a bug that the test sees: %+v, %v", r, err)
	}
	blind := three
	blind.run = "TestBlind"
	if r, err := try(t.Context(), dir, blind); err != nil || r.caught {
		t.Errorf("a bug that the test does not see: %+v, %v", r, err)
	}
	broken := three
	broken.edits = []edit{{"m/m.go", "return 2", "return two"}}
	if _, err := try(t.Context(), dir, broken); err == nil {
		t.Error("a tree that does not build counts as caught")
	}
	gone := three
	gone.edits = []edit{{"m/m.go", "return 7", "return 8"}}
	r, err := try(t.Context(), dir, gone)
	if err == nil {
		t.Error("a patch that does not apply is skipped")
	}
	if text := reportText([]result{r}, time.Now()); !strings.Contains(text, "m/m.go") {
		t.Errorf("the report does not name it: %s", text)
	}
	// The test puts a folder in the place of the file, so that the file cannot be restored.
	moved := plant("two is three, once", "1", "m/kept.go", "return 4", "return 5", "m", "TestFour")
	for name, text := range map[string]string{
		"m/kept.go": "package m\n\nfunc Four() int { return 4 }\n",
		"m/kept_test.go": "package m\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestFour(t *testing.T) {\n" +
			"\tif Four() != 4 {\n\t\tt.Error(os.Remove(\"kept.go\"), os.Mkdir(\"kept.go\", 0o755))\n\t}\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := try(t.Context(), dir, moved); err == nil {
		t.Error("a file that is not restored goes unnoticed")
	}
	for _, name := range []string{"m/kept.go", "m/kept_test.go"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	missing := three
	missing.run = "TestNone"
	if err := sound(t.Context(), dir, []bug{missing}); err == nil {
		t.Error("a missing test counts as passed")
	}
	if clean, err := os.ReadFile(filepath.Join(dir, "m/m.go")); err != nil ||
		!strings.Contains(string(clean), "return 2") {
		t.Errorf("the tree was left with a bug in it: %s, %v", clean, err)
	}
}

// TestNotes: a bug that was caught counts as caught, until its patch differs.
func TestNotes(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "notes")
	b, other := bugs()[0], bugs()[1]
	n, err := openNotes(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []result{{bug: b, caught: true, took: 2 * time.Second}, {bug: other}} {
		if err := n.add(r); err != nil {
			t.Fatal(err)
		}
	}
	if n, err = openNotes(file); err != nil {
		t.Fatal(err)
	}
	if !n.caught(b) || n.took[b.id()] != 2*time.Second || n.caught(other) {
		t.Errorf("noted: %v", n.took)
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, kept[:len(kept)-len("s\n")], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := n.add(result{bug: other, caught: true, took: time.Second}); err != nil {
		t.Fatal(err)
	}
	if n, err = openNotes(file); err != nil {
		t.Fatal(err)
	}
	if n.caught(b) || !n.caught(other) {
		t.Errorf("after a truncated line: %v", n.took)
	}
	b = other
	b.edits = append(slices.Clone(b.edits), edit{"x", "y", "z"})
	if n.caught(b) {
		t.Error("another patch counts as caught")
	}
}
