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

// Topic is the hint topic for queued messages.
const Topic = "notify"

const (
	// poll is how long an entry or a message waits at most when its hint was lost.
	poll = time.Second
	// purgeEvery and purgeBatch control the deletion of old messages.
	purgeEvery = time.Hour
	purgeBatch = 1000
)

// Config configures a notifier.
type Config struct {
	Channels []*Configured
	// Routes lists the routes. When empty, everything is sent on every channel.
	Routes []Route
	// PublicURL is the console's address for browsers; with "", messages have no links.
	PublicURL string
	// Reviews signs the links in mails, nil for none.
	Reviews Reviews
	// DigestAfter is the number of messages that a recipient gets on a channel per DigestEvery; the
	// others go into a digest. 10 and 15 minutes by default.
	DigestAfter int
	DigestEvery time.Duration
	// Keep is how long finished messages are kept; 30 days by default.
	Keep time.Duration
	// Lease limits the time for one call of a channel and its record; 2 minutes by default.
	Lease time.Duration
	// Owner is the name of this process in leases.
	Owner string
	// Withdraw cancels actions whose workflow no longer exists. Callbacks to Step Functions require
	// it.
	Withdraw Withdraw
	// Probe is the interval at which a failing channel is tried with its oldest message when
	// nothing is due; 3 minutes by default. A negative value disables these tries.
	Probe time.Duration
	// DecideUpTo returns the highest level at which a tenant lets people decide in the message
	// itself; nil if no message allows that.
	DecideUpTo func(tx gatehouse.PolicyReader, tenant string) (gatehouse.RiskLevel, error)
}

// Reviews signs links for one recipient.
type Reviews interface {
	// ReviewLink creates the review if there is none; it returns nil if links are not signed, if the action has no
	// approval, and if the review has expired.
	ReviewLink(ctx context.Context, a *gatehouse.Action, to *gatehouse.Principal) (*gatehouse.ReviewLink, error)
	// UnsubscribeToken signs the link that switches off a person's digests on a channel; it returns ""
	// if links are not signed.
	UnsubscribeToken(ctx context.Context, to *gatehouse.Principal, channel string) (string, error)
}

// Hints distributes wake-ups, which may get lost.
type Hints interface {
	Notify(topic string)
	Subscribe(topics ...string) (<-chan struct{}, func())
}

// Metrics counts a notifier's work.
type Metrics interface {
	// Notified counts a message by the result of an attempt: a status, or retry.
	Notified(channel, result string)
	// ChannelFailing records whether a channel fails.
	ChannelFailing(channel string, failing bool)
}

// Notifier sends notifications. Any number of notifiers may run on one store.
type Notifier struct {
	store   gatehouse.Store
	hints   Hints
	config  Config
	metrics Metrics
	log     *slog.Logger
	// probes holds, by name, the times at which failing channels may be tried early.
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

// Run sends notifications until the context ends.
func (n *Notifier) Run(ctx context.Context) {
	var work sync.WaitGroup
	tenants := n.tenants()
	work.Go(func() {
		topics := make([]string, len(tenants))
		for i, tenant := range tenants {
			topics[i] = "log:" + tenant
		}
		n.loop(ctx, "messages from the log", poll, topics, func(ctx context.Context) (bool, error) {
			more := false
			var errs []error
			for _, tenant := range tenants {
				again, err := n.FanOut(ctx, tenant)
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
		if c.Trait().Weekly {
			work.Go(func() {
				n.loop(ctx, "weekly test of "+c.Name, checkEvery, nil,
					func(ctx context.Context) (bool, error) { return false, n.Weekly(ctx, c.Name) })
			})
		}
		if _, ok := c.Channel.(Keeper); ok {
			work.Go(func() {
				n.loop(ctx, "cards of "+c.Name, poll, []string{TopicCards},
					func(ctx context.Context) (bool, error) { return n.WriteCards(ctx, c.Name) })
			})
		}
	}
	work.Go(func() {
		n.loop(ctx, "old messages", purgeEvery, nil, n.purge)
	})
	work.Wait()
}

// loop is Loop with hints on topics.
func (n *Notifier) loop(
	ctx context.Context, what string, every time.Duration, topics []string, task func(context.Context) (bool, error),
) {
	wake, end := n.hints.Subscribe(topics...)
	defer end()
	Loop(ctx, n.log, "notify: "+what, every, wake, task)
}

// Loop repeats a task: at once while there is more to do, else after a hint or a pause. After a
// failure, which is logged with the message given in what, the pause is longer.
func Loop(
	ctx context.Context, log *slog.Logger, what string, every time.Duration, wake <-chan struct{},
	task func(context.Context) (more bool, err error),
) {
	failures := 0
	for ctx.Err() == nil {
		more, err := task(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			failures = min(failures+1, 5)
			log.WarnContext(ctx, what, "error", err)
		default:
			failures = 0
		}
		if more && err == nil {
			continue
		}
		pause := every << failures
		select {
		case <-wake:
		case <-time.After(pause + rand.N(pause/4+1)):
		case <-ctx.Done():
		}
	}
}

func (n *Notifier) purge(ctx context.Context) (bool, error) {
	var messages, cards int
	err := n.store.UpdateQueues(ctx, func(q gatehouse.Queues) (err error) {
		before := q.Now().Add(-n.config.Keep)
		if messages, err = q.PurgeNotifications(before, purgeBatch); err != nil {
			return err
		}
		cards, err = q.PurgeCards(before, purgeBatch)
		return err
	})
	return messages == purgeBatch || cards == purgeBatch, err
}

// tenants are the tenants that any channel serves.
func (n *Notifier) tenants() []string {
	var all []string
	for _, c := range n.config.Channels {
		all = append(all, c.Tenants...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// routing returns a tenant's channels with their states.
func (n *Notifier) routing(tx gatehouse.NotificationReader, tenant string) (*routing, error) {
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
