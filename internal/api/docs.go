package api

import (
	"embed"
	"net/http"
	"sync"
)

//go:embed assets
var assets embed.FS

// docsPolicy allows the page to load its style sheet and nothing else.
const docsPolicy = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// mountDocs adds the OpenAPI document and the page that shows it. Each is built
// on first request.
func (s *Server) mountDocs(mux *http.ServeMux) {
	style := func() ([]byte, error) { return assets.ReadFile("assets/docs.css") }
	for path, file := range map[string]struct {
		contentType []string
		content     func() ([]byte, error)
	}{
		"/openapi.json":  {headerJSON, sync.OnceValues(s.Document)},
		"/docs":          {[]string{"text/html; charset=utf-8"}, sync.OnceValues(s.docsPage)},
		"/docs/docs.css": {[]string{"text/css; charset=utf-8"}, style},
	} {
		mux.Handle(path, s.readOnly(func(w http.ResponseWriter, _ *http.Request) error {
			b, err := file.content()
			if err != nil {
				return err
			}
			h := w.Header()
			h.Set("Content-Security-Policy", docsPolicy)
			h.Set("Referrer-Policy", "no-referrer")
			writeBytes(w, http.StatusOK, file.contentType, b)
			return nil
		}))
	}
}
