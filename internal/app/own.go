package app

import (
	"context"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// changeOwn changes what belongs to the person of a signed-in browser. What
// gives another way in needs a proof besides the session: see CheckFresh.
func (g *Gate) changeOwn(ctx context.Context, fn func(gatehouse.Tx, *gatehouse.Caller, *gatehouse.Principal) error) error {
	c, err := browserCaller(ctx)
	if err != nil {
		return err
	}
	err = g.update(ctx, nil, func(tx gatehouse.Tx) error {
		p, err := tx.FindPrincipal(c.Principal.Tenant, c.Principal.ID)
		if err != nil {
			return err
		}
		if !maySignIn(p) {
			return signInFirst()
		}
		return fn(tx, c, p)
	})
	if err == nil {
		g.hints.Notify(TopicAudit)
	}
	return err
}

// CreateOwnKey makes another key of the caller's, shown this once. It needs a
// fresh sign-in, or the caller's edit token.
func (g *Gate) CreateOwnKey(ctx context.Context, editToken string) (*gatehouse.Credentials, error) {
	if err := g.CheckFresh(ctx, editToken); err != nil {
		return nil, err
	}
	secret, hash := newSecret(keyPrefix)
	out := &gatehouse.Credentials{Key: secret, KeyID: NewID("key")}
	err := g.changeOwn(ctx, func(tx gatehouse.Tx, c *gatehouse.Caller, p *gatehouse.Principal) error {
		if err := answered(tx, c); err != nil {
			return err
		}
		out.ID = p.ID
		err := tx.InsertKey(&gatehouse.Key{ID: out.KeyID, Tenant: p.Tenant, PrincipalID: p.ID, Hash: hash, CreatedAt: tx.Now()})
		if err != nil {
			return err
		}
		if err := recordKey(tx, c, p, "key.created", out.KeyID); err != nil {
			return err
		}
		return remember(tx, c, out)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// RevokeOwnKey ends a key of the caller's, at once; not_found for a key of
// anybody else. Of a revoked key it changes nothing.
func (g *Gate) RevokeOwnKey(ctx context.Context, keyID string) error {
	err := g.changeOwn(ctx, func(tx gatehouse.Tx, c *gatehouse.Caller, p *gatehouse.Principal) error {
		keys, err := tx.ListKeys(p.Tenant, p.ID)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(keys, func(k *gatehouse.Key) bool { return k.ID == keyID })
		switch {
		case at < 0:
			return gatehouse.ErrNotFound
		case keys[at].RevokedAt != nil:
			return nil
		}
		if err := tx.RevokeKey(p.Tenant, keyID); err != nil {
			return err
		}
		return recordKey(tx, c, p, "key.revoked", keyID)
	})
	return notFound(err, "key")
}

// RotateOwnEditToken gives the caller a new edit token, shown this once, and
// ends the old one. It needs a fresh sign-in, or the old one.
func (g *Gate) RotateOwnEditToken(ctx context.Context, editToken string) (*gatehouse.Credentials, error) {
	if err := g.CheckFresh(ctx, editToken); err != nil {
		return nil, err
	}
	token, hash := newSecret(editPrefix)
	out := &gatehouse.Credentials{EditToken: token}
	err := g.changeOwn(ctx, func(tx gatehouse.Tx, c *gatehouse.Caller, p *gatehouse.Principal) error {
		if err := answered(tx, c); err != nil {
			return err
		}
		out.ID = p.ID
		if err := tx.PutEditToken(p.Tenant, p.ID, hash); err != nil {
			return err
		}
		if err := recordKey(tx, c, p, "edit_token.rotated", p.ID); err != nil {
			return err
		}
		return remember(tx, c, out)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// EndOtherSessions ends every session of the caller's but the one it asks
// from, and returns how many those were.
func (g *Gate) EndOtherSessions(ctx context.Context) (ended int, err error) {
	err = g.changeOwn(ctx, func(tx gatehouse.Tx, c *gatehouse.Caller, p *gatehouse.Principal) error {
		ended = 0
		var others []*gatehouse.Session
		for cursor := ""; ; {
			page, err := tx.ListSessions(p.Tenant, p.ID, false, cursor, gatehouse.MaxLimit)
			if err != nil {
				return err
			}
			for _, s := range page.Items {
				if s.ID != c.Session.ID {
					others = append(others, s)
				}
			}
			if cursor = page.NextCursor; cursor == "" {
				break
			}
		}
		for _, s := range others {
			if err := endSession(tx, s, p.ID, "revoked with all others"); err != nil {
				return err
			}
		}
		ended = len(others)
		return nil
	})
	return ended, err
}

// stillAdmin tells why a principal, read anew and locked within a change, is
// not its administrator: somebody who was disabled, or has lost the role, since
// the request began changes nothing. Of two administrators who disable each
// other at the same moment one remains.
func stillAdmin(p *gatehouse.Principal) error {
	if p.Disabled {
		return gatehouse.E(gatehouse.CodeUnauthenticated, "you have been disabled")
	}
	return require(&gatehouse.Caller{Principal: p}, gatehouse.RoleAdmin)
}

// lockPrincipals reads two principals, which may be the same, by id and keeps
// them from changing until the end of the transaction.
func lockPrincipals(tx gatehouse.Tx, tenant, one, other string) (p, q *gatehouse.Principal, err error) {
	list, err := tx.PrincipalsForShare(tenant, []string{one, other})
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
