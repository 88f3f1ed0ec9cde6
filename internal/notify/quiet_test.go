package notify_test

import (
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
)

// TestQuietHours: messages wait for the end of the quiet hours, a question at most for half of the
// time that is left. The world's clock starts at 12:00 UTC, 13:00 in Berlin.
func TestQuietHours(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, from, to, zone string
		left                 time.Duration // to answer the question
		asked, decided       time.Duration // waits
	}{
		{"before", "14:00", "20:00", "", 24 * time.Hour, 0, 0},
		{"within", "11:30", "15:30", "", 24 * time.Hour, 210 * time.Minute, 210 * time.Minute},
		{"at the first minute", "12:00", "12:10", "UTC", 24 * time.Hour, 10 * time.Minute, 10 * time.Minute},
		{"at the end", "11:00", "12:00", "", 24 * time.Hour, 0, 0},
		{"over midnight", "20:00", "18:30", "", 24 * time.Hour, 390 * time.Minute, 390 * time.Minute},
		{"in the evening", "11:00", "07:00", "", 48 * time.Hour, 19 * time.Hour, 19 * time.Hour},
		{"in another zone", "12:30", "14:15", "Europe/Berlin", 24 * time.Hour, 75 * time.Minute, 75 * time.Minute},
		{"a short question", "11:00", "20:00", "", 30 * time.Minute, 15 * time.Minute, 8 * time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if _, err := w.Gate.ApplyPolicy(w.Admin(), policyForDays); err != nil {
				t.Fatal(err)
			}
			mail := w.mail()
			var err error
			if mail.Quiet, err = (gatehouse.QuietHours{From: c.from, To: c.to, Zone: c.zone}).Read(); err != nil {
				t.Fatal(err)
			}
			n := w.notifier(notify.Config{Channels: []*notify.Configured{mail}})
			propose := func() *gatehouse.Action {
				a, _, err := w.Gate.Propose(w.As("bot"), &gatehouse.Proposal{
					ActionType: "price_change", Connector: "shop", Operation: "update", ExpiresIn: gatehouse.Span(c.left),
					Target: gatehouse.Target{EntityType: "item", EntityRef: "walnuts"}, ProposedChange: `{"amount":"12"}`,
				})
				must(t, err)
				return a
			}
			propose()
			w.Decide(propose(), "ana", gatehouse.Approve)
			w.send(n, "mail")
			rows := w.list(gatehouse.NotificationFilter{})
			if len(rows) != 3 {
				t.Errorf("%d messages", len(rows))
			}
			for _, row := range rows {
				want := c.asked
				if row.Kind == gatehouse.NotifyDecided {
					want = c.decided
				}
				if want == 0 {
					if row.Status != gatehouse.NotificationAccepted {
						t.Errorf("%s is %s", row.Kind, row.Status)
					}
					continue
				}
				if row.Status != gatehouse.NotificationQueued || row.DueAt.Sub(w.Clock.Now()).Round(time.Second) != want {
					t.Errorf("%s is %s until %s, want a wait of %s", row.Kind, row.Status, row.DueAt, want)
				}
			}
		})
	}
	for _, bad := range [][3]string{
		{"8", "07:00", ""}, {"20:00", "20:00", ""}, {"7:00", "07:00", ""}, {"20:00", "07:00", "Mars/Olympus"},
		{"20:00", "24:00", ""},
	} {
		if _, err := (gatehouse.QuietHours{From: bad[0], To: bad[1], Zone: bad[2]}).Read(); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
}

// TestQuietHoursEndInGap: quiet hours that end at a time that the change to summer time skips end after
// the skipped hour.
func TestQuietHoursEndInGap(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ zone, to, at, want string }{
		{"America/New_York", "02:30", "2026-03-08T05:10:00Z", "2026-03-08T07:30:00Z"},
		{"America/New_York", "02:30", "2026-03-08T06:45:00Z", "2026-03-08T07:30:00Z"},
		{"Europe/Berlin", "02:30", "2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z"},
		{"America/Sao_Paulo", "00:00", "2018-11-04T02:30:00Z", "2018-11-04T03:00:00Z"},
	} {
		q, err := (gatehouse.QuietHours{From: "20:00", To: c.to, Zone: c.zone}).Read()
		must(t, err)
		at, err := time.Parse(time.RFC3339, c.at)
		must(t, err)
		if got := q.After(at).Format(time.RFC3339); got != c.want {
			t.Errorf("%s: after %s comes %s, want %s", c.zone, c.at, got, c.want)
		}
	}
}
