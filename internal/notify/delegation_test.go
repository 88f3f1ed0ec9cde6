package notify_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
)

// TestDelegateIsNotified: the delegate is asked as the person is, and is not asked once the person has
// answered.
func TestDelegateIsNotified(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		n := w.notifier(notify.Config{Channels: []*notify.Configured{w.mail()}})
		if _, err := w.Gate.PutGroup(w.Admin(), "finance", gatehouse.GroupMembers{Members: []string{"ana"}}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Gate.ApplyPolicy(w.Admin(), "version: 1\napprovals:\n  3: {groups: [finance]}\n"); err != nil {
			t.Fatal(err)
		}
		told := func() (to []string, text string) {
			for _, m := range w.smtp.Mails() {
				if !strings.HasPrefix(m.To, "sam") { // the sponsor is told the outcome
					to = append(to, m.To)
				}
				if strings.HasPrefix(m.To, "bo") {
					text += string(m.Raw)
				}
			}
			slices.Sort(to)
			return to, text
		}
		w.Propose("walnuts", "price_change", 12)
		w.send(n, "mail")
		if to, _ := told(); len(to) != 1 || !strings.HasPrefix(to[0], "ana") {
			t.Fatalf("without a delegation %v are notified", to)
		}
		made, err := w.Gate.CreateDelegation(w.Admin(),
			gatehouse.NewDelegation{From: "ana", To: "bo", Ends: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)})
		must(t, err)
		w.send(n, "mail")
		to, text := told()
		if len(to) != 3 || to[1] != "ana@shop.example" || to[2] != "bo@shop.example" ||
			!strings.Contains(text, "You answer for ana until 2026-12-01") {
			t.Fatalf("%v are notified of the delegation, bo by %q", to, text)
		}
		w.Propose("almonds", "price_change", 12)
		w.send(n, "mail")
		if to, text := told(); len(to) != 5 || strings.Count(text, "You answer for") < 3 {
			t.Errorf("told are %v, bo %q", to, text)
		}
		late := w.Propose("pecans", "price_change", 12)
		w.spread(n)
		w.Decide(late, "ana", gatehouse.Approve)
		w.deliver(n, "mail")
		if to, _ := told(); len(to) != 5 {
			t.Errorf("notified of an answered question: %v", to)
		}
		if _, err := w.Gate.EndDelegation(w.Admin(), made.ID); err != nil {
			t.Fatal(err)
		}
		w.send(n, "mail")
		if to, text := told(); len(to) != 7 || !strings.Contains(text, "You no longer answer for ana") {
			t.Errorf("%v are notified of its end", to)
		}
	})
}
