package api

import (
	"net/http"
	"path"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// Front wraps a mux that has the API ([Server.Mount]). It replaces two answers of the
// mux by problem documents: the redirect from an API path with // or .. to the path
// without them, and the plain-text page for an invalid path. The mux's answers have
// no request id, and a client that follows the redirect may change the method, such
// as POST to GET.
func (s *Server) Front(mux http.Handler) http.Handler {
	withKey, open, nowhere := s.authenticated(s.unclean), s.plain(s.unclean), s.plain(s.notFound)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch p := r.URL.EscapedPath(); {
		case !strings.HasPrefix(p, "/"): // CONNECT host:port, GET *
			nowhere.ServeHTTP(w, r)
		case isClean(p) || !ours(path.Clean(p)) && !ours(p):
			mux.ServeHTTP(w, r)
		case strings.HasPrefix(path.Clean(p), "/api"):
			withKey.ServeHTTP(w, r)
		default:
			open.ServeHTTP(w, r)
		}
	})
}

// HealthOnly serves /healthz, /readyz and /metrics; everything else is 404.
func (s *Server) HealthOnly() http.Handler {
	elsewhere := s.plain(func(http.ResponseWriter, *http.Request) error {
		return gatehouse.E(gatehouse.CodeNotFound, "this process does not have the role api")
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.EscapedPath() {
		case "/healthz", "/readyz", "/metrics":
			s.mux.ServeHTTP(w, r)
		default:
			elsewhere.ServeHTTP(w, r)
		}
	})
}

func (s *Server) unclean(_ http.ResponseWriter, r *http.Request) error {
	return gatehouse.E(gatehouse.CodeNotFound, "no such path; without //, /./ and /../ it is %s",
		gatehouse.Quote(path.Clean(r.URL.Path)))
}

// isClean reports whether a mux accepts a path unchanged; one slash at the end
// is allowed.
func isClean(p string) bool {
	clean := path.Clean(p)
	return clean == p || len(p) == len(clean)+1 && strings.HasSuffix(p, "/")
}

// ours reports whether [Server.Mount] handles a path.
func ours(p string) bool {
	switch p {
	case "/api", "/openapi.json", "/docs", "/docs/docs.css", "/healthz", "/readyz", "/metrics":
		return true
	}
	return strings.HasPrefix(p, "/api/")
}
