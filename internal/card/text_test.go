package card_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

// linesOf returns the lines of blocks as a page shows them: a fold as its number of lines.
func linesOf(blocks []card.Block) []string {
	var out []string
	for _, b := range blocks {
		if b.Folded {
			out = append(out, fmt.Sprintf("… %d", len(b.Lines)))
			continue
		}
		for _, l := range b.Lines {
			s := fmt.Sprintf("%d,%d %s %s", l.Before, l.After, l.Kind, l.Text)
			if l.Open {
				s += " (open)"
			}
			out = append(out, s)
		}
	}
	return out
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

func TestCompareTextFolds(t *testing.T) {
	t.Parallel()
	before := numbered(20)
	after := strings.Replace(before, "line 10\n", "line ten\nand a half\n", 1)
	text := card.CompareText(before, after)
	want := []string{
		"… 6", "7,7 context line 7", "8,8 context line 8", "9,9 context line 9", "10,0 removed line 10",
		"0,10 added line ten", "0,11 added and a half",
		"11,12 context line 11", "12,13 context line 12", "13,14 context line 13", "… 7",
	}
	if d := cmp.Diff(want, linesOf(text.Blocks)); d != "" {
		t.Error(d)
	}
	if text.Added != 2 || text.Removed != 1 {
		t.Errorf("+%d -%d", text.Added, text.Removed)
	}
	// What only one text ends in is a change of its last line.
	for _, c := range []struct {
		before, after string
		want          []string
	}{
		{"a\nx", "a\nx\n", []string{"1,1 context a", "2,0 removed x (open)", "0,2 added x"}},
		{"a\nx\n", "a\nx", []string{"1,1 context a", "2,0 removed x", "0,2 added x (open)"}},
		{"x", "y\n", []string{"1,0 removed x (open)", "0,1 added y"}},
		{"x", "x\ny\n", []string{"1,0 removed x (open)", "0,1 added x", "0,2 added y"}},
		{"x\ny\n", "x", []string{"1,0 removed x", "0,1 added x (open)", "2,0 removed y"}},
		{"x", "x\ny", []string{"1,1 context x", "0,2 added y"}},
		{"", "x", []string{"0,1 added x"}},
	} {
		if d := cmp.Diff(c.want, linesOf(card.CompareText(c.before, c.after).Blocks)); d != "" {
			t.Errorf("%q, %q: %s", c.before, c.after, d)
		}
	}
	// A single line is not folded.
	text = card.CompareText("a\nb\nc\nd\ne\n", "a\nb\nc\nd\nE\n")
	if got := linesOf(text.Blocks)[0]; got != "1,1 context a" {
		t.Errorf("begins with %s", got)
	}
	// Removing the final line feed changes the last line; appending a line to a text without one does not.
	want = []string{"1,0 removed a", "0,1 added a (open)"}
	if d := cmp.Diff(want, linesOf(card.CompareText("a\n", "a").Blocks)); d != "" {
		t.Error(d)
	}
	want = []string{"1,1 context a", "0,2 added b"}
	if d := cmp.Diff(want, linesOf(card.CompareText("a", "a\nb").Blocks)); d != "" {
		t.Error(d)
	}
}

func TestCompareTextLosesNothing(t *testing.T) {
	t.Parallel()
	lines := rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c\r", "", "\x00", "+x", "-x"}), 0, 40),
		func(l []string) string { return strings.Join(l, "\n") })
	rapid.Check(t, func(t *rapid.T) {
		before, after := lines.Draw(t, "before"), lines.Draw(t, "after")
		text := card.CompareText(before, after)
		if before != after && text.Added+text.Removed == 0 {
			t.Fatalf("%q and %q show no difference", before, after)
		}
		if x, y := text.Sides(); x != before || y != after {
			t.Fatalf("got %q and %q, want %q and %q", x, y, before, after)
		}
		for i, b := range text.Blocks {
			for _, l := range b.Lines {
				if b.Folded && l.Kind != card.Context {
					t.Fatalf("a %s line is folded", l.Kind)
				}
			}
			if len(b.Lines) == 0 || b.Folded && len(b.Lines) < 2 || i > 0 && b.Folded == text.Blocks[i-1].Folded {
				t.Fatalf("block %d has %d lines, folded %v", i, len(b.Lines), b.Folded)
			}
		}
	})
}

const gitDiff = `diff --git a/prices.csv b/prices.csv
index 1..2 100644
--- a/prices.csv
+++ b/prices.csv
@@ -1,3 +1,4 @@ head
 sku,price
-A,1.00
+A,2.00
+--- B,3.00
 C,9.00
@@ -10 +11,0 @@
-last
\ No newline at end of file
diff --git a/new b/new
new file mode 100644
--- /dev/null
+++ b/new
@@ -0,0 +1,2 @@
+one
+two
`

func TestParseUnified(t *testing.T) {
	t.Parallel()
	a := card.ParseUnified(gitDiff)
	if a.Plain != "" || a.Added != 4 || a.Removed != 2 {
		t.Fatalf("%q, +%d -%d", a.Plain, a.Added, a.Removed)
	}
	want := []string{
		"0,0 header diff --git a/prices.csv b/prices.csv", "0,0 header index 1..2 100644", "0,0 header --- a/prices.csv",
		"0,0 header +++ b/prices.csv",
		"0,0 header @@ -1,3 +1,4 @@ head", "1,1 context sku,price", "2,0 removed A,1.00", "0,2 added A,2.00",
		"0,3 added --- B,3.00", "3,4 context C,9.00",
		"0,0 header @@ -10 +11,0 @@", "10,0 removed last", `0,0 header \ No newline at end of file`,
		"0,0 header diff --git a/new b/new", "0,0 header new file mode 100644", "0,0 header --- /dev/null",
		"0,0 header +++ b/new",
		"0,0 header @@ -0,0 +1,2 @@", "0,1 added one", "0,2 added two",
	}
	if d := cmp.Diff(want, linesOf(a.Blocks)); d != "" {
		t.Error(d)
	}
}

// TestMalformedDiffIsPlain: a text that is not a diff is shown unchanged, and no line is read as a
// comment.
func TestMalformedDiffIsPlain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, why string }{
		{"empty", "", "there is no hunk"},
		{"prose", "change the price\nof the lamp\n", "there is no hunk"},
		{"a change outside of a hunk", "@@ -1 +1 @@\n-a\n+b\n+and c\n", "line 4 looks like a change, but is in no hunk"},
		{"a change before the first hunk", "-hidden\n@@ -1 +1 @@\n-a\n+b\n", "line 1 looks like a change, but is in no hunk"},
		{"a context line after the hunk", "@@ -1 +1 @@\n-a\n+b\n c\n", "line 4 looks like a change, but is in no hunk"},
		{"the counts are too large", "@@ -1,3 +1,3 @@\n-a\n+b\n", "the hunk at line 1 ends too early"},
		{"the counts hide the rest", "@@ -1 +1 @@\n-a\n-b\n+c\n", "the hunk at line 1 has more lines than it says"},
		{"no mark", "@@ -1,2 +1,2 @@\n-a\n+b\nc\n", "line 4 does not begin with a space, +, - or \\"},
		{"a stripped line", "@@ -1,2 +1,2 @@\n-a\n+b\n\n", "line 4 does not begin with a space, +, - or \\"},
		{"no counts", "@@ a @@\n", "line 1 is not a hunk header"},
		{"an empty hunk", "@@ -1,0 +1,0 @@\n", "line 1 is not a hunk header"},
		{"huge counts", "@@ -1,99999999999999999999 +1 @@\n", "line 1 is not a hunk header"},
		{"signs in counts", "@@ -+1 +1 @@\n-a\n+b\n", "line 1 is not a hunk header"},
		{"a file header without a hunk", "--- a\n+++ b\nx\n", "line 1 looks like a change, but is in no hunk"},
		{"a combined diff", "@@@ -1 -1 +1 @@@\n", "line 1 is not a hunk header"},
	} {
		a := card.ParseUnified(c.text)
		if a.Plain != c.why {
			t.Errorf("%s: got %q, want %q", c.name, a.Plain, c.why)
		}
		checkArtifact(t, c.text, a)
	}
}

// checkArtifact checks that the lines of an artifact give the text again, and that its counts are right.
func checkArtifact(t interface{ Fatalf(string, ...any) }, text string, a card.Artifact) {
	var b strings.Builder
	added, removed := 0, 0
	for _, block := range a.Blocks {
		if len(block.Lines) == 0 || block.Folded {
			t.Fatalf("%q has an empty or a folded block", text)
		}
		for _, l := range block.Lines {
			switch {
			case (l.Kind == card.Plain) != (a.Plain != ""):
				t.Fatalf("%q has a %s line, but Plain is %q", text, l.Kind, a.Plain)
			case l.Kind == card.Plus:
				added++
			case l.Kind == card.Minus:
				removed++
			case l.Kind == card.Header &&
				(strings.HasPrefix(l.Text, "+") && !strings.HasPrefix(l.Text, "+++ ") || strings.HasPrefix(l.Text, "-") &&
					!strings.HasPrefix(l.Text, "--- ")):
				t.Fatalf("%q: the change %q is read as a comment", text, l.Text)
			}
			b.WriteString(l.Raw())
			if !l.Open {
				b.WriteByte('\n')
			}
		}
	}
	if b.String() != text {
		t.Fatalf("the lines of %q give %q", text, b.String())
	}
	if added != a.Added || removed != a.Removed {
		t.Fatalf("%q: the artifact says +%d -%d, its lines are +%d -%d", text, a.Added, a.Removed, added, removed)
	}
}

func TestParseUnifiedReadsGeneratedDiffs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "-b", "+c", "@@ -1 +1 @@", "--- x", `\ d`, ""}), 1,
			20).Draw(t, "lines")
		var b strings.Builder
		olds, news := 0, 0
		for _, l := range lines {
			mark := rapid.SampledFrom([]string{" ", "+", "-"}).Draw(t, "mark")
			if mark != "+" {
				olds++
			}
			if mark != "-" {
				news++
			}
			b.WriteString(mark + l + "\n")
		}
		text := fmt.Sprintf("--- a\n+++ b\n@@ -1,%d +1,%d @@\n%s", olds, news, b.String())
		a := card.ParseUnified(text)
		if a.Plain != "" {
			t.Fatalf("%q: %s", text, a.Plain)
		}
		checkArtifact(t, text, a)
	})
}

func TestArtifactClaims(t *testing.T) {
	t.Parallel()
	n := func(i int) *int { return &i }
	if a := card.ParseArtifact(nil); a != nil {
		t.Error("nil gives an artifact")
	}
	a := card.ParseArtifact(&gatehouse.ArtifactDiff{Text: gitDiff, LinesAdded: n(4), LinesRemoved: n(2)})
	if a.Claim != "" {
		t.Error(a.Claim)
	}
	a = card.ParseArtifact(&gatehouse.ArtifactDiff{Text: gitDiff, LinesAdded: n(1), LinesRemoved: n(0)})
	if want := "the proposer says 1 line added, there are 4; the proposer says 0 lines removed, there are 2"; a.Claim != want {
		t.Errorf("got %q, want %q", a.Claim, want)
	}
}

func FuzzParseUnified(f *testing.F) {
	f.Add(gitDiff)
	f.Add("@@ -1 +1 @@\n-a\n+b\n+and c\n")
	f.Add("--- a\n+++ b\n@@ -1,2 +1 @@\n a\n-b")
	for _, h := range hostileTexts(f) {
		f.Add(h.Text)
	}
	f.Fuzz(func(t *testing.T, text string) { checkArtifact(t, text, card.ParseUnified(text)) })
}

func TestDuration(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d    time.Duration
		want string
	}{
		{-time.Hour, "0 s"}, {0, "0 s"}, {999 * time.Millisecond, "0 s"}, {time.Second, "1 s"},
		{59900 * time.Millisecond, "59 s"}, {time.Minute, "1 min"},
		{3*time.Minute + 59*time.Second, "3 min"}, {time.Hour, "1 h"}, {2*time.Hour + 5*time.Minute, "2 h 05 min"},
		{24 * time.Hour, "1 d"},
		{4*24*time.Hour + 3*time.Hour + time.Minute, "4 d 3 h"}, {48*time.Hour + 59*time.Minute, "2 d"},
	} {
		if got := card.Duration(c.d); got != c.want {
			t.Errorf("%s: got %q, want %q", c.d, got, c.want)
		}
	}
}
