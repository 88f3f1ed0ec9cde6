package app

import (
	"context"
	"errors"
	"net/url"

	"github.com/gatehouse-dev/gatehouse"
)

// CreateSetupLink makes a person's one-time link. Who makes it could sign in
// as that person: that is why it is an administrator's, and in the log.
func (g *Gate) CreateSetupLink(ctx context.Context, principal string) (*gatehouse.NewSetupLink, error) {
	token, hash := newSecret(setupPrefix)
	out := &gatehouse.NewSetupLink{
		ID: NewID("sul"), Token: token, Path: gatehouse.SetupPath + "?" + url.Values{"token": {token}}.Encode(),
	}
	err := g.changePrincipal(ctx, principal, func(tx gatehouse.Tx, c *gatehouse.Caller, p *gatehouse.Principal) error {
		if err := answered(tx, c); err != nil {
			return err
		}
		if !maySignIn(p) {
			return gatehouse.E(gatehouse.CodeInvalid, "only a person who is enabled and has a role signs in")
		}
		l := &gatehouse.SetupLink{
			ID: out.ID, Tenant: p.Tenant, PrincipalID: p.ID, Hash: hash, CreatedAt: tx.Now(), ExpiresAt: tx.Now().Add(gatehouse.SetupLinkTTL),
		}
		if err := tx.InsertSetupLink(l); err != nil {
			return err
		}
		if err := renewed(tx, c, p); err != nil {
			return err
		}
		if err := recordKey(tx, c, p, "setup_link.created", l.ID); err != nil {
			return err
		}
		out.PrincipalID, out.ExpiresAt = p.ID, l.ExpiresAt
		return remember(tx, c, out)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// FindSetupLink tells whom a link is for.
func (g *Gate) FindSetupLink(ctx context.Context, token string) (l *gatehouse.SetupLink, p *gatehouse.Principal, err error) {
	err = g.store.View(ctx, func(tx gatehouse.ReadTx) (err error) {
		l, p, err = findSetupLink(tx, token)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return l, p, nil
}

func findSetupLink(tx gatehouse.ReadTx, token string) (*gatehouse.SetupLink, *gatehouse.Principal, error) {
	denied := gatehouse.E(gatehouse.CodeUnauthenticated, "this set-up link is not valid, or was used; an administrator makes a new one")
	hash, ok := hashOf(setupPrefix, token)
	if !ok {
		return nil, nil, denied
	}
	l, err := tx.FindSetupLink(hash)
	switch {
	case errors.Is(err, gatehouse.ErrNotFound):
		return nil, nil, denied
	case err != nil:
		return nil, nil, err
	case l.UsedAt != nil:
		return nil, nil, denied
	case !tx.Now().Before(l.ExpiresAt):
		return nil, nil, gatehouse.E(gatehouse.CodeExpired, "this set-up link has expired; an administrator makes a new one")
	}
	p, err := tx.FindPrincipal(l.Tenant, l.PrincipalID)
	if err == nil && !maySignIn(p) {
		return nil, nil, denied
	}
	return l, p, err
}

// RedeemSetupLink uses a link up and begins a session.
func (g *Gate) RedeemSetupLink(ctx context.Context, token string, b gatehouse.Browser) (out *gatehouse.SignedIn, err error) {
	n := newSignIn(gatehouse.SignInSetup, "", b)
	err = g.update(ctx, nil, func(tx gatehouse.Tx) error {
		l, p, err := findSetupLink(tx, token)
		if err != nil {
			return err
		}
		if err := tx.UseSetupLink(l.Tenant, l.ID); err != nil {
			return err
		}
		err = tx.AppendLeaf(&gatehouse.Leaf{
			Tenant: l.Tenant, Type: "setup_link.used", Subject: l.ID, Actor: p.ID, Data: object(map[string]any{"principal": p.ID}),
		})
		if err != nil {
			return err
		}
		out, err = n.begin(tx, p)
		return err
	})
	if err != nil {
		return nil, err
	}
	g.hints.Notify(TopicAudit)
	return out, nil
}
