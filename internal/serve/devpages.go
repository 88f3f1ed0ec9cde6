package serve

import (
	"net"
	"net/http"
	"strings"
)

// thisMachine lets a page of development mode be asked for on this machine alone,
// under its own name: another site cannot have a browser read it.
func thisMachine(page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		if ip := net.ParseIP(strings.Trim(host, "[]")); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "only on localhost", http.StatusForbidden)
			return
		}
		page.ServeHTTP(w, r)
	})
}
