package console_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/console"
)

// maxAssets limits the compressed size of the files that a browser fetches for its first page,
// without the page itself.
const maxAssets = 100_000

// TestAssetsFitTheBudget fetches every file that a page names, and the font, as a browser does.
func TestAssetsFitTheBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	page := w.signIn("ana", gatehouse.RoleApprover).get("/inbox").want(http.StatusOK)
	seen := make(map[string]bool)
	total := 0
	for _, m := range regexp.MustCompile(`(?:href|src)="(/assets/[^"]+)"`).FindAllStringSubmatch(page.body, -1) {
		if seen[m[1]] {
			continue
		}
		seen[m[1]] = true
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.server.URL+m[1], http.NoBody)
		must(t, err)
		r.Header.Set("Accept-Encoding", "gzip, br")
		res, err := w.server.Client().Do(r)
		must(t, err)
		body, err := io.ReadAll(res.Body)
		must(t, res.Body.Close())
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d, %v", m[1], res.StatusCode, err)
		}
		if text := strings.HasSuffix(m[1], ".css") ||
			strings.HasSuffix(m[1], ".js"); text != (res.Header.Get("Content-Encoding") == "gzip") {
			t.Errorf("%s has the content encoding %q", m[1], res.Header.Get("Content-Encoding"))
		}
		if res.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s varies by %q", m[1], res.Header.Get("Vary"))
		}
		total += len(body)
	}
	if len(seen) < 6 {
		t.Errorf("the page names only %d files", len(seen))
	}
	if total > maxAssets {
		t.Errorf("the files are %d bytes, more than %d", total, maxAssets)
	}
	t.Logf("%d files, %d bytes", len(seen), total)
}

// TestAssetsArePlainWithoutGzip sends Accept-Encoding headers that exclude gzip, and some that accept it.
func TestAssetsArePlainWithoutGzip(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := regexp.MustCompile(`/assets/[0-9a-f]+/console\.css`).FindString(w.stranger().get("/signin").body)
	for accept, packed := range map[string]bool{
		"": false, "identity": false, "gzip;q=0": false, "gzip; q=0.0": false, "br, deflate": false, "xgzip": false,
		"gzip": true, "GZIP;q=0.5": true, "br, gzip ;q=1": true,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.server.URL+path, http.NoBody)
		must(t, err)
		r.Header.Set("Accept-Encoding", accept)
		res, err := w.server.Client().Do(r)
		must(t, err)
		_ = res.Body.Close()
		if got := res.Header.Get("Content-Encoding") == "gzip"; got != packed {
			t.Errorf("Accept-Encoding %q: gzip is %t", accept, got)
		}
	}
}

// TestSheetsUseTokens: every colour, text size, weight and shadow in the sheets is a token. A
// literal value would not change with the theme, and would be missing from the design page.
func TestSheetsUseTokens(t *testing.T) {
	t.Parallel()
	colour := regexp.MustCompile(`#[0-9a-fA-F]{3,8}\b|\b(rgba?|hsla?|oklch|light-dark)\(`)
	size := regexp.MustCompile(`font-size: *([^;}]+)`)
	weight := regexp.MustCompile(`font-weight: *([^;}]+)`)
	shadow := regexp.MustCompile(`box-shadow: *([^;}]+)`)
	files, err := filepath.Glob("assets/*.css")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		must(t, err)
		text := string(raw)
		if head, rest, ok := strings.Cut(text, "\n:root {\n"); ok {
			_, after, _ := strings.Cut(rest, "\n}\n")
			_, head, _ = strings.Cut(head, "\n}\n") // skip the font face
			text = head + after
		}
		for _, line := range strings.Split(text, "\n") {
			if m := colour.FindString(line); m != "" {
				t.Errorf("%s: a colour that is not a token: %s", name, line)
			}
			for _, m := range size.FindAllStringSubmatch(line, -1) {
				if !strings.HasPrefix(m[1], "var(--t-") && m[1] != "inherit" && m[1] != "100%" && !strings.HasSuffix(m[1], "em") {
					t.Errorf("%s: a font-size that is not a token: %s", name, line)
				}
				if strings.HasSuffix(m[1], "rem") {
					t.Errorf("%s: a font-size in rem: %s", name, line)
				}
			}
			for _, m := range weight.FindAllStringSubmatch(line, -1) {
				if !strings.HasPrefix(m[1], "var(--w-") {
					t.Errorf("%s: a font-weight that is not a token: %s", name, line)
				}
			}
			for _, m := range shadow.FindAllStringSubmatch(line, -1) {
				if !strings.HasPrefix(m[1], "var(--e") && !strings.HasPrefix(m[1], "inset ") && m[1] != "none" &&
					!strings.Contains(m[1], "0 0 0 1px var(") {
					t.Errorf("%s: a box-shadow that is not a token: %s", name, line)
				}
			}
		}
	}
}

// TestDesign: the page shows every token of the sheet, and only a development server serves it.
func TestDesign(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.stranger().get("/console/design").want(http.StatusNotFound)
	cfg := w.config
	cfg.Development = true
	pages, err := console.New(cfg)
	must(t, err)
	w.server.Config.Handler = pages
	page := w.stranger().get("/console/design").want(http.StatusOK)
	page.headers()
	raw, err := os.ReadFile("assets/console.css")
	must(t, err)
	_, rest, _ := strings.Cut(string(raw), "\n:root {\n")
	rest, _, _ = strings.Cut(rest, "\n}\n")
	sheet := w.stranger().get("/console/design/samples.css").want(http.StatusOK)
	names := regexp.MustCompile(`(?m)^\s*(--[a-z0-9-]+):`).FindAllStringSubmatch(rest, -1)
	if len(names) < 40 {
		t.Fatalf("the sheet has only %d tokens", len(names))
	}
	for _, m := range names {
		page.has("<code>" + m[1] + "</code>")
		if !strings.Contains(sheet.body, ".sample"+m[1]+" {") {
			t.Errorf("the sheet of samples lacks %s", m[1])
		}
	}
}
