package notify

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/gatehouse-dev/gatehouse"
)

// Topic is hinted at when messages were queued.
const Topic = "notify"

const (
	// poll is how long an entry or message waits whose hint was lost.
	poll = time.Second
	// purgeEvery and purgeBatch pace the deletion of what is old.
	purgeEvery = time.Hour
	purgeBatch = 1000
)

// Config is what a notifier works by.
type Config struct {
	Channels []*Configured
	// Routes, when empty, is one that sends everything over every channel.
	Routes []Route
	// PublicURL is how browsers reach the console, "" where nobody said: then
	// messages have no links.
	PublicURL string
	// Reviews signs the links of mails, nil for none.
	Reviews Reviews
	// DigestAfter is how many messages a recipient gets on a channel in a
	// DigestEvery; what is beyond goes into a digest. 10 and 15 minutes by default.
	DigestAfter int
	DigestEvery time.Duration
	// Keep is how long finished messages are kept; 30 days by default.
	Keep time.Duration
	// Lease bounds one call of a channel and its record; 2 minutes by default.
	Lease time.Duration
	// Owner names this process in leases.
	Owner string
	// Withdraw takes actions back whose workflow is gone; needed for callbacks of Step
	// Functions.
	Withdraw Withdraw
	// Probe is how often a failing channel is tried by its oldest message when nothing is
	// due; 3 minutes by default, and never below 0.
	Probe time.Duration
	// DecideUpTo is the highest level that is decided on messages themselves in a
	// tenant; nil for none.
	DecideUpTo func(tx gatehouse.ReadTx, tenant string) (gatehouse.RiskLevel, error)
}

// Reviews signs links to one review for one recipient.
type Reviews interface {
	// ReviewLink makes the review where there is none; nil where links are not signed.
	ReviewLink(ctx context.Context, a *gatehouse.Action, to *gatehouse.Principal) (*gatehouse.ReviewLink, error)
}

// Hints spreads lossy wake-ups.
type Hints interface {
	Notify(topic string)
	Subscribe(topics ...string) (<-chan struct{}, func())
}

// Metrics counts what a notifier did.
type Metrics interface {
	// Notified counts a message by what became of one attempt: a status, or retry.
	Notified(channel, result string)
	// ChannelFailing sets whether a channel fails.
	ChannelFailing(channel string, failing bool)
}

// Notifier tells people. Any number of notifiers may run on one store.
type Notifier struct {
	store   gatehouse.Store
	hints   Hints
	config  Config
	metrics Metrics
	log     *slog.Logger
	// probes are when failing channels may be tried before their time, by name.
	probes probes
	// Failpoint, when set, is called between the parts of a delivery; for tests.
	Failpoint func(point string)
}

// New makes a notifier. metrics may be nil.
func New(store gatehouse.Store, hints Hints, config Config, metrics Metrics, log *slog.Logger) *Notifier {
	if config.DigestAfter <= 0 {
		config.DigestAfter = 10
	}
	if config.DigestEvery <= 0 {
		config.DigestEvery = 15 * time.Minute
	}
	if config.Keep <= 0 {
		config.Keep = 30 * 24 * time.Hour
	}
	if config.Probe == 0 {
		config.Probe = 3 * time.Minute
	}
	if config.Lease <= 0 {
		config.Lease = 2 * time.Minute
	}
	if len(config.Routes) == 0 {
		all := Route{}
		for _, c := range config.Channels {
			all.Channels = append(all.Channels, c.Name)
		}
		config.Routes = []Route{all}
	}
	return &Notifier{store: store, hints: hints, config: config, metrics: metrics, log: log}
}

// Run tells people until the context ends.
func (n *Notifier) Run(ctx context.Context) {
	var work sync.WaitGroup
	tenants := n.tenants()
	work.Go(func() {
		topics := make([]string, len(tenants))
		for i, tenant := range tenants {
			topics[i] = "log:" + tenant
		}
		n.loop(ctx, "notices from the log", poll, topics, func(ctx context.Context) (bool, error) {
			more := false
			var errs []error
			for _, tenant := range tenants {
				again, err := n.Spread(ctx, tenant)
				more, errs = more || again, append(errs, err)
			}
			return more, errors.Join(errs...)
		})
	})
	for _, c := range n.config.Channels {
		work.Go(func() {
			n.loop(
				ctx,
				"channel "+c.Name,
				poll,
				[]string{Topic},
				func(ctx context.Context) (bool, error) { return n.Deliver(ctx, c.Name) },
			)
		})
		if _, ok := c.Channel.(Keeper); ok {
			work.Go(func() {
				n.loop(ctx, "cards of "+c.Name, poll, []string{TopicCards},
					func(ctx context.Context) (bool, error) { return n.WriteCards(ctx, c.Name) })
			})
		}
	}
	work.Go(func() {
		n.loop(ctx, "old notices", purgeEvery, nil, n.purge)
	})
	work.Wait()
}

// loop repeats a task: at once while there is more, else when hinted at or after a
// while. Failures are logged, and followed by a longer pause.
func (n *Notifier) loop(
	ctx context.Context,
	what string,
	every time.Duration,
	topics []string,
	task func(context.Context) (bool, error),
) {
	wake, end := n.hints.Subscribe(topics...)
	defer end()
	failures := 0
	for ctx.Err() == nil {
		more, err := task(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			failures = min(failures+1, 5)
			n.log.WarnContext(ctx, "notify: "+what, "error", err)
		default:
			failures = 0
		}
		if more && err == nil {
			continue
		}
		pause := every << failures
		t := time.NewTimer(pause + rand.N(pause/4+1))
		select {
		case <-wake:
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
	}
}

func (n *Notifier) purge(ctx context.Context) (bool, error) {
	deleted := 0
	err := n.store.UpdateQueues(ctx, func(q gatehouse.Queues) (err error) {
		before := q.Now().Add(-n.config.Keep)
		if deleted, err = q.PurgeNotifications(before, purgeBatch); err != nil {
			return err
		}
		_, err = q.PurgeCards(before, purgeBatch)
		return err
	})
	return deleted == purgeBatch, err
}

// tenants are those that any channel serves.
func (n *Notifier) tenants() []string {
	var all []string
	for _, c := range n.config.Channels {
		all = append(all, c.Tenants...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// routing returns the channels of a tenant as they fare.
func (n *Notifier) routing(tx gatehouse.ReadTx, tenant string) (*routing, error) {
	r := &routing{
		channels: make(map[string]*Configured),
		states:   make(map[string]*gatehouse.ChannelState),
		routes:   n.config.Routes,
	}
	for _, c := range n.config.Channels {
		if slices.Contains(c.Tenants, tenant) && !c.Trait().Callback {
			r.channels[c.Name] = c
		}
	}
	states, err := tx.ChannelStates()
	for _, s := range states {
		r.states[s.Channel] = s
	}
	return r, err
}

func (n *Notifier) reach(point string) {
	if n.Failpoint != nil {
		n.Failpoint(point)
	}
}

func newID() string {
	return "ntf_" + strings.ReplaceAll(uuid.Must(uuid.NewV7()).String(), "-", "")
}
