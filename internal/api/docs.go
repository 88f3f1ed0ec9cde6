package api

import (
	"embed"
	"net/http"
	"sync"
)

//go:embed assets
var assets embed.FS

// docsPolicy lets the page run its own script and read the document, and
// nothing else.
const docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// mountDocs adds the OpenAPI document and the page that shows it. The
// document is made when it is first asked for.
func (s *Server) mountDocs(mux *http.ServeMux) {
	doc := sync.OnceValues(s.Document)
	mux.Handle("/openapi.json", s.readOnly(func(w http.ResponseWriter, _ *http.Request) error {
		b, err := doc()
		if err != nil {
			return err
		}
		writeBytes(w, http.StatusOK, headerJSON, b)
		return nil
	}))
	for path, file := range map[string]struct{ name, contentType string }{
		"/docs":          {"assets/docs.html", "text/html; charset=utf-8"},
		"/docs/docs.js":  {"assets/docs.js", "text/javascript; charset=utf-8"},
		"/docs/docs.css": {"assets/docs.css", "text/css; charset=utf-8"},
	} {
		mux.Handle(path, s.readOnly(func(w http.ResponseWriter, _ *http.Request) error {
			b, err := assets.ReadFile(file.name)
			if err != nil {
				return err
			}
			h := w.Header()
			h.Set("Content-Security-Policy", docsPolicy)
			h.Set("Referrer-Policy", "no-referrer")
			writeBytes(w, http.StatusOK, []string{file.contentType}, b)
			return nil
		}))
	}
	mux.Handle("/docs/", s.plain(s.notFound))
}
