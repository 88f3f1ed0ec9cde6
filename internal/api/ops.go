package api

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/gatehouse-dev/gatehouse"
)

// mountOps adds what needs no key: health, metrics, document and its page.
func (s *Server) mountOps(mux *http.ServeMux) {
	mux.Handle("/healthz", s.readOnly(func(w http.ResponseWriter, _ *http.Request) error {
		writeBytes(w, http.StatusOK, headerJSON, []byte(`{"status":"ok"}`))
		return nil
	}))
	mux.Handle("/readyz", s.readOnly(func(w http.ResponseWriter, r *http.Request) error {
		if s.cfg.Ready != nil {
			if err := s.cfg.Ready(r.Context()); err != nil {
				return gatehouse.E(gatehouse.CodeBusy, "not ready").Because(err)
			}
		}
		writeBytes(w, http.StatusOK, headerJSON, []byte(`{"status":"ready"}`))
		return nil
	}))
	if s.cfg.Gatherer != nil {
		prom := promhttp.HandlerFor(s.cfg.Gatherer, promhttp.HandlerOpts{})
		mux.Handle("/metrics", s.readOnly(func(w http.ResponseWriter, r *http.Request) error {
			prom.ServeHTTP(w, r)
			return nil
		}))
	}
	s.mountDocs(mux)
}

// readOnly is plain for GET and HEAD.
func (s *Server) readOnly(fn func(http.ResponseWriter, *http.Request) error) http.Handler {
	return s.plain(func(w http.ResponseWriter, r *http.Request) error {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			return gatehouse.E(gatehouse.CodeMethodNotAllowed, "this path takes GET, HEAD")
		}
		return fn(w, r)
	})
}
