package notify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/failpoint"
)

// TopicCards is the hint topic for posted cards that must be rewritten.
const TopicCards = "cards"

const (
	// maxCardWait bounds the wait between two attempts to write a card, unless the receiver asks for a longer one.
	maxCardWait = 10 * time.Minute
	// writerBusy is the shortest wait of a message while another process writes its card.
	writerBusy = 5 * time.Second
)

// Deciding describes the decisions that people can make on a message itself.
type Deciding struct {
	// Value identifies the tenant, the action and the start of its digest.
	Value string
	// Approve and Reject are true if the message has that button; Note is the reason why a
	// button is missing.
	Approve, Reject bool
	Note            string
}

// cardsToUpdate lists the actions whose cards may need an update.
func (n *Notifier) cardsToUpdate(entries []trigger) (list []string) {
	if !slices.ContainsFunc(n.config.Channels, func(c *Configured) bool { _, ok := c.Channel.(Keeper); return ok }) {
		return nil
	}
	for _, e := range entries {
		l := e.leaf
		if l.ActionID != "" && strings.HasPrefix(l.Type, "hitl.") && l.Type != "hitl.proposed" &&
			!slices.Contains(list, l.ActionID) {
			list = append(list, l.ActionID)
		}
	}
	return list
}

// posted records a message that must be kept up to date from now on.
func posted(tx gatehouse.SlackWriter, c *Configured, row *gatehouse.Notification, sent Sent, failure error) error {
	if _, keeps := c.Channel.(Keeper); !keeps || failure != nil || sent.Ref == "" || row.ActionID == "" {
		return nil //nolint:nilerr // a failed message was not posted
	}
	switch row.Kind {
	case gatehouse.NotifyAsked:
	case gatehouse.NotifyDecided, gatehouse.NotifyExpired:
		if sent.Shown == "" {
			return nil // updateCard has recorded what the card shows
		}
	default:
		return nil
	}
	return tx.PutCard(&gatehouse.PostedCard{
		Tenant: row.Tenant, Channel: row.Channel, ActionID: row.ActionID, Ref: sent.Ref, Shown: sent.Shown,
	})
}

// WriteCards writes one round of a channel's due cards. more says that further cards may be due.
func (n *Notifier) WriteCards(ctx context.Context, channel string) (more bool, err error) {
	c := n.channel(channel)
	if c == nil {
		return false, errors.New("notify: no channel " + channel)
	}
	k, ok := c.Channel.(Keeper)
	if !ok {
		return false, nil
	}
	var next, now time.Time
	err = n.store.ViewQueues(ctx, func(q gatehouse.ReadQueues) (err error) {
		now = q.Now()
		next, err = q.NextCardAt(channel)
		return err
	})
	if err != nil || next.IsZero() || next.After(now) {
		return false, err
	}
	var claimed []*gatehouse.PostedCard
	err = n.store.UpdateQueues(ctx, func(q gatehouse.Queues) (err error) {
		claimed, err = q.ClaimCards(channel, n.config.Owner, n.config.Lease, together)
		return err
	})
	if err != nil {
		return false, err
	}
	var errs []error
	for _, posted := range claimed {
		call, cancel := context.WithTimeout(ctx, callTime)
		failure := n.write(call, k, posted)
		cancel()
		if failure != nil && ctx.Err() == nil {
			n.log.WarnContext(ctx, "notify: a card was not written", "channel", channel, "action", posted.ActionID,
				"attempt", posted.Attempts, "error", shortError(failure))
		}
		errs = append(errs, n.written(ctx, k, posted, failure))
	}
	return len(claimed) == together, errors.Join(errs...)
}

// updateCard rewrites the card of a message's action now. While another process writes the card, the
// message waits.
func (n *Notifier) updateCard(
	ctx context.Context, c *Configured, k Keeper, row *gatehouse.Notification, ref string,
) error {
	var held *gatehouse.PostedCard
	err := n.store.Update(ctx, row.Tenant, func(tx gatehouse.Tx) (err error) {
		_, err = tx.FindCard(c.Name, row.ActionID)
		if errors.Is(err, gatehouse.ErrNotFound) {
			err = tx.PutCard(
				&gatehouse.PostedCard{Tenant: row.Tenant, Channel: c.Name, ActionID: row.ActionID, Ref: ref},
			)
		}
		if err != nil {
			return err
		}
		held, err = tx.ClaimCard(c.Name, row.ActionID, n.config.Owner, n.config.Lease)
		return err
	})
	if errors.Is(err, gatehouse.ErrConflict) {
		return &Refusal{Recipient: true, After: writerBusy, Err: errors.New("another process is writing the card")}
	}
	if err != nil {
		return err
	}
	failure := n.write(ctx, k, held)
	if err := n.written(ctx, k, held, failure); err != nil {
		return err
	}
	return failure
}

// write updates a claimed card to the stored state, and records what the card shows.
func (n *Notifier) write(ctx context.Context, k Keeper, posted *gatehouse.PostedCard) error {
	var m *Message
	err := n.store.View(ctx, posted.Tenant, func(tx gatehouse.ReadTx) (err error) {
		m, err = n.cardOf(tx, k, posted)
		return err
	})
	if err != nil || m == nil {
		return err
	}
	n.reach("card composed")
	shown := k.Shown(m)
	if shown == posted.Shown {
		return nil
	}
	if err := k.Rewrite(ctx, posted.Ref, m); err != nil {
		return err
	}
	failpoint.Here("notify/card-written")
	posted.Shown = shown
	return nil
}

// written records the outcome of a write, and releases the claim of the card. After a failure that may pass, the card
// is due again.
func (n *Notifier) written(ctx context.Context, k Keeper, posted *gatehouse.PostedCard, failure error) error {
	err := n.store.Update(context.WithoutCancel(ctx), posted.Tenant, func(tx gatehouse.Tx) error {
		row := *posted
		row.DueAt, row.LastError = nil, ""
		switch r := refusal(failure); {
		case failure == nil:
			row.Attempts = 0
		case r.Final || k.Gone(failure):
			row.LastError = shortError(failure)
		default:
			row.LastError = shortError(failure)
			wait := min(5*time.Second<<min(row.Attempts, 10), maxCardWait)
			due := tx.Now().Add(max(wait, min(r.After, 24*time.Hour)))
			row.DueAt = &due
		}
		return tx.UpdateCard(&row, posted.Generation)
	})
	if errors.Is(err, gatehouse.ErrConflict) {
		return nil // another process has claimed the card
	}
	return err
}

// cardOf is the present content of a card, nil if the action no longer exists or has no approval.
func (n *Notifier) cardOf(tx gatehouse.ReadTx, k Keeper, posted *gatehouse.PostedCard) (*Message, error) {
	a, err := tx.FindAction(posted.ActionID)
	if errors.Is(err, gatehouse.ErrNotFound) || err == nil && a.Approval == nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := &Message{Tenant: posted.Tenant, Kind: gatehouse.NotifyDecided, At: tx.Now(), AsOf: tx.Now(), Attempt: 1}
	switch a.Approval.Status {
	case gatehouse.ApprovalRequested:
		m.Kind = gatehouse.NotifyAsked
		if !tx.Now().Before(a.Approval.ExpiresAt) {
			m.Kind = gatehouse.NotifyExpired
		}
	case gatehouse.ApprovalExpired:
		m.Kind = gatehouse.NotifyExpired
	case gatehouse.ApprovalApproved:
		m.Event = "hitl.approved"
	case gatehouse.ApprovalRejected:
		m.Event = "hitl.rejected"
	default:
		m.Event = "hitl.canceled"
	}
	n.about(m, a)
	if m.Kind == gatehouse.NotifyAsked {
		err = n.addDecisions(tx, k, m, a)
	}
	return m, err
}

// shownLimits limit how much of a change a message shows.
var shownLimits = card.Limits{Fields: MaxDiffLines, Value: maxLine / 2, Keys: 1, Lines: 1, Total: 8 * maxLine}

// addDecisions adds the complete question and the possible decisions to a message that is kept up to date.
func (n *Notifier) addDecisions(tx gatehouse.ReadTx, k Keeper, m *Message, a *gatehouse.Action) error {
	m.Facts = append(m.Facts,
		Fact{"Writes", line(changeText(a), maxWhy)},
		Fact{"Policy", line(strings.TrimSuffix(
			fmt.Sprintf("version %d: %s", a.Policy.Version, strings.Join(a.Policy.Rules, ", ")), ": "), maxLine)},
	)
	if !k.Decides() || n.config.DecideUpTo == nil {
		return nil
	}
	upTo, err := n.config.DecideUpTo(tx, a.Tenant)
	if err != nil {
		return err
	}
	open, err := tx.OpenSlackClicks(a.ID)
	if err != nil {
		return err
	}
	d := &Deciding{Value: strings.Join([]string{"1", a.Tenant, a.ID, DigestPrefix(a.Digest)}, "|")}
	m.Deciding = d
	hidden, why := card.Hidden(a, shownLimits)
	switch {
	case open > 0:
		d.Note = "Recording an answer…"
	case a.RiskLevel > upTo:
		d.Note = "Actions of level " + a.RiskLevel.String() + " can be decided only in Gatehouse."
	case hidden || m.cut || m.DiffMore > 0 || a.ArtifactDiff != nil:
		d.Reject = true
		d.Note = "This card does not show all of the change. Open it in Gatehouse to approve."
		if len(why) > 0 {
			d.Note = "This card does not show all of the change: " + strings.Join(why, "; ") +
				". Open it in Gatehouse to approve."
		}
	default:
		d.Approve, d.Reject = true, true
	}
	return nil
}

// changeText names the operation and the fields that it writes.
func changeText(a *gatehouse.Action) string {
	text := a.Connector + " " + a.Operation + " on " + a.Target.EntityType + " " + a.Target.EntityRef
	if n := len(a.Target.EntityRefs); n > 0 {
		text = fmt.Sprintf("%s %s on %d of %s", a.Connector, a.Operation, n, a.Target.EntityType)
	}
	var fields []string
	named := make(map[string]bool)
	for _, c := range card.Written(a) {
		if !named[c.Path] {
			fields, named[c.Path] = append(fields, c.Path), true
		}
	}
	if len(fields) == 0 {
		return text
	}
	return text + ": " + strings.Join(fields, ", ")
}

// DigestPrefix is the part of a digest that a card shows.
func DigestPrefix(d gatehouse.Digest) string {
	return string(d)[:min(len(d), gatehouse.DigestPrefix)]
}
