package api

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

func TestDocsPageLoadsOnlyItsStyle(t *testing.T) {
	t.Parallel()
	s := newServer(t, newFake())
	for path, contentType := range map[string]string{"/docs": "text/html; charset=utf-8",
		"/docs/docs.css": "text/css; charset=utf-8"} {
		w := request{path: path}.send(s)
		h := w.Header()
		if w.Code != http.StatusOK || h.Get("Content-Type") != contentType || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", path, w.Code, h)
		}
		policy := h.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "style-src 'self'", "frame-ancestors 'none'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: policy %q", path, policy)
			}
		}
		for _, forbidden := range []string{"http://", "https://", "style=", "<script", "onclick"} {
			if strings.Contains(w.Body.String(), forbidden) {
				t.Errorf("%s holds %s", path, forbidden)
			}
		}
	}
	wantCode(t, request{path: "/docs/other"}.send(s), gatehouse.CodeNotFound)
}

// TestDocsPageShowsTheDocument checks the anchor of each operation, error code
// and schema, and follows each link within the page.
func TestDocsPageShowsTheDocument(t *testing.T) {
	t.Parallel()
	s := newServer(t, newFake())
	doc, _ := readDocument(t, s)
	page := request{path: "/docs"}.send(s).Body.String()

	anchors := make(map[string]bool)
	for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if anchors[m[1]] {
			t.Errorf("two parts of the page have the anchor %s", m[1])
		}
		anchors[m[1]] = true
	}
	var want []string
	for _, item := range doc.Paths {
		for _, op := range item {
			want = append(want, op.OperationID)
		}
	}
	for name := range doc.Components.Schemas {
		want = append(want, "schema-"+name)
	}
	for _, code := range gatehouse.Codes() {
		want = append(want, strings.TrimPrefix(problemType(code), "/docs#"))
	}
	for _, id := range want {
		if !anchors[id] {
			t.Errorf("the page has no anchor %s", id)
		}
	}
	for _, m := range regexp.MustCompile(` href="#([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if !anchors[m[1]] {
			t.Errorf("the link to #%s leads nowhere", m[1])
		}
	}
}

// TestDocumentHoldsTogether checks that the document defines everything that an operation names.
// TestEveryReferenceResolves follows the references.
func TestDocumentHoldsTogether(t *testing.T) {
	t.Parallel()
	doc, _ := readDocument(t, newServer(t, newFake()))
	var tags []string
	for _, tag := range doc.Tags {
		tags = append(tags, tag.Name)
	}
	for path, item := range doc.Paths {
		for method, op := range item {
			name := method + " " + path
			for _, tag := range op.Tags {
				if !slices.Contains(tags, tag) {
					t.Errorf("%s: the tag %s is not defined", name, tag)
				}
			}
			for _, requirement := range op.Security {
				for scheme := range requirement {
					if doc.Components.SecuritySchemes[scheme] == nil {
						t.Errorf("%s: the security scheme %s is not defined", name, scheme)
					}
				}
			}
			for _, m := range pathParam.FindAllStringSubmatch(path, -1) {
				declared := false
				for _, p := range op.Parameters {
					declared = declared || p.In == "path" && p.Name == m[1] && p.Required
				}
				if !declared {
					t.Errorf("%s: the parameter %s is not declared", name, m[1])
				}
			}
			if op.RequestBody != nil {
				for media, content := range op.RequestBody.Content {
					if len(content.Schema) == 0 {
						t.Errorf("%s: the body of type %s has no schema", name, media)
					}
				}
			}
			for status, r := range op.Responses {
				for media, content := range r.Content {
					if len(content.Schema) == 0 {
						t.Errorf("%s: the answer %s of type %s has no schema", name, status, media)
					}
				}
			}
		}
	}
}
