package console

import (
	"context"
	"strings"
	"testing"

	"github.com/a-h/templ"

	"github.com/gatehouse-dev/gatehouse"
)

// rendered is a component as HTML.
func rendered(ctx context.Context, t *testing.T, c templ.Component) string {
	t.Helper()
	var page strings.Builder
	if err := c.Render(ctx, &page); err != nil {
		t.Fatal(err)
	}
	return page.String()
}

// TestTestResult: a test message is called refused only after it has failed.
func TestTestResult(t *testing.T) {
	t.Parallel()
	for status, want := range map[gatehouse.NotificationStatus]string{
		gatehouse.NotificationQueued: "still on its way", gatehouse.NotificationSent: "still on its way",
		gatehouse.NotificationFailed:   "did not accept the test",
		gatehouse.NotificationAccepted: "mail accepted the test", gatehouse.NotificationDelivered: "mail accepted the test",
	} {
		page := rendered(t.Context(), t, testResult(&gatehouse.Notification{Channel: "mail", Status: status}))
		if !strings.Contains(page, want) {
			t.Errorf("a test that is %s: the page lacks %q: %s", status, want, page)
		}
	}
}

// TestOnlyAPassHasATick: the result of an evaluator has a tick if it is a pass.
func TestOnlyAPassHasATick(t *testing.T) {
	t.Parallel()
	for result, tick := range map[string]bool{"pass": true, "warn": false, "fail": false} {
		a := &gatehouse.Action{Approval: &gatehouse.Approval{
			Evaluated: []gatehouse.Evaluated{{By: "scanner", NewEvaluated: gatehouse.NewEvaluated{Result: result}}},
		}}
		page := rendered(t.Context(), t, evaluatedSection(&view{now: at(0)}, a))
		if strings.Contains(page, "✓") != tick || !strings.Contains(page, "scanner: "+result) {
			t.Errorf("%s: %s", result, page)
		}
	}
}
