package serve

import (
	"net"
	"net/http"
	"strings"
)

// thisMachine serves a page of development mode only under a host name of this
// machine, so that another site cannot make a browser read the page.
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
