package api

import (
	"net/http"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestListDecided: decided cannot be combined with the archive.
func TestListDecided(t *testing.T) {
	t.Parallel()
	s := newServer(t, newFake())
	list := func(query string) request {
		return request{method: "GET", path: "/api/v1/proposed-actions?" + query, key: "gth_op"}
	}
	if w := list("decided=approved&archived=false").send(s); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	wantCode(t, list("decided=approved&archived=true").send(s), gatehouse.CodeInvalid)
	wantCode(t, list("decided=somehow").send(s), gatehouse.CodeInvalid)
}
