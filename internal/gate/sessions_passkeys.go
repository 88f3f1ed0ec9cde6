package gate

import (
	"context"
	"errors"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// maxPasskeys bounds the passkeys of one principal.
const maxPasskeys = 20

// BeginCeremony stores a ceremony, which expires by the store's clock.
func (g *Gate) BeginCeremony(ctx context.Context, c *gatehouse.Ceremony) error {
	return g.UpdateQueues(ctx, func(q gatehouse.Queues) error {
		c.ExpiresAt = q.Now().Add(gatehouse.CeremonyTTL)
		return q.InsertCeremony(c)
	})
}

// TakeCeremony removes and returns a ceremony, so that only one answer to it
// counts.
func (g *Gate) TakeCeremony(ctx context.Context, hash [32]byte) (c *gatehouse.Ceremony, err error) {
	err = g.UpdateQueues(ctx, func(q gatehouse.Queues) (err error) {
		c, err = q.TakeCeremony(hash)
		return err
	})
	if errors.Is(err, gatehouse.ErrNotFound) {
		return nil, gatehouse.E(gatehouse.CodeUnauthenticated, "this took too long, or was already completed: begin again")
	}
	return c, err
}

// FindPasskey finds a passkey and its owner by the credential ID, for the
// ceremony that verifies the passkey.
func (g *Gate) FindPasskey(
	ctx context.Context, credentialID []byte,
) (k *gatehouse.Passkey, p *gatehouse.Principal, err error) {
	err = g.Store.ViewQueues(ctx, func(q gatehouse.ReadQueues) (err error) {
		if k, err = q.FindPasskeyByCredential(credentialID); err != nil {
			return err
		}
		p, err = q.In(k.Tenant).FindPrincipal(k.PrincipalID)
		return err
	})
	return k, p, usecase.NotFound(err, "passkey")
}

// usePasskey stores the changes of a verified use. It refuses when the passkey has been
// removed, or when its counter has moved since the ceremony read it: two uses from one
// counter mean a copied passkey. An authenticator that does not count always has 0.
func usePasskey(tx gatehouse.Tx, k *gatehouse.Passkey, from uint32) error {
	now, err := tx.FindPasskey(k.ID)
	if err == nil && now.PrincipalID == k.PrincipalID && now.SignCount == from {
		err = tx.UsePasskey(k.ID, k.Credential, k.SignCount, from)
	} else if err == nil {
		err = gatehouse.ErrConflict
	}
	if errors.Is(err, gatehouse.ErrNotFound) || errors.Is(err, gatehouse.ErrConflict) {
		return gatehouse.E(gatehouse.CodeUnauthenticated,
			"this passkey was removed, or used elsewhere at the same moment: try again")
	}
	return err
}

// SignInPasskey begins a session for a verified passkey. from is the passkey's counter
// as the ceremony read it.
func (g *Gate) SignInPasskey(
	ctx context.Context, k *gatehouse.Passkey, from uint32, b gatehouse.Browser,
) (out *gatehouse.SignedIn, err error) {
	n := newSignIn(gatehouse.SignInPasskey, k.ID, b)
	err = g.UpdateQueues(ctx, func(q gatehouse.Queues) error {
		tx := q.In(k.Tenant)
		if err := usePasskey(tx, k, from); err != nil {
			return err
		}
		p, err := tx.FindPrincipal(k.PrincipalID)
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

// AddPasskey stores a verified new passkey of the caller. It uses only the fields
// Name, CredentialID, Credential and SignCount of k.
func (g *Gate) AddPasskey(ctx context.Context, k *gatehouse.Passkey) (*gatehouse.Passkey, error) {
	c, err := browserCaller(ctx)
	if err != nil {
		return nil, err
	}
	p := c.Principal
	return usecase.Perform(ctx, g.Runner, usecase.Case{By: c}, func(tx gatehouse.Tx) (*gatehouse.Passkey, error) {
		_, err := tx.FindPasskeyByCredential(k.CredentialID)
		if err == nil {
			return nil, gatehouse.E(gatehouse.CodeAlreadyExists, "this passkey is known already")
		}
		if !errors.Is(err, gatehouse.ErrNotFound) {
			return nil, err
		}
		own, err := tx.ListPasskeys(p.ID)
		if err != nil {
			return nil, err
		}
		if len(own) >= maxPasskeys {
			return nil, gatehouse.E(gatehouse.CodeInvalid, "you have the maximum of %d passkeys: remove one first", maxPasskeys)
		}
		row := *k
		row.ID, row.Tenant, row.PrincipalID, row.CreatedAt, row.LastUsedAt = NewID("pky"), p.Tenant, p.ID, tx.Now(), nil
		if err := tx.InsertPasskey(&row); err != nil {
			return nil, err
		}
		return &row, recordKey(tx, c, p, "passkey.added", row.ID)
	})
}

// ListPasskeys lists a principal's passkeys.
func (g *Gate) ListPasskeys(ctx context.Context, principal string) (list []*gatehouse.Passkey, err error) {
	err = g.View(ctx, "principal", func(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
		p, err := ownOrAdmins(tx, c, principal)
		if err != nil {
			return err
		}
		list, err = tx.ListPasskeys(p.ID)
		return err
	})
	return list, err
}

// RemovePasskey removes a passkey, and ends the sessions that began with it.
func (g *Gate) RemovePasskey(ctx context.Context, id string) error {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return err
	}
	err = g.Do(ctx, c, func(tx gatehouse.Tx) error {
		k, err := tx.FindPasskey(id)
		if err != nil {
			return err
		}
		p, err := ownOrAdmins(tx, c, k.PrincipalID)
		if err != nil {
			return err
		}
		if p.ID != c.Principal.ID { // removing one's own credential gives nobody a way in
			if err := checkStepUp(tx, c); err != nil {
				return err
			}
		}
		if err := tx.DeletePasskey(k.ID); err != nil {
			return err
		}
		if err := recordKey(tx, c, p, "passkey.removed", k.ID); err != nil {
			return err
		}
		return endSessions(tx, p, k.ID, c.Principal.ID, "passkey removed")
	})
	return usecase.NotFound(err, "passkey")
}
