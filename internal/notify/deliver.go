package notify

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/failpoint"
)

const (
	// claim limits the messages that one round takes from a channel's queue. together limits the
	// messages that are sent at the same time.
	claim    = 16
	together = 4
	// callTime limits one call of a channel.
	callTime = 20 * time.Second
	// maxError limits a stored error text, in characters.
	maxError = 300
)

// Schedule is the wait after each failed attempt, as in Standard Webhooks 1.0.0. After the last
// attempt, the message has failed.
var Schedule = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
	10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// Deliver sends one round of a channel's due messages. more says that further messages may be due.
func (n *Notifier) Deliver(ctx context.Context, channel string) (more bool, err error) {
	c := n.channel(channel)
	if c == nil {
		return false, errors.New("notify: no channel " + channel)
	}
	var next time.Time
	var now time.Time
	err = n.store.ViewQueues(ctx, func(q gatehouse.ReadQueues) (err error) {
		now = q.Now()
		next, err = q.NextNotificationAt(channel)
		return err
	})
	if err != nil || next.IsZero() {
		return false, err
	}
	if next.After(now) {
		return n.probe(ctx, c, now)
	}
	var claimed []*gatehouse.Notification
	err = n.store.UpdateQueues(ctx, func(q gatehouse.Queues) (err error) {
		claimed, err = q.ClaimNotifications(channel, n.config.Owner, n.config.Lease, claim)
		return err
	})
	if err != nil {
		return false, err
	}
	var work sync.WaitGroup
	errs := make([]error, len(claimed))
	places := make(chan struct{}, together)
	for i, m := range claimed {
		places <- struct{}{}
		work.Go(func() {
			defer func() { <-places }()
			errs[i] = n.deliver(ctx, c, m)
		})
	}
	work.Wait()
	return len(claimed) == claim, errors.Join(errs...)
}

func (n *Notifier) channel(name string) *Configured {
	for _, c := range n.config.Channels {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// deliver sends one claimed message and records the outcome.
func (n *Notifier) deliver(ctx context.Context, c *Configured, m *gatehouse.Notification) error {
	message, muted, err := n.compose(ctx, c, m)
	if errors.Is(err, errCardWaits) {
		return n.record(ctx, c, m, Sent{}, err)
	}
	if err != nil {
		return err
	}
	n.reach("composed")
	if muted != "" {
		// An earlier attempt may have posted the question without recording it. If so, record that
		// message now, because its card must show the outcome.
		if f, ok := c.Channel.(Finder); ok && m.Kind == gatehouse.NotifyAsked && m.Attempts > 1 {
			if ref := f.Find(ctx, m.ID, m.CreatedAt); ref != "" {
				return n.record(ctx, c, m, Sent{Delivered: true, Ref: ref}, nil)
			}
		}
		return n.record(ctx, c, m, Sent{}, errMuted(muted))
	}
	sent, err := n.send(ctx, c, m, message)
	if m.Kind == gatehouse.NotifyHeartbeat {
		sent.NextHeartbeat = heartbeatInterval(message.Action)
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err() // the notifier stops: the lease expires, and the message is sent again
	}
	n.reach("called")
	failpoint.Here("notify/called")
	if err != nil {
		n.pauseProbes(c.Name, refusal(err).After)
	}
	if r := refusal(err); err != nil && r.Abandoned != "" && n.config.Withdraw != nil {
		if err := n.config.Withdraw(ctx, m.Tenant, m.ActionID, r.Abandoned); err != nil {
			return err // the lease expires, and the message is sent again
		}
	}
	return n.record(ctx, c, m, sent, err)
}

// send calls the channel. If a question's message is kept up to date, its outcome is shown there
// instead of in a new message.
func (n *Notifier) send(ctx context.Context, c *Configured, row *gatehouse.Notification, m *Message) (Sent, error) {
	call, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	k, keeps := c.Channel.(Keeper)
	if keeps && m.Card != "" && (m.Kind == gatehouse.NotifyDecided || m.Kind == gatehouse.NotifyExpired) {
		err := n.updateCard(call, c, k, row, m.Card)
		if !k.Gone(err) {
			return Sent{Delivered: true, Ref: m.Card}, err
		}
		m.Card = ""
	}
	return c.Send(call, m)
}

// errMuted is the reason why a message is deliberately not sent.
type errMuted string

func (e errMuted) Error() string { return string(e) }

// record stores the outcome of an attempt, unless another holder has taken over the claim.
func (n *Notifier) record(
	ctx context.Context, c *Configured, m *gatehouse.Notification, sent Sent, failure error,
) error {
	var status gatehouse.NotificationStatus
	var moved change
	err := n.store.Update(ctx, m.Tenant, func(tx gatehouse.Tx) (err error) {
		row := *m
		n.settle(&row, tx.Now(), sent, failure)
		if m.Kind == gatehouse.NotifyHeartbeat {
			queueHeartbeat(&row, tx.Now(), sent, failure)
		}
		if status = row.Status; failure == nil && !row.Finished() {
			status = gatehouse.NotificationDelivered // a heartbeat, which is queued again
		}
		if err := tx.UpdateNotification(&row, gatehouse.NotificationSent, m.Generation); err != nil {
			return err
		}
		if err := n.recordDevices(tx, m, sent.Devices); err != nil {
			return err
		}
		if err := posted(tx, c, &row, sent, failure); err != nil {
			return err
		}
		moved, err = n.recordHealth(tx, c, &row, m.LastError == "", failure)
		return err
	})
	if errors.Is(err, gatehouse.ErrConflict) {
		return nil
	}
	if err != nil {
		return err
	}
	failpoint.Here("notify/recorded")
	if moved.alerted {
		n.hints.Notify(Topic)
	}
	if m.Kind == gatehouse.NotifyAsked {
		n.hints.Notify(TopicCards)
	}
	if m.Kind == gatehouse.NotifyTest {
		n.hints.Notify(m.ID) // a caller may be waiting for this message
	}
	n.measure(c.Name, status, moved)
	if failure != nil && status != gatehouse.NotificationMuted {
		n.log.WarnContext(ctx, "notify: not sent", "channel", c.Name, "notification", m.ID, "attempt", m.Attempts,
			"status", status, "error", shortError(failure))
	}
	return nil
}

func (n *Notifier) measure(channel string, status gatehouse.NotificationStatus, moved change) {
	if n.metrics == nil {
		return
	}
	result := string(status)
	if status == gatehouse.NotificationQueued {
		result = "retry"
	}
	n.metrics.Notified(channel, result)
	if moved.known {
		n.metrics.ChannelFailing(channel, moved.failing)
	}
}

// settle moves a claimed message to its next state.
func (n *Notifier) settle(m *gatehouse.Notification, now time.Time, sent Sent, failure error) {
	m.LeaseOwner, m.DueAt, m.FinishedAt, m.LastError = "", nil, &now, ""
	var muted errMuted
	switch {
	case errors.As(failure, &muted):
		m.Status, m.LastError = gatehouse.NotificationMuted, string(muted)
		m.Attempts--
	case failure == nil:
		m.Status, m.Ref = gatehouse.NotificationAccepted, sent.Ref
		if sent.Delivered {
			m.Status = gatehouse.NotificationDelivered
		}
	default:
		r := refusal(failure)
		m.LastError = shortError(failure)
		m.Status = gatehouse.NotificationFailed
		if r.Final || r.Gone || m.Attempts > len(Schedule) || m.Kind == gatehouse.NotifyTest && m.Data != weekly {
			return
		}
		wait := Schedule[m.Attempts-1]
		due := now.Add(max(wait+rand.N(wait/10+1), min(r.After, 24*time.Hour)))
		m.Status, m.DueAt, m.FinishedAt = gatehouse.NotificationQueued, &due, nil
	}
}

func shortError(err error) string {
	text, _ := card.Truncate(card.Terminal(err.Error()), maxError)
	return text
}
