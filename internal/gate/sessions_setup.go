package gate

import (
	"context"
	"errors"
	"net/url"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// CreateSetupLink makes a person's one-time link. Its creator could sign in as that
// person, so only administrators create links, and the log records it.
func (g *Gate) CreateSetupLink(ctx context.Context, principal string) (*gatehouse.NewSetupLink, error) {
	token, hash := newSecret(setupPrefix)
	out := &gatehouse.NewSetupLink{
		ID: NewID("sul"), Token: token, Path: gatehouse.SetupPath + "?" + url.Values{"token": {token}}.Encode(),
	}
	change := func(tx gatehouse.Tx, c *gatehouse.Caller, p *gatehouse.Principal) (*gatehouse.NewSetupLink, error) {
		if !maySignIn(p) {
			return nil, gatehouse.E(gatehouse.CodeInvalid, "only an enabled person with a role can sign in")
		}
		l := &gatehouse.SetupLink{
			ID: out.ID, Tenant: p.Tenant, PrincipalID: p.ID, Hash: hash, CreatedAt: tx.Now(),
			ExpiresAt: tx.Now().Add(gatehouse.SetupLinkTTL),
		}
		if err := tx.InsertSetupLink(l); err != nil {
			return nil, err
		}
		if err := restartApproverDelay(tx, c, p); err != nil {
			return nil, err
		}
		if err := recordKey(tx, c, p, "setup_link.created", l.ID); err != nil {
			return nil, err
		}
		out.PrincipalID, out.ExpiresAt = p.ID, l.ExpiresAt
		return out, nil
	}
	return changePrincipal(ctx, g, principal, change)
}

// FindSetupLink returns a link and the person it is for.
func (g *Gate) FindSetupLink(
	ctx context.Context, token string,
) (l *gatehouse.SetupLink, p *gatehouse.Principal, err error) {
	err = g.Store.ViewQueues(ctx, func(q gatehouse.ReadQueues) (err error) {
		l, p, err = findSetupLink(q, token)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return l, p, nil
}

// linkReader finds a set-up link and continues in its tenant.
type linkReader[T gatehouse.ReadTx] interface {
	gatehouse.CredentialReader
	In(tenant string) T
}

func setupLinkDenied() error {
	return gatehouse.E(gatehouse.CodeUnauthenticated,
		"this set-up link is not valid, or was used; an administrator makes a new one")
}

func findSetupLink[T gatehouse.ReadTx](
	q linkReader[T], token string,
) (*gatehouse.SetupLink, *gatehouse.Principal, error) {
	denied := setupLinkDenied()
	hash, ok := hashOf(setupPrefix, token)
	if !ok {
		return nil, nil, denied
	}
	l, err := q.FindSetupLink(hash)
	switch {
	case errors.Is(err, gatehouse.ErrNotFound):
		return nil, nil, denied
	case err != nil:
		return nil, nil, err
	case l.UsedAt != nil:
		return nil, nil, denied
	}
	tx := q.In(l.Tenant)
	if !tx.Now().Before(l.ExpiresAt) {
		return nil, nil, gatehouse.E(gatehouse.CodeExpired, "this set-up link has expired; an administrator makes a new one")
	}
	p, err := tx.FindPrincipal(l.PrincipalID)
	if err == nil && !maySignIn(p) {
		return nil, nil, denied
	}
	return l, p, err
}

// RedeemSetupLink consumes a link and begins a session.
func (g *Gate) RedeemSetupLink(
	ctx context.Context, token string, b gatehouse.Browser,
) (out *gatehouse.SignedIn, err error) {
	n := newSignIn(gatehouse.SignInSetup, "", b)
	err = g.UpdateQueues(ctx, func(q gatehouse.Queues) error {
		l, p, err := findSetupLink(q, token)
		if err != nil {
			return err
		}
		tx := q.In(l.Tenant)
		switch err := tx.UseSetupLink(l.ID); {
		case errors.Is(err, gatehouse.ErrConflict): // another request used it meanwhile
			return setupLinkDenied()
		case err != nil:
			return err
		}
		err = tx.AppendLeaf(&gatehouse.Leaf{
			Tenant: l.Tenant, Type: "setup_link.used", Subject: l.ID, Actor: p.ID,
			Data: usecase.Object(map[string]any{"principal": p.ID}),
		})
		if err != nil {
			return err
		}
		out, err = n.begin(q, p)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
