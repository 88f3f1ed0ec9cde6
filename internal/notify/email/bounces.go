package email

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

// maxReason bounds the stored text of a report, in characters.
const maxReason = 300

// NamedChannel is a configured channel with its name.
type NamedChannel struct {
	Name    string
	Tenants []string
	*Channel
}

// Bounces takes the mails that mail servers return.
type Bounces struct {
	Store    gatehouse.Store
	Channels []NamedChannel
	// Failed is called for each message that failed by a bounce, with its channel; it may be nil.
	Failed func(channel string)
	Log    *slog.Logger
}

var _ gatehouse.BounceService = (*Bounces)(nil)

// ReceiveBounce implements [gatehouse.BounceService]. The MAC is verified before the store is read.
func (b *Bounces) ReceiveBounce(ctx context.Context, recipient string, raw []byte) (*gatehouse.Bounce, error) {
	mail, unreadable := returnedMail(raw)
	to := []string{recipient}
	if recipient == "" && unreadable == nil {
		to = recipients(mail.Header)
	}
	tenant, about, ok := b.authentic(to)
	if !ok {
		return nil, gatehouse.E(gatehouse.CodeBadToken, "the mail was not sent to an envelope sender of this server")
	}
	out := &gatehouse.Bounce{Result: gatehouse.BounceIgnored}
	if unreadable != nil {
		return out, nil //nolint:nilerr // an unreadable mail has no report
	}
	r := readReport(mail)
	if r.action == "" {
		return out, nil
	}
	var channel string
	var err error
	out.Result, channel, err = b.record(ctx, tenant, about, r)
	if err != nil {
		return nil, err
	}
	b.Log.InfoContext(ctx, "mail returned", "notification", about.notification(), "tenant", tenant,
		"action", r.action, "status", r.status, "result", string(out.Result))
	if out.Result == gatehouse.BounceFailed && b.Failed != nil {
		b.Failed(channel)
	}
	return out, nil
}

// authentic finds the address that this server made, and its tenant.
func (b *Bounces) authentic(to []string) (tenant string, about returned, ok bool) {
	for _, address := range to {
		for i := range b.Channels {
			p := &b.Channels[i]
			if p.returns == nil {
				continue
			}
			if about, ok = p.returns.parse(address); !ok {
				continue
			}
			for _, tenant := range p.Tenants {
				if p.returns.verify(about, tenant) {
					return tenant, about, true
				}
			}
		}
	}
	return "", returned{}, false
}

// record stores a report's result for an accepted message. It does not change a message in another
// state, or one whose recipient has another address by now.
func (b *Bounces) record(
	ctx context.Context, tenant string, about returned, r report,
) (result gatehouse.BounceResult, channel string, err error) {
	err = b.Store.Update(ctx, tenant, func(tx gatehouse.Tx) error {
		result = gatehouse.BounceIgnored
		n, err := tx.FindNotification(about.notification())
		if errors.Is(err, gatehouse.ErrNotFound) {
			return nil // purged with the other old notifications
		}
		if err != nil {
			return err
		}
		if n.Status == gatehouse.NotificationSent {
			return gatehouse.E(gatehouse.CodeBusy, "the notification is being sent")
		}
		same, err := b.sentTo(tx, n, about)
		if err != nil || !same || n.Status != gatehouse.NotificationAccepted {
			return err
		}
		channel = n.Channel
		if r.action == "failed" {
			now := tx.Now()
			result, n.Status, n.FinishedAt = gatehouse.BounceFailed, gatehouse.NotificationFailed, &now
			n.LastError = r.reason("bounced: ")
		} else {
			result, n.LastError = gatehouse.BounceDelayed, r.reason("delayed: ")
		}
		return tx.UpdateNotification(n, gatehouse.NotificationAccepted, n.Generation)
	})
	if errors.Is(err, gatehouse.ErrConflict) {
		err = gatehouse.E(gatehouse.CodeBusy, "the notification has just changed")
	}
	return result, channel, err
}

// sentTo reports whether the notification's recipient has the address that the mail was sent to.
func (b *Bounces) sentTo(tx gatehouse.IdentityReader, n *gatehouse.Notification, about returned) (bool, error) {
	i := slices.IndexFunc(b.Channels, func(p NamedChannel) bool { return p.Name == n.Channel })
	if i < 0 || n.Recipient == "" {
		return false, nil
	}
	p, err := tx.FindPrincipal(n.Recipient)
	if err != nil {
		return false, err
	}
	return slices.Equal(recipientHash(b.Channels[i].address(p)), about.recipient), nil
}

// reason is one line of bounded length: the text comes from a foreign server.
func (r *report) reason(prefix string) string {
	text := prefix + strings.TrimSpace(r.status+" "+strings.TrimSpace(strings.TrimPrefix(r.diagnostic, r.status)))
	shown, hidden := card.Truncate(card.Terminal(text), maxReason)
	if hidden > 0 {
		shown += "…"
	}
	return shown
}
