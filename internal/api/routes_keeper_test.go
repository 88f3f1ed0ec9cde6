package api

import (
	"net/http"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestKeeper checks the roles of the routes, and the requests that they refuse.
func TestKeeper(t *testing.T) {
	t.Parallel()
	s := newServer(t, newFake())
	const good = `{"before":"2026-11-21T08:00:00Z"}`
	for _, c := range []struct {
		method, path, key, body string
		code                    gatehouse.Code // "" for 200
	}{
		{"GET", "/archive/preview", "gth_root", "", ""},
		{"GET", "/archive/preview?retention=180d", "gth_root", "", ""},
		{"GET", "/archive/preview?retention=soon", "gth_root", "", gatehouse.CodeInvalid},
		{"GET", "/archive/preview", "gth_op", "", gatehouse.CodeRoleRequired},
		{"GET", "/doctor/roles", "gth_op", "", ""},
		{"GET", "/doctor/roles", "gth_aud", "", gatehouse.CodeRoleRequired},
		{"POST", "/pushes/mark-unknown", "gth_root", good, ""},
		{"POST", "/pushes/mark-unknown", "gth_op", good, gatehouse.CodeRoleRequired},
		{"POST", "/pushes/mark-unknown", "gth_root", `{}`, gatehouse.CodeInvalid},
		{"POST", "/pushes/mark-unknown", "gth_root", `{"before":"2026-11-21T08:00:00Z","class":"D"}`, gatehouse.CodeInvalid},
		{"POST", "/pushes/mark-unknown", "gth_root", `{"before":"2026-11-21T08:00:00Z","limit":1001}`, gatehouse.CodeInvalid},
		{"POST", "/pushes/ask", "gth_op", "", ""},
		{"POST", "/pushes/ask", "gth_op", `{"limit":51}`, gatehouse.CodeInvalid},
		{"POST", "/pushes/ask", "gth_aud", `{}`, gatehouse.CodeRoleRequired},
	} {
		w := request{method: c.method, path: "/api/v1" + c.path, key: c.key, body: c.body}.send(s)
		if c.code != "" {
			wantCode(t, w, c.code)
		} else if w.Code != http.StatusOK {
			t.Errorf("%s %s: %d %s", c.method, c.path, w.Code, w.Body)
		}
	}
}
