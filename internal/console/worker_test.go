package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestWorkerPages: a person whose only role is worker may open the settings and the help, and no other
// pages.
func TestWorkerPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.signIn("lathe", gatehouse.RoleWorker)
	for _, path := range []string{"/runs", "/workflows", "/dispatch", "/policies", "/insights", "/search?q=act",
		"/actions/act_1", "/events/changes"} {
		b.get(path).want(http.StatusForbidden)
	}
	settings := b.get("/settings").want(http.StatusOK)
	if body := settings.body; strings.Contains(body, `href="/workflows"`) ||
		strings.Contains(body, testid("find")) || strings.Contains(body, testid("palette")) {
		t.Error("the page leads a worker to pages that are refused")
	}
	help := b.get("/help").want(http.StatusOK).has("go to Settings", "this help").
		lacks("next, previous", "snooze", "palette")
	help.lacks("approve")
	eve := w.signIn("eve", gatehouse.RoleViewer)
	eve.get("/help").has("next or previous item", "go to Inbox").lacks("snooze", "reject; asks for a reason",
		"go to Audit")
	settings.lacks("data-events") // a refused stream would show that the server is away
}
