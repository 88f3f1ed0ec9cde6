package notify_test

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gatetest"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/notify/email"
	"github.com/gatehouse-dev/gatehouse/internal/notify/mailtest"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest/migrated"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite/sqlitetest/migratedfile"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// world is a gate with people, and with notifiers that run on request.
type world struct {
	*gatetest.World
	t    *testing.T
	hub  *wake.Hints
	smtp *mailtest.Server
	// notes counts the messages that a test has queued itself.
	notes int
	// check, when set, refuses callbacks.
	check func(*gatehouse.Callback) error
}

// engines runs a test on both engines.
func engines(t *testing.T, test func(*testing.T, *world)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, newWorld(t))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		clock := gatetest.NewClock()
		store := migrated.Open(t, migrated.Database(t), clock.Now)
		test(t, peopled(t, store, clock))
	})
}

func newWorld(t *testing.T) *world {
	t.Helper()
	clock := gatetest.NewClock()
	store := migratedfile.Open(t, migratedfile.New(t), clock.Now)
	return peopled(t, store, clock)
}

// peopled creates sam, the sponsor of the agent bot, the approvers ana and bo, and the operator
// olga.
func peopled(t *testing.T, store gatehouse.Store, clock *gatetest.Clock) *world {
	t.Helper()
	w := &world{t: t, hub: wake.Spread(&wake.Hub{}), smtp: mailtest.Start(t)}
	w.World = gatetest.New(t, store, clock, w.callbacks)
	creds, err := w.Gate.Bootstrap(context.Background())
	must(t, err)
	w.SignIn(creds.Key)
	for name, role := range map[string]gatehouse.Role{
		"sam": gatehouse.RoleApprover, "ana": gatehouse.RoleApprover, "bo": gatehouse.RoleApprover,
		"olga": gatehouse.RoleOperator,
	} {
		w.create(gatehouse.NewPrincipal{Name: name, Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{role}})
	}
	w.create(
		gatehouse.NewPrincipal{
			Name:    "bot",
			Kind:    gatehouse.KindAgent,
			Roles:   []gatehouse.Role{gatehouse.RoleProposer},
			Sponsor: "sam",
		},
	)
	return w
}

func (w *world) create(p gatehouse.NewPrincipal) {
	w.t.Helper()
	if _, err := w.Gate.CreatePrincipal(w.Admin(), p); err != nil {
		w.t.Fatal(err)
	}
}

// mail is a channel that reaches sam, ana, bo, olga, and people whose name is an address.
func (w *world) mail() *notify.Configured {
	w.t.Helper()
	c, err := email.New(email.Config{
		SMTP: w.smtp.Addr, CA: w.smtp.CA, From: "gatehouse@gate.example",
		Bounces: "bounce@gate.example", BounceKeys: [][]byte{[]byte(strings.Repeat("k", 32))},
		Addresses: map[string]string{
			"sam": "sam@shop.example", "ana": "ana@shop.example", "bo": "bo@shop.example", "olga": "olga@shop.example",
		},
	})
	must(w.t, err)
	return &notify.Configured{Name: "mail", Tenants: []string{"default"}, Channel: c}
}

func (w *world) notifier(c notify.Config) *notify.Notifier {
	if c.Owner == "" {
		c.Owner = "test"
	}
	if c.PublicURL == "" {
		c.PublicURL = "https://gate.example"
	}
	return notify.New(w.Store, w.hub, c, nil, slog.New(slog.DiscardHandler))
}

// spread numbers the log and queues all its messages.
func (w *world) spread(n *notify.Notifier) {
	w.t.Helper()
	w.Number()
	for more := true; more; {
		var err error
		if more, err = n.FanOut(context.Background(), "default"); err != nil {
			w.t.Fatal(err)
		}
	}
}

// deliver sends a channel's due messages.
func (w *world) deliver(n *notify.Notifier, channel string) {
	w.t.Helper()
	for more := true; more; {
		var err error
		if more, err = n.Deliver(context.Background(), channel); err != nil {
			w.t.Fatal(err)
		}
	}
}

// send queues all messages of the log, and sends a channel's.
func (w *world) send(n *notify.Notifier, channel string) {
	w.t.Helper()
	w.spread(n)
	w.deliver(n, channel)
}

// list returns the messages that a filter selects, newest first, at most 200.
func (w *world) list(f gatehouse.NotificationFilter) []*gatehouse.Notification {
	w.t.Helper()
	f.Limit = 200
	page, err := w.Gate.ListNotifications(w.Admin(), f)
	must(w.t, err)
	return page.Items
}

// statuses counts the messages by status.
func (w *world) statuses() map[gatehouse.NotificationStatus]int {
	counts := make(map[gatehouse.NotificationStatus]int)
	for _, n := range w.list(gatehouse.NotificationFilter{}) {
		counts[n.Status]++
	}
	return counts
}

// channels are the states of the channels that were used.
func (w *world) channels() (list []*gatehouse.ChannelState, err error) {
	err = w.Store.View(context.Background(), "default", func(tx gatehouse.ReadTx) (err error) {
		list, err = tx.ChannelStates()
		return err
	})
	return list, err
}

// must ends the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
