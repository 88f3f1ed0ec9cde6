package proof

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/notify/slack"
	"github.com/gatehouse-dev/gatehouse/internal/notify/slacktest"
	"github.com/gatehouse-dev/gatehouse/internal/notify/webhook"
	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

const hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// told is the receiver of a storm's messages: an endpoint that gets every message, and a board with
// one card for each question. It lives in the test process and so survives every kill of a server.
type told struct {
	hook  *httptest.Server
	board *slacktest.Workspace
	mu    sync.Mutex
	calls map[string]int    // by webhook-id
	about map[string]string // type and action, by webhook-id
}

func newTold(t *testing.T) *told {
	x := &told{board: slacktest.New(t), calls: make(map[string]int), about: make(map[string]string)}
	x.board.DisableRateLimits()
	x.hook = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body webhook.Body
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			return // it did not arrive completely
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		id := r.Header.Get("webhook-id")
		about := body.Type + " " + body.Data.ActionID
		if x.calls[id]++; x.calls[id] > 1 && x.about[id] != about {
			t.Errorf("the message %s was about %s, and is about %s", id, x.about[id], about)
		}
		x.about[id] = about
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(x.hook.Close)
	return x
}

// configuration has the channels. The board is told of questions only: an outcome only updates a card.
func (x *told) configuration() string {
	return strings.NewReplacer("HOOK", x.hook.URL, "BOARD", x.board.API(), "SECRET", hookSecret, "TOKEN", slacktest.Token,
		"PLACE", slacktest.Channel).Replace(`
channels:
  hook: {kind: webhook, url: "HOOK", secret: hook, allow_private: true}
  board: {kind: slack, url: "BOARD", token: board, channel: PLACE, allow_private: true}
routes:
  - {channels: [hook]}
  - {channels: [board], tell: [asked]}
digest: {after: 1000, every: 5s}
secrets: {hook: SECRET, board: TOKEN}
`)
}

// decideOpen rejects half of the questions that the load has left, so that cards
// that were posted long ago must change.
func (x *told) decideOpen(t *testing.T, w *world, l *load) {
	t.Helper()
	left := 0
	for _, a := range w.allActions(t) {
		if a.Status != gatehouse.StatusPending || time.Until(a.Approval.ExpiresAt) < time.Minute {
			continue
		}
		if left++; left%2 == 0 {
			l.told(t.Context(), a, l.people[0], "rejected", func() answer { return l.people[0].decide(a, "rejected") })
		}
	}
	if left < 2 {
		t.Errorf("the storm does not count: %d open questions at its end", left)
	}
}

// rest sends what dead servers have left, as a server does when their leases have
// ended. The servers are stopped.
func (x *told) rest(t *testing.T, w *world) {
	t.Helper()
	var mu sync.Mutex
	ahead := 3 * time.Minute
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return time.Now().Add(ahead) }
	log := slog.New(slog.DiscardHandler)
	var store gatehouse.Store
	var err error
	if w.dsn == "" {
		store, err = sqlite.Open(t.Context(),
			sqlite.Config{Path: filepath.Join(w.data, "gatehouse.db"), Clock: clock, Logger: log})
	} else {
		store, err = postgres.Open(t.Context(), postgres.Config{URL: w.dsn, MaxConns: 6, Clock: clock, Logger: log})
	}
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	hook, err := webhook.New(webhook.Config{URL: x.hook.URL, Secret: hookSecret, AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	board, err := slack.New(slack.Config{
		Token: slacktest.Token, Channel: slacktest.Channel, BaseURL: x.board.API(), AllowPrivate: true,
		Pace: time.Microsecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	tenants := []string{gatehouse.DefaultTenant}
	n := notify.New(store, wake.Spread(&wake.Hub{}), notify.Config{
		Channels: []*notify.Configured{
			{Name: "hook", Tenants: tenants, Channel: hook}, {Name: "board", Tenants: tenants, Channel: board},
		},
		Routes: []notify.Route{
			{Channels: []string{"hook"}},
			{Channels: []string{"board"}, Tell: []gatehouse.NotificationKind{gatehouse.NotifyAsked}},
		},
		DigestAfter: 1000, DigestEvery: 24 * time.Hour, Owner: "rest",
	}, nil, log)
	for range 3 { // a card that a dead server held is written a minute later
		for _, round := range []func() (bool, error){
			func() (bool, error) { return n.FanOut(t.Context(), gatehouse.DefaultTenant) },
			func() (bool, error) { return n.Deliver(t.Context(), "hook") },
			func() (bool, error) { return n.Deliver(t.Context(), "board") },
			func() (bool, error) { return n.WriteCards(t.Context(), "board") },
		} {
			for more := true; more; {
				if more, err = round(); err != nil {
					t.Fatal(err)
				}
			}
		}
		mu.Lock()
		ahead += time.Minute
		mu.Unlock()
	}
}

// check checks that no message was lost and that every card shows its action's state, and counts
// the duplicates.
func (x *told) check(t *testing.T, l *leg, w *world, db *look, actions map[string]*gatehouse.Action) {
	t.Helper()
	held := count(t, db, `SELECT count(*) FROM notification WHERE status = 'sent'`)
	x.rest(t, w)
	for name, query := range map[string]string{
		"messages that are not finished, or failed": `SELECT id, kind, channel, status, attempts, last_error FROM notification
			WHERE status IN ('queued', 'sent', 'failed')`,
		"outcomes without a message": `SELECT a.id, a.status FROM action a
			WHERE a.status IN ('approved', 'pushing', 'applied',
			'failed', 'unknown', 'rejected', 'expired', 'canceled') AND EXISTS (SELECT 1 FROM approval p WHERE p.seq = a.seq)
			AND NOT EXISTS (SELECT 1 FROM notification n WHERE n.tenant = a.tenant AND n.action_id = a.id AND n.channel = 'hook'
			AND n.kind = CASE a.status WHEN 'expired' THEN 'expired' ELSE 'decided' END AND n.status = 'delivered')`,
		"open questions without a message": `SELECT a.id FROM action a WHERE a.status = 'pending' AND 2 > (SELECT count(*)
			FROM notification n WHERE n.tenant = a.tenant AND n.action_id = a.id AND n.kind = 'asked'
			AND n.status = 'delivered')`,
		"cards that are still to be written": `SELECT action_id, attempts, last_error FROM notification_card
			WHERE due_at IS NOT NULL`,
		"channels that failed": `SELECT channel, last_error FROM channel_state WHERE failing_since IS NOT NULL`,
	} {
		if found := rowsOf(t, db, query); len(found) > 0 {
			t.Errorf("%d %s, such as %v", len(found), name, found[0])
		}
	}
	x.checkCalls(t, l, db)
	x.checkCards(t, l, db, actions)
	l.add("messages left by dead servers", held)
}

// checkCalls compares the messages that arrived at the endpoint with those in the
// store: each at least once, and not more often than it was tried.
func (x *told) checkCalls(t *testing.T, l *leg, db *look) {
	t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	known := make(map[string]int)
	rows, err := db.QueryContext(t.Context(), `SELECT id, attempts, status FROM notification WHERE channel = 'hook'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, status string
		var attempts int
		if err := rows.Scan(&id, &attempts, &status); err != nil {
			t.Fatal(err)
		}
		known[id] = attempts
		if n := x.calls[id]; status == "delivered" && n == 0 || n > max(attempts, 1) {
			t.Errorf("%s is %s after %d attempts, and arrived %d times", id, status, attempts, n)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for id, n := range x.calls {
		if _, ok := known[id]; !ok {
			t.Errorf("%s arrived, and is not in the store: %s", id, x.about[id])
		}
		l.add("messages that arrived twice", n-1)
	}
	l.add("messages", len(x.calls))
	kills := l.count("SIGKILLs at random") + l.count("SIGKILLs at failpoints")
	if twice := l.count("messages that arrived twice"); len(x.calls) < kills || twice > kills*claimed {
		t.Errorf("%d messages, %d of them twice, over %d kills", len(x.calls), twice, kills)
	}
}

// claimed is how many messages a dying server can hold.
const claimed = 16

// checkCards compares the cards with their actions. A server may post a card right before its
// death, and the question may end before another server tries again. No server knows such a card:
// it stays open, and is counted separately.
func (x *told) checkCards(t *testing.T, l *leg, db *look, actions map[string]*gatehouse.Action) {
	t.Helper()
	cards, changed := make(map[string]int), 0
	for _, m := range x.board.Messages() {
		text := m.All()
		at := strings.Index(text, "act_")
		if at < 0 {
			t.Errorf("a card without an action: %s", text)
			continue
		}
		id, _, _ := strings.Cut(text[at:], `"`)
		a := actions[id]
		if a == nil {
			t.Errorf("a card of %q, which is not there: %s", id, text)
			continue
		}
		cards[id]++
		open := strings.Contains(text, "An approval waits")
		if open && a.Approval.Status != gatehouse.ApprovalRequested &&
			count(t, db, `SELECT count(*) FROM notification_card WHERE action_id = ?`, id) == 0 {
			l.add("cards that nobody knows", 1)
			continue
		}
		if open != (a.Approval.Status == gatehouse.ApprovalRequested) {
			t.Errorf("the approval of %s is %s, and its card says: %s", id, a.Approval.Status, text)
		}
		if !open {
			changed++
		}
	}
	for id, n := range cards {
		if n > 1 {
			t.Errorf("%s has %d cards", id, n)
		}
	}
	kills := l.count("SIGKILLs at random") + l.count("SIGKILLs at failpoints")
	if lost := l.count("cards that nobody knows"); lost > kills {
		t.Errorf("%d cards that no server knows, over %d kills", lost, kills)
	}
	l.add("cards", len(cards))
	l.add("cards that changed", changed)
	if changed == 0 {
		t.Errorf("the storm does not count: none of %d cards had to change", len(cards))
	}
}
