package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestChangingRightsNeedsTheEditToken walks the table of routes: every route that
// changes something must require the edit token and document it, unless
// withoutEditToken has it. So a new route cannot be forgotten.
func TestChangingRightsNeedsTheEditToken(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newServer(t, f)
	doc, _ := readDocument(t, s)
	for i := range s.routes {
		rt := &s.routes[i]
		_, excused := withoutEditToken[rt.name]
		_, decides := deciding[rt.name]
		if rt.method == http.MethodGet {
			continue
		}
		if guarded := rt.token == tokenRequired; guarded == excused {
			t.Errorf("%s: needs the edit token: %v; either it does, or withoutEditToken has the reason", rt.name, guarded)
		}
		if rt.changesRights == (excused || decides) {
			t.Errorf("%s: changesRights is %v", rt.name, rt.changesRights)
		}
		if !rt.changesRights {
			continue
		}
		op := doc.Paths[Prefix+rt.path][strings.ToLower(rt.method)]
		if !op.ChangesRights || len(op.Security) != 1 || op.Security[0]["editToken"] == nil {
			t.Errorf("%s: the document says x-changes-rights %v, security %v", rt.name, op.ChangesRights, op.Security)
		}
		for _, token := range []string{"", "gte_ana", "gte_wrong"} { // none, somebody else's, nobody's
			wantCode(t, request{method: rt.method, path: rt.url(), key: "gth_root", token: token, body: "{}"}.send(s),
				gatehouse.CodeEditTokenRequired)
			if f.count(strings.ToUpper(rt.name[:1])+rt.name[1:]) > 0 {
				t.Errorf("%s: the use case ran", rt.name)
			}
		}
	}
}
