package notify_test

import (
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/ring"
)

const policyInStages = `version: 1
links: {decide_up_to: 3}
risk: {price_change: 3}
approvals:
  3:
    stages:
      - {who: {people: [ana]}, for: 1h}
      - {who: {people: [bo]}, for: 9d}
    reminders: [2h, 8d]
`

// TestLinksOfEveryQuestion: escalations and reminders contain a signed link and a code, like the
// first mail; each recipient has one review. A link that has expired is not sent again.
func TestLinksOfEveryQuestion(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, w *world) {
		if _, err := w.Gate.ApplyPolicy(w.Admin(), policyInStages); err != nil {
			t.Fatal(err)
		}
		master, err := ring.Parse(ring.NewMasterKey())
		must(t, err)
		signer := gate.New(w.Store, nil, w.hub, gate.Config{Master: master, LinkTTL: 7 * 24 * time.Hour},
			slog.New(slog.DiscardHandler))
		n := w.notifier(notify.Config{Channels: []*notify.Configured{w.mail()}, Reviews: signer})
		w.Propose("walnuts", "price_change", 12)
		links := map[string]map[string]bool{"ana@shop.example": {}, "bo@shop.example": {}}
		seen := 0
		for _, step := range []struct {
			after time.Duration
			to    []string
			link  bool
		}{
			{0, []string{"ana@shop.example"}, true},
			{time.Hour, []string{"bo@shop.example"}, true},
			{time.Hour, []string{"ana@shop.example", "bo@shop.example"}, true},
			{8 * 24 * time.Hour, []string{"ana@shop.example", "bo@shop.example"}, false},
		} {
			w.Clock.Advance(step.after)
			if _, err := w.Gate.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.send(n, "mail")
			mails := w.smtp.Mails()[seen:]
			seen += len(mails)
			if len(mails) != len(step.to) {
				t.Fatalf("after %s: mails to %v, want %v", step.after, recipients(mails), step.to)
			}
			for _, m := range mails {
				id := regexp.MustCompile(`https://gate\.example/review/(rev_\w+)\?token=`).FindStringSubmatch(m.Text)
				code := regexp.MustCompile(`Code: \w{6}\.`).MatchString(m.Text)
				if (id != nil) != step.link || code != step.link {
					t.Errorf("after %s, to %s:\n%s", step.after, m.To, m.Text)
				}
				if id != nil {
					links[m.To][id[1]] = true
					for _, want := range []string{"Review: " + id[1], "The link is valid until 20",
						"/approve or /reject"} {
						if !strings.Contains(m.Text, want) {
							t.Errorf("the mail lacks %q:\n%s", want, m.Text)
						}
					}
				}
			}
		}
		for to, ids := range links {
			if len(ids) != 1 {
				t.Errorf("%s has %d reviews", to, len(ids))
			}
		}
		if got := w.list(gatehouse.NotificationFilter{Status: gatehouse.NotificationFailed}); len(got) > 0 {
			t.Errorf("failed: %v", got[0].LastError)
		}
	})
}
