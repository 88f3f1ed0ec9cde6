package console_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestMessages: operators see the messages and can resend failed ones; hostile errors are shown as
// text. Approvers cannot open the page.
func TestMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	olga, ana := w.signIn("olga", gatehouse.RoleOperator), w.signIn("ana", gatehouse.RoleApprover)
	aud := w.signIn("aud", gatehouse.RoleAuditor)
	ana.get("/settings").want(http.StatusOK).lacks("/settings/messages")
	ana.get("/settings/messages").want(http.StatusForbidden)
	olga.get("/settings/messages").want(http.StatusOK).has("No channel is configured", "No messages")
	err := w.store.Update(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
		now := tx.Now()
		return tx.InsertNotifications([]*gatehouse.Notification{{
			ID: "ntf_1", Tenant: "default", CreatedAt: now, Kind: gatehouse.NotifyAsked, ActionID: "act_1", Entry: 1,
			Channel: "mail",
			Status:  gatehouse.NotificationFailed, Attempts: 3, LastError: "<script>alert(1)</script>\u202Ekcab",
			FinishedAt: &now,
		}})
	})
	must(t, err)
	page := olga.get("/settings/messages?show=failed").want(http.StatusOK)
	page.has("Approval requested", "via mail", "3 attempts.", testid("retry"),
		testid("retry-failed-mail")).lacks("<script>alert(1)")
	aud.get("/settings/messages").want(http.StatusOK).has("via mail").lacks(testid("retry"))
	ana.post("/settings/messages/retry", "id", "ntf_1").want(http.StatusForbidden)
	aud.post("/settings/messages/retry", "id", "ntf_1").want(http.StatusForbidden)
	ana.post("/settings/messages/retry-failed", "channel", "mail").want(http.StatusForbidden)
	olga.post("/settings/messages/retry-failed", "channel", "hook").want(http.StatusOK).has(testid("retry"))
	olga.post("/settings/messages/retry-failed", "channel",
		"mail").want(http.StatusOK).has("queued").lacks(testid("retry"))
	page.has(`action="/settings/messages/retry?show=failed"`, `action="/settings/messages/retry-failed?show=failed"`)
	olga.post("/settings/messages/retry", "id", "ntf_1").want(http.StatusOK).has("queued").lacks(testid("retry"))
	again := olga.post("/settings/messages/retry?cursor=&show=failed", "id", "ntf_1").want(http.StatusOK)
	if again.url.RawQuery != "show=failed" {
		t.Errorf("a retry leads to %s", again.url)
	}
	olga.post("/settings/messages/test", "channel", "mail").want(http.StatusForbidden)
}

// TestAllFailedMessagesAreSentAgain: the button resends more messages than one page of the store has.
func TestAllFailedMessagesAreSentAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	olga := w.signIn("olga", gatehouse.RoleOperator)
	must(t, w.store.Update(t.Context(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
		now := tx.Now()
		list := make([]*gatehouse.Notification, gatehouse.MaxLimit+1)
		for i := range list {
			list[i] = &gatehouse.Notification{
				ID: "ntf_" + strconv.Itoa(i), Tenant: "default", CreatedAt: now, Kind: gatehouse.NotifyAsked,
				ActionID: "act_1", Entry: int64(i + 1), Channel: "mail", Status: gatehouse.NotificationFailed, FinishedAt: &now,
			}
		}
		return tx.InsertNotifications(list)
	}))
	olga.get("/settings/messages?show=failed").want(http.StatusOK).has(testid("retry-failed-mail"))
	olga.post("/settings/messages/retry-failed", "channel", "mail").want(http.StatusOK)
	olga.get("/settings/messages?show=failed").want(http.StatusOK).has("No message has failed.")
}
