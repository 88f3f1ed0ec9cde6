package console_test

import (
	"net/http"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestMessages: operators see the messages with their recipients and can resend failed ones;
// hostile errors are shown as text. Approvers cannot open the page.
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
	page.has("Approval asked", "via mail", "3 attempts.", testid("retry"),
		testid("retry-failed-mail")).lacks("<script>alert(1)")
	aud.get("/settings/messages").want(http.StatusOK).has("via mail").lacks(testid("retry"))
	ana.post("/settings/messages/retry", "id", "ntf_1").want(http.StatusForbidden)
	aud.post("/settings/messages/retry", "id", "ntf_1").want(http.StatusForbidden)
	ana.post("/settings/messages/retry-failed", "channel", "mail").want(http.StatusForbidden)
	olga.post("/settings/messages/retry-failed", "channel", "hook").want(http.StatusOK).has(testid("retry"))
	olga.post("/settings/messages/retry-failed", "channel",
		"mail").want(http.StatusOK).has("queued").lacks(testid("retry"))
	olga.post("/settings/messages/retry", "id", "ntf_1").want(http.StatusOK).has("queued").lacks(testid("retry"))
	olga.post("/settings/messages/test", "channel", "mail").want(http.StatusForbidden)
}
