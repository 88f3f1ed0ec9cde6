package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// unguarded lists the routes that change something without the edit token, each
// with the reason why that gives a stolen key no more power.
var unguarded = map[string]string{
	"propose": "asks", "proposeMandate": "asks", "revise": "asks", "rebase": "asks", "reverse": "asks",
	"cancel":        "takes the token where the use case needs it",
	"applyWorkflow": "a workflow's effects are proposed, and decided by others",
	"targetChanged": "has people look again", "startRun": "effects are proposed", "cancelRun": "ends work",
	"retryRun": "effects are proposed", "signalRun": "effects are proposed",
	"leaseSteps": "a worker's", "heartbeatStep": "a worker's", "completeStep": "a worker's", "failStep": "a worker's",
	"proposeStep": "a worker's",
	"leasePushes": "a worker's", "heartbeatPush": "a worker's", "completePush": "a worker's", "failPush": "a worker's",
	"drain": "carries out what was approved", "replayDeadLetters": "carries out what was approved",
	"resolvePush": "tells what happened", "resolveDeadLetters": "tells what happened",
	"discardDeadLetters": "only keeps a change from being made",
	"markUnknown":        "tells what happened", "askTargets": "reads targets",
	"checkStore": "reads", "previewArchive": "reads", "checkRoles": "reads", "explainPolicy": "reads",
	"dismissNotices": "hides from oneself what was seen",
	"revokeSession":  "ends a way in and makes none",
	"removeDevice":   "ends one's own notifications", "testDevice": "sends a test to oneself",
	"setPreference":  "chooses one's own messages",
	"evaluateAction": "adds a result, and decides nothing",
	"comment":        "says something, and decides nothing", "assign": "shows a name, and restricts nothing",
}

// TestMintingNeedsTheEditToken walks the table of routes: every route that
// changes something must require the edit token and document it, unless it is
// listed above. So a new route cannot be forgotten.
func TestMintingNeedsTheEditToken(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newServer(t, f)
	doc, _ := readDocument(t, s)
	deciding := map[string]bool{
		"decide": true, "bulkDecide": true, "approve": true, "reject": true,
		"edit": true, "undo": true,
	}
	for i := range s.routes {
		rt := &s.routes[i]
		_, excused := unguarded[rt.name]
		if rt.method == http.MethodGet {
			continue
		}
		if guarded := rt.token == tokenRequired; guarded == excused {
			t.Errorf("%s: needs the edit token: %v; either it does, or it is named with a reason", rt.name, guarded)
		}
		if rt.changesRights == (excused || deciding[rt.name]) {
			t.Errorf("%s: mints: %v", rt.name, rt.changesRights)
		}
		if !rt.changesRights {
			continue
		}
		op := doc.Paths[Prefix+rt.path][strings.ToLower(rt.method)]
		if !op.Mints || len(op.Security) != 1 || op.Security[0]["editToken"] == nil {
			t.Errorf("%s: the document says mints %v, security %v", rt.name, op.Mints, op.Security)
		}
		for _, token := range []string{"", "gte_ana", "gte_wrong"} { // none, somebody else's, nobody's
			wantCode(t, request{method: rt.method, path: rt.example(), key: "gth_root", token: token, body: "{}"}.send(s),
				gatehouse.CodeEditTokenRequired)
			if f.count(strings.ToUpper(rt.name[:1])+rt.name[1:]) > 0 {
				t.Errorf("%s: the use case ran", rt.name)
			}
		}
	}
}
