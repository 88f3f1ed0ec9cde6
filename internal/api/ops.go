package api

import (
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/gatehouse-dev/gatehouse"
)

// mountOps adds the routes for operators: health, the OpenAPI document and its page,
// which need no key, and metrics, which may need one (see mayScrape).
func (s *Server) mountOps(mux *http.ServeMux) {
	mux.Handle("/healthz", s.readOnly(func(w http.ResponseWriter, _ *http.Request) error {
		h := gatehouse.Health{Status: "ok", Build: s.cfg.Build}
		if s.cfg.ConnectorState != nil {
			h.Connectors = s.cfg.ConnectorState()
		}
		body, err := json.Marshal(h)
		if err == nil {
			writeBytes(w, http.StatusOK, headerJSON, body)
		}
		return err
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
		prom := s.prometheus()
		mux.Handle("/metrics", s.readOnly(func(w http.ResponseWriter, r *http.Request) error {
			if err := s.mayScrape(r); err != nil {
				return err
			}
			prom.ServeHTTP(w, r)
			return nil
		}))
	}
	s.mountDocs(mux)
}

// prometheus serves the metrics. If a collector fails, such as a collector whose read of the
// store times out, only its metrics are missing, and its error is logged.
func (s *Server) prometheus() http.Handler {
	return promhttp.HandlerFor(s.cfg.Gatherer, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError,
		ErrorLog:      slog.NewLogLogger(s.cfg.Logger.Handler(), slog.LevelError),
	})
}

// mayScrape lets this machine, and the keys of auditors of the tenant default, read the metrics, which
// name the tenants with their ceilings, and all connectors.
func (s *Server) mayScrape(r *http.Request) error {
	if local(r) {
		return nil
	}
	p, _, err := s.authenticate(r)
	if err != nil {
		return err
	}
	if !p.Has(gatehouse.RoleAuditor) {
		return gatehouse.E(gatehouse.CodeRoleRequired, "this needs the role %s", gatehouse.RoleAuditor).With("roles",
			auditors)
	}
	if p.Tenant != gatehouse.DefaultTenant {
		return gatehouse.E(gatehouse.CodeRoleRequired, "the metrics cover all tenants: only auditors of the tenant %s "+
			"read them", gatehouse.DefaultTenant)
	}
	return nil
}

// Metrics serves /metrics, and no other path, without a key, for a listener that only
// scrapers can reach.
func (s *Server) Metrics() http.Handler {
	mux := http.NewServeMux()
	if s.cfg.Gatherer != nil {
		mux.Handle("GET /metrics", s.prometheus())
	}
	return mux
}

// readOnly is s.plain for GET and HEAD.
func (s *Server) readOnly(fn func(http.ResponseWriter, *http.Request) error) http.Handler {
	return s.plain(func(w http.ResponseWriter, r *http.Request) error {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			return gatehouse.E(gatehouse.CodeMethodNotAllowed, "this path allows only GET and HEAD")
		}
		return fn(w, r)
	})
}
