package gate

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/link"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

var _ gatehouse.UnsubscribeService = (*Gate)(nil)

// unsubscribeSeparator separates the parts of an unsubscribe token: the signed claims, the
// id of the person, and the channel.
const unsubscribeSeparator = "."

// UnsubscribeToken returns the token by which a person switches off digests on a
// channel; "" if no master key is configured. It is for the notifier, and needs no caller.
func (g *Gate) UnsubscribeToken(
	ctx context.Context, to *gatehouse.Principal, channel string,
) (token string, err error) {
	if g.config.Master == nil {
		return "", nil
	}
	err = g.Update(ctx, to.Tenant, nil, func(tx gatehouse.Tx) error {
		k, secret, err := g.linkKey(tx, to.Tenant)
		if err != nil {
			return err
		}
		claims := unsubscribeClaims(k, to.ID, channel)
		claims.Expires = tx.Now().Add(gatehouse.MaxLinkTTL)
		token = strings.Join([]string{link.Sign(secret, claims), to.ID, channel}, unsubscribeSeparator)
		return nil
	})
	return token, err
}

func unsubscribeClaims(k *gatehouse.RingKey, person, channel string) link.Claims {
	return link.Claims{
		Key: k.Number, Purpose: link.Unsubscribe, Tenant: k.Tenant, Subject: channel, Recipient: person,
	}
}

// verifyUnsubscribe looks up the key, and checks the MAC before any other lookup.
func (g *Gate) verifyUnsubscribe(
	ctx context.Context, token string,
) (k *gatehouse.RingKey, person, channel string, err error) {
	wrong := badToken("this is not a link of Gatehouse, or it was cut off: open it from the mail again")
	parts := strings.SplitN(token, unsubscribeSeparator, 3)
	t, err := link.Parse(parts[0])
	if err != nil || len(parts) != 3 {
		return nil, "", "", wrong
	}
	err = g.Store.ReadQueues(ctx, func(q gatehouse.ReadQueues) (err error) {
		k, err = q.FindRingKey(t.Key())
		return err
	})
	if errors.Is(err, gatehouse.ErrNotFound) {
		return nil, "", "", wrong
	}
	if err != nil {
		return nil, "", "", err
	}
	person, channel = parts[1], parts[2]
	secret, err := g.ringSecret(k)
	if err != nil || !t.Verify(secret) || !t.HasClaims(unsubscribeClaims(k, person, channel)) {
		return nil, "", "", wrong
	}
	err = g.Store.View(ctx, k.Tenant, func(tx gatehouse.ReadTx) error {
		fresh, err := tx.FindRingKey(k.Number)
		switch {
		case err != nil:
			return err
		case fresh.StateAt(tx.Now()) == gatehouse.RingKeyRevoked:
			return badToken("an administrator has revoked the key of this link")
		case !tx.Now().Before(t.Expires()), !fresh.Accepted(tx.Now()):
			return gatehouse.E(gatehouse.CodeLinkExpired,
				"the link is too old: sign in, and open Settings, Notifications")
		}
		return nil
	})
	return k, person, channel, err
}

// findUnsubscription returns the channel and person of an unsubscribe link, and the stored preference.
func findUnsubscription(
	tx gatehouse.ReadTx, person, channel string,
) (*gatehouse.Unsubscription, *gatehouse.Preference, error) {
	p, err := tx.FindPrincipal(person)
	if err != nil {
		return nil, nil, err
	}
	stored, err := tx.ListPreferences(person)
	if err != nil {
		return nil, nil, err
	}
	out := &gatehouse.Preference{Tenant: p.Tenant, PrincipalID: person, Channel: channel}
	if i := slices.IndexFunc(stored, func(s *gatehouse.Preference) bool { return s.Channel == channel }); i >= 0 {
		out = stored[i]
	}
	return &gatehouse.Unsubscription{Person: p.Name, Channel: channel, Off: out.Mutes(gatehouse.TopicDigests)}, out, nil
}

// FindUnsubscription returns the person and the channel of an unsubscribe link, and changes nothing.
func (g *Gate) FindUnsubscription(ctx context.Context, token string) (out *gatehouse.Unsubscription, err error) {
	k, person, channel, err := g.verifyUnsubscribe(ctx, token)
	if err != nil {
		return nil, err
	}
	err = g.Store.View(ctx, k.Tenant, func(tx gatehouse.ReadTx) (err error) {
		out, _, err = findUnsubscription(tx, person, channel)
		return err
	})
	return out, usecase.NotFound(err, "person")
}

// Unsubscribe mutes a person's digests on a channel. A program that checks the links of mails may cause a call.
// Therefore the link ends only digests, and the log names the link as the cause, not the person.
func (g *Gate) Unsubscribe(ctx context.Context, token string) (out *gatehouse.Unsubscription, err error) {
	k, person, channel, err := g.verifyUnsubscribe(ctx, token)
	if err != nil {
		return nil, err
	}
	err = g.Update(ctx, k.Tenant, nil, func(tx gatehouse.Tx) error {
		var p *gatehouse.Preference
		if out, p, err = findUnsubscription(tx, person, channel); err != nil || out.Off {
			return err
		}
		now := tx.Now()
		p.Muted, p.ChangedAt = append(p.Muted, gatehouse.TopicDigests), &now
		p.Muted = gatehouse.SortTopics(p.Muted)
		out.Off = true
		return putPreference(tx, p, "system", "unsubscribe link")
	})
	return out, usecase.NotFound(err, "person")
}
