package gate

import (
	"context"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// changeOwn changes what belongs to the person of a signed-in browser. A change
// that adds a way to sign in needs a proof besides the session: see CheckFresh.
func changeOwn[T any](ctx context.Context, g *Gate, fn onPrincipal[T]) (*T, error) {
	c, err := browserCaller(ctx)
	if err != nil {
		return nil, err
	}
	return usecase.Perform(ctx, g.Runner, usecase.Case{By: c}, func(tx gatehouse.Tx) (*T, error) {
		p, err := tx.FindPrincipal(c.Principal.ID)
		if err != nil {
			return nil, err
		}
		if !maySignIn(p) {
			return nil, signInFirst()
		}
		return fn(tx, c, p)
	})
}

// CreateOwnKey makes a further key of the caller, which is shown only here. It
// needs a fresh sign-in, or the caller's edit token.
func (g *Gate) CreateOwnKey(ctx context.Context, editToken string) (*gatehouse.Credentials, error) {
	if err := g.CheckFresh(ctx, editToken); err != nil {
		return nil, err
	}
	return changeOwn(ctx, g, newKey())
}

// RevokeOwnKey ends one of the caller's keys, at once; not_found for a key of
// another principal. It does not change a revoked key.
func (g *Gate) RevokeOwnKey(ctx context.Context, keyID string) error {
	change := func(tx gatehouse.Tx, c *gatehouse.Caller, p *gatehouse.Principal) (*gatehouse.Key, error) {
		keys, err := tx.ListKeys(p.ID)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(keys, func(k *gatehouse.Key) bool { return k.ID == keyID })
		switch {
		case at < 0:
			return nil, gatehouse.ErrNotFound
		case keys[at].RevokedAt != nil:
			return nil, nil
		}
		if err := tx.RevokeKey(keyID); err != nil {
			return nil, err
		}
		return nil, recordKey(tx, c, p, "key.revoked", keyID)
	}
	_, err := changeOwn(ctx, g, change)
	return usecase.NotFound(err, "key")
}

// RotateOwnEditToken gives the caller a new edit token, which is shown only here,
// and ends the old one. It needs a fresh sign-in, or the old token.
func (g *Gate) RotateOwnEditToken(ctx context.Context, editToken string) (*gatehouse.Credentials, error) {
	if err := g.CheckFresh(ctx, editToken); err != nil {
		return nil, err
	}
	token, hash := newSecret(editPrefix)
	out := &gatehouse.Credentials{EditToken: token}
	change := func(tx gatehouse.Tx, c *gatehouse.Caller, p *gatehouse.Principal) (*gatehouse.Credentials, error) {
		out.ID = p.ID
		if err := tx.PutEditToken(p.ID, hash); err != nil {
			return nil, err
		}
		if err := recordKey(tx, c, p, "edit_token.rotated", p.ID); err != nil {
			return nil, err
		}
		return out, nil
	}
	return changeOwn(ctx, g, change)
}

// EndOtherSessions ends every session of the caller except the present one, and returns how
// many live ones it ended. It also revokes expired ones, so that the server forgets their browsers.
func (g *Gate) EndOtherSessions(ctx context.Context) (int, error) {
	change := func(tx gatehouse.Tx, c *gatehouse.Caller, p *gatehouse.Principal) (*int, error) {
		var others []*gatehouse.Session
		for cursor := ""; ; {
			page, err := tx.ListSessions(p.ID, true, cursor, gatehouse.MaxLimit)
			if err != nil {
				return nil, err
			}
			for _, s := range page.Items {
				if s.ID != c.Session.ID && s.RevokedAt == nil {
					others = append(others, s)
				}
			}
			if cursor = page.NextCursor; cursor == "" {
				break
			}
		}
		ended := 0
		for _, s := range others {
			if s.Live(tx.Now()) {
				ended++
			}
			if err := endSession(tx, s, p.ID, "revoked with all others"); err != nil {
				return nil, err
			}
		}
		return &ended, nil
	}
	n, err := changeOwn(ctx, g, change)
	if err != nil {
		return 0, err
	}
	return *n, nil
}

// stillAdmin returns an error when a principal, read again under a lock, is no
// longer an enabled administrator: a caller who was disabled or lost the role since
// the request began changes nothing. If two administrators disable each other at
// the same moment, one remains.
func stillAdmin(p *gatehouse.Principal) error {
	if p.Disabled {
		return gatehouse.E(gatehouse.CodeUnauthenticated, "you have been disabled")
	}
	return Require(&gatehouse.Caller{Principal: p}, gatehouse.RoleAdmin)
}

// lockPrincipals reads two principals by id, which may be the same, and locks them
// against changes until the end of the transaction.
func lockPrincipals(tx gatehouse.IdentityWriter, one, other string) (p, q *gatehouse.Principal, err error) {
	list, err := tx.LockPrincipals([]string{one, other})
	for _, found := range list {
		if found.ID == one {
			p = found
		}
		if found.ID == other {
			q = found
		}
	}
	if err == nil && (p == nil || q == nil) {
		err = gatehouse.ErrNotFound
	}
	return p, q, err
}
