package notify_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
)

// TestConversationNotifies: only the assignee is notified of an assignment, and only the author of a
// question of its answer. Nobody is notified of a comment, a question or their own acts.
func TestConversationNotifies(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		n := w.notifier(notify.Config{Channels: []*notify.Configured{w.mail()}})
		a := w.Propose("walnuts", "price_change", 12)
		w.send(n, "mail")
		before := len(w.smtp.Mails())
		say := func(name string, r gatehouse.CommentRequest) {
			t.Helper()
			if _, err := w.Gate.Comment(w.As(name), a.ID, r); err != nil {
				t.Fatal(err)
			}
		}
		assign := func(name, to string) {
			t.Helper()
			if _, err := w.Gate.Assign(w.As(name), a.ID, gatehouse.AssignRequest{Assignee: to}); err != nil {
				t.Fatal(err)
			}
		}
		say("ana", gatehouse.CommentRequest{Text: "why?", Kind: gatehouse.CommentQuestion})
		say("bo", gatehouse.CommentRequest{Text: "right"})
		assign("ana", "ana")
		assign("ana", "bo")
		assign("ana", "")
		say("bot", gatehouse.CommentRequest{Text: "so", Answers: 1})
		w.send(n, "mail")
		var told []string
		for _, m := range w.smtp.Mails()[before:] {
			told = append(told, m.To+" "+m.Text)
		}
		slices.Sort(told)
		if len(told) != 2 || !strings.HasPrefix(told[0], "ana@") || !strings.HasPrefix(told[1], "bo@") ||
			!strings.Contains(told[0], "Your question about an approval was answered") ||
			!strings.Contains(told[1], "An approval is assigned to you") {
			t.Errorf("told: %q", told)
		}
		for _, m := range w.list(gatehouse.NotificationFilter{ActionID: a.ID})[:2] {
			if m.Kind != gatehouse.NotifyReminded {
				t.Errorf("%+v", m)
			}
		}
	})
}
