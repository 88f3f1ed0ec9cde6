package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	pageLink    = regexp.MustCompile(`\]\(([^()\s]*)\)`)
	pageFence   = regexp.MustCompile("(?ms)^```.*?^```$")
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestPageLinks follows each relative link of each page to a file and, in a page, to a
// heading.
func TestPageLinks(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("git", "-C", "../..", "ls-files", "--cached", "--others", "--exclude-standard",
		"*.md").Output()
	must(t, err)
	pages := strings.Fields(string(out))
	if len(pages) < 50 {
		t.Fatalf("%d pages", len(pages))
	}
	for _, page := range pages {
		path := filepath.Join("../..", page)
		for _, m := range pageLink.FindAllStringSubmatch(pageText(t, path), -1) {
			file, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(file, ":") {
				continue // another site
			}
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: nothing is at %s", page, m[1])
			} else if anchor != "" && !hasHeading(pageText(t, target), anchor) {
				t.Errorf("%s: no heading for %s", page, m[1])
			}
		}
	}
}

// pageText returns a page without its code blocks.
func pageText(t *testing.T, path string) string {
	t.Helper()
	src, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return "" // deleted, and still in the index
	}
	must(t, err)
	return pageFence.ReplaceAllString(string(src), "")
}

// hasHeading reports whether a page has a heading with this anchor on GitHub.
func hasHeading(text, anchor string) bool {
	for line := range strings.Lines(text) {
		title := strings.TrimLeft(line, "#")
		if title == line || !strings.HasPrefix(title, " ") {
			continue
		}
		words := notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
		if strings.ReplaceAll(words, " ", "-") == anchor {
			return true
		}
	}
	return false
}
