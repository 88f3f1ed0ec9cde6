package console_test

import (
	"io/fs"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/docs"
)

var (
	docLink = regexp.MustCompile(`<a href="([^"]+)"`)
	anchor  = regexp.MustCompile(`<a href="#[^"]+" class="anchor"`)
)

// TestDocs: a signed-in person can read each page of the documentation, and each of its links leads to a page
// and, if it names a section, to a heading. So do the links of the catalogue.
func TestDocs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	root := w.signIn("root-too", gatehouse.RoleAdmin)
	bodies := map[string]string{}
	read := func(path string) string {
		if _, ok := bodies[path]; !ok {
			bodies[path] = root.get(path).want(http.StatusOK).body
		}
		return bodies[path]
	}
	follow := func(from, body string) {
		for _, m := range docLink.FindAllStringSubmatch(body, -1) {
			u, err := url.Parse(m[1])
			if err != nil || u.IsAbs() && u.Scheme != "https" && u.Scheme != "mailto" {
				t.Errorf("%s: %s, %v", from, m[1], err)
			}
			if u.Path == "" {
				u.Path = from
			}
			if u.Host != "" || !strings.HasPrefix(u.Path, "/docs/") {
				continue
			}
			if body := read(u.Path); u.Fragment != "" && !strings.Contains(body, `id="`+u.Fragment+`"`) {
				t.Errorf("%s: no heading for %s", from, m[1])
			}
		}
	}
	pages := 0
	err := fs.WalkDir(docs.Pages, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		pages++
		at := "/docs/" + strings.TrimSuffix(path, ".md")
		body := read(at)
		main := body[strings.Index(body, `data-testid="doc"`):]
		follow(at, main)
		for _, bad := range []string{"raw HTML omitted", "<img", "]("} {
			if i := strings.Index(main, bad); i >= 0 {
				t.Errorf("%s has %s: …%.80s", at, bad, main[max(0, i-60):])
			}
		}
		if !anchor.MatchString(main) {
			t.Errorf("%s has no linked heading", at)
		}
		return nil
	})
	if err != nil || pages < 40 {
		t.Errorf("%d pages, %v", pages, err)
	}
	follow("/settings/connectors", read("/settings/connectors"))

	if end := root.get("/docs/").want(http.StatusOK); end.url.Path != "/docs/README" {
		t.Errorf("/docs/ leads to %s", end.url)
	}
	for _, path := range []string{"/docs/nothing", "/docs/decisions/0009-console", "/docs/docs.go", "/docs/..%2fREADME"} {
		root.get(path).want(http.StatusNotFound)
	}
	w.signIn("will", gatehouse.RoleWorker).get("/docs/connectors/jira").want(http.StatusOK).
		has(`<h2 id="set-up"><a href="#set-up" class="anchor">Set up</a></h2>`,
			`href="/docs/connectors#connectors-to-one-system"`)
	if end := w.stranger().get("/docs/connectors/jira"); end.url.Path != "/signin" {
		t.Errorf("without signing in, the page leads to %s", end.url)
	}
}
