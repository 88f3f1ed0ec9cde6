package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestOddPaths sends paths that a mux would redirect or answer in plain text,
// both to the API alone and to a mux with other pages.
func TestOddPaths(t *testing.T) {
	t.Parallel()
	s := newServer(t, newFake())
	mux := http.NewServeMux()
	s.Mount(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	const notFound, notAllowed = gatehouse.CodeNotFound, gatehouse.CodeMethodNotAllowed
	for _, tt := range []struct {
		method, path, key string
		want              gatehouse.Code
	}{
		{"GET", "//api/v1/proposed-actions", "gth_view", notFound},
		{"GET", "/api//v1/proposed-actions", "gth_view", notFound},
		{"GET", "/api/v1//proposed-actions?limit=1", "gth_view", notFound},
		{"GET", "/api/v1/./proposed-actions", "gth_view", notFound},
		{"GET", "/api/v1/proposed-actions/../pushes", "gth_view", notFound},
		{"GET", "/api/v1/proposed-actions/..", "gth_view", notFound},
		{"GET", "/api/../inbox", "gth_view", notFound},
		{"GET", "/inbox/../api/v1/pushes", "gth_view", notFound},
		{"POST", "//api/v1/proposed-actions", "gth_bot", notFound},
		{"POST", "/api/v1/proposed-actions/act_1//decide", "gth_ana", notFound},
		{"POST", "/api/v1//hooks/w", "gth_bot", notFound},
		{"GET", "/api/v1//proposed-actions", "", gatehouse.CodeUnauthenticated},
		{"GET", "/api/v1/proposed-actions/", "gth_view", notFound},
		{"GET", "/api/v1/proposed-actions/act_1/", "gth_view", notFound},
		{"GET", "/api/v1/", "gth_view", notFound},
		{"GET", "/api/v1", "gth_view", notFound},
		{"GET", "/api/", "gth_view", notFound},
		{"GET", "/api", "gth_view", notFound},
		{"POST", "/api", "gth_view", notFound},
		{"GET", "/api", "", gatehouse.CodeUnauthenticated},
		{"GET", "/api/v2/proposed-actions", "gth_view", notFound},
		{"GET", "/api/v1/proposed%2Dactions/act_9", "gth_view", notFound},
		{"GET", "//healthz", "", notFound},
		{"GET", "/docs//", "gth_view", notFound},
		{"GET", "/./openapi.json", "gth_view", notFound},
		{"DELETE", "/api/v1/proposed-actions", "gth_view", notAllowed},
		{"TRACE", "/api/v1/proposed-actions", "gth_view", notAllowed},
		{"OPTIONS", "/api/v1/proposed-actions", "gth_view", notAllowed},
		{"BREW", "/api/v1/proposed-actions", "gth_view", notAllowed},
		{"PATCH", "/api/v1/hooks/w", "", notAllowed},
		{"CONNECT", "/api/v1/proposed-actions", "gth_view", notAllowed},
		{"CONNECT", "//api/v1/proposed-actions", "gth_view", notFound},
		{"POST", "/healthz", "", notAllowed},
		{"PUT", "/openapi.json", "", notAllowed},
		{"DELETE", "/metrics", "", notAllowed},
		{"POST", "/docs", "", notAllowed},
	} {
		t.Run(tt.method+" "+tt.path+" "+tt.key, func(t *testing.T) {
			t.Parallel()
			for name, h := range map[string]http.Handler{"alone": s, "beside pages": s.Front(mux)} {
				r := request{method: tt.method, path: "/", key: tt.key}.http()
				path, query, _ := strings.Cut(tt.path, "?")
				r.URL.Path, r.URL.RawQuery, r.RequestURI = path, query, tt.path
				if strings.Contains(path, "%") {
					r.URL.RawPath, r.URL.Path = path, strings.ReplaceAll(path, "%2D", "-")
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if w.Header().Get("X-Request-Id") == "" {
					t.Errorf("%s: no X-Request-Id", name)
				}
				if where := w.Header().Get("Location"); where != "" {
					t.Errorf("%s: redirects to %s", name, where)
				}
				wantCode(t, w, tt.want)
			}
		})
	}
	for target, want := range map[string]int{
		"/docs/": http.StatusTeapot, "/docs/policy": http.StatusTeapot,
		"/inbox": http.StatusTeapot, "/inbox//x": http.StatusTemporaryRedirect, "/apix//y": http.StatusTemporaryRedirect,
	} {
		w := httptest.NewRecorder()
		s.Front(mux).ServeHTTP(w, httptest.NewRequest("GET", target, nil))
		if w.Code != want {
			t.Errorf("%s: %d, want %d: the mux must serve the paths of pages", target, w.Code, want)
		}
	}
}

// TestNoPath sends requests without a path.
func TestNoPath(t *testing.T) {
	t.Parallel()
	s := newServer(t, newFake())
	for uri, path := range map[string]string{"*": "*", "example.com:443": ""} {
		r := httptest.NewRequest("CONNECT", "/", nil)
		r.RequestURI, r.URL.Path = uri, path
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		wantCode(t, w, gatehouse.CodeNotFound)
	}
}

func TestHealthOnly(t *testing.T) {
	t.Parallel()
	h := newServer(t, newFake()).HealthOnly()
	if w := (request{path: "/healthz"}).send(h); w.Code != http.StatusOK {
		t.Error(w.Code)
	}
	for _, path := range []string{"/api/v1/proposed-actions", "/", "/healthz/", "/inbox"} {
		w := request{path: path, key: "gth_view"}.send(h)
		wantCode(t, w, gatehouse.CodeNotFound)
		if !strings.Contains(w.Body.String(), "role api") || w.Header().Get("X-Request-Id") == "" {
			t.Errorf("%s: %s", path, w.Body)
		}
	}
}
