package gate

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/ring"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// maxRotated limits how many keys one round of the scheduled rotation replaces.
const maxRotated = 100

// rotationAuthor is the author of scheduled rotations, which need no notice.
const rotationAuthor = "schedule"

// errNoMaster is the error of a server without a master key.
func errNoMaster() *gatehouse.Error {
	return gatehouse.E(gatehouse.CodeUnsupported,
		"no master key is configured, so keys and secrets cannot be encrypted: see links.master_key")
}

// ringAAD returns the associated data of a sealed key of the ring.
func ringAAD(k *gatehouse.RingKey) []string {
	return []string{k.Tenant, string(k.Purpose), strconv.FormatUint(uint64(k.Number), 10)}
}

// ringSecret opens a key of the ring.
func (g *Gate) ringSecret(k *gatehouse.RingKey) ([]byte, error) { return openRing(g.config.Master, k) }

func openRing(master *ring.Master, k *gatehouse.RingKey) ([]byte, error) {
	if master == nil {
		return nil, ring.ErrSealed
	}
	return master.Open(k.Sealed, k.Master, ringAAD(k)...)
}

// newRingKey stores a new active key.
func (g *Gate) newRingKey(
	tx ringWriter, tenant, by string, purpose gatehouse.RingPurpose, secret []byte,
) (*gatehouse.RingKey, error) {
	if g.config.Master == nil {
		return nil, errNoMaster()
	}
	var number [4]byte
	_, _ = rand.Read(number[:]) // never fails (crypto/rand, Go 1.24)
	k := &gatehouse.RingKey{
		ID: NewID("rgk"), Number: max(1, binary.BigEndian.Uint32(number[:])), Tenant: tenant, Purpose: purpose,
		Master: g.config.Master.ID(), CreatedAt: tx.Now(), CreatedBy: by, State: gatehouse.RingKeyActive,
	}
	var err error
	if k.Sealed, err = g.config.Master.Seal(secret, ringAAD(k)...); err != nil {
		return nil, err
	}
	return k, tx.InsertRingKey(k)
}

// activeRingKey returns the active key of a purpose, nil when there is none.
func activeRingKey(tx ringReader, purpose gatehouse.RingPurpose) (*gatehouse.RingKey, error) {
	list, err := tx.ListRingKeys(purpose)
	for _, k := range list {
		if k.StateAt(tx.Now()) == gatehouse.RingKeyActive {
			return k, nil
		}
	}
	return nil, err
}

// rotate replaces the active key, which may be nil, with a new one. Signatures of the
// old key stay valid for MaxLinkTTL.
func (g *Gate) rotate(tx gatehouse.Tx, tenant string, old *gatehouse.RingKey, by author) (*gatehouse.RingKey, error) {
	c := change{tenant: tenant, kind: "link.key_created", data: map[string]any{}}
	if old != nil {
		if err := tx.RetireRingKey(old.ID, tx.Now().Add(gatehouse.MaxLinkTTL)); err != nil {
			return nil, err
		}
		c.kind, c.data["replaces"] = "link.key_rotated", old.ID
	}
	k, err := g.newRingKey(tx, tenant, by.id, gatehouse.RingLinks, ring.NewKey())
	if err != nil {
		return nil, err
	}
	c.subject, c.name, c.data["number"] = k.ID, "link key "+k.ID, int(k.Number)
	return k, recordKeyChange(tx, by, c)
}

// recordKeyChange is recordChange, without a notice for the server's own changes.
func recordKeyChange(tx changeRecorder, by author, c change) error {
	if by.id == initAuthor || by.id == rotationAuthor {
		return tx.AppendLeaf(&gatehouse.Leaf{
			Tenant: c.tenant, Type: c.kind, Subject: c.subject, Actor: by.id, Data: usecase.Object(c.data),
		})
	}
	return recordChange(tx, by, c)
}

// ListLinkKeys returns the tenant's keys, newest first.
func (g *Gate) ListLinkKeys(ctx context.Context) (list []*gatehouse.RingKey, err error) {
	if _, err := admin(ctx); err != nil {
		return nil, err
	}
	err = g.View(ctx, "key", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		list, err = tx.ListRingKeys(gatehouse.RingLinks)
		for _, k := range list {
			k.State = k.StateAt(tx.Now())
		}
		return err
	})
	return list, err
}

// changeKeys checks that the caller is an administrator, and runs a change of a link key
// or of a secret.
func (g *Gate) changeKeys(ctx context.Context, what string, fn func(gatehouse.Tx, *gatehouse.Caller) error) error {
	c, err := g.adminWithStepUp(ctx)
	if err != nil {
		return err
	}
	err = g.Do(ctx, c, func(tx gatehouse.Tx) error {
		_, self, err := lockPrincipals(tx, c.Principal.ID, c.Principal.ID)
		if err != nil {
			return err
		}
		if err := stillAdmin(self); err != nil {
			return err
		}
		return fn(tx, c)
	})
	return usecase.NotFound(err, what)
}

// RotateLinkKeys makes a new key and retires the active one. It also seals the key
// for web push under the current master key.
func (g *Gate) RotateLinkKeys(ctx context.Context) (out *gatehouse.RingKey, err error) {
	err = g.changeKeys(ctx, "link key", func(tx gatehouse.Tx, c *gatehouse.Caller) error {
		old, err := activeRingKey(tx, gatehouse.RingLinks)
		if err != nil {
			return err
		}
		if out, err = g.rotate(tx, c.Principal.Tenant, old, authorOf(c)); err != nil {
			return err
		}
		return g.resealWebPushKey(tx)
	})
	return out, err
}

// RevokeLinkKey revokes a key. If that key was active and the server has a master key,
// RevokeLinkKey makes a new active key.
func (g *Gate) RevokeLinkKey(ctx context.Context, id string) (out *gatehouse.RingKey, err error) {
	err = g.changeKeys(ctx, "link key", func(tx gatehouse.Tx, c *gatehouse.Caller) error {
		out = nil
		list, err := tx.ListRingKeys(gatehouse.RingLinks)
		if err != nil {
			return err
		}
		for _, k := range list {
			if k.ID == id {
				out = k
			}
		}
		if out == nil {
			return gatehouse.ErrNotFound
		}
		was := out.StateAt(tx.Now())
		out.State = gatehouse.RingKeyRevoked
		if was == gatehouse.RingKeyRevoked {
			return nil
		}
		if err := tx.RevokeRingKey(out.ID); err != nil {
			return err
		}
		out.RevokedAt = new(tx.Now())
		if out.RetiredAt == nil {
			out.RetiredAt = out.RevokedAt
		}
		err = recordChange(tx, authorOf(c), change{
			tenant: out.Tenant, kind: "link.key_revoked", subject: out.ID, name: "link key " + out.ID,
			detail: "all links that it has signed have ended", data: map[string]any{"number": int(out.Number)},
		})
		if err != nil || was != gatehouse.RingKeyActive || g.config.Master == nil {
			return err
		}
		_, err = g.rotate(tx, out.Tenant, nil, authorOf(c))
		return err
	})
	return out, err
}

// RotateOldLinkKeys replaces the keys that have been active for too long. It leaves
// keys that it cannot open to the server that has their master key. An error of one
// tenant does not stop the others. The sweeper calls it.
func (g *Gate) RotateOldLinkKeys(ctx context.Context) (rotated int, err error) {
	if g.config.Master == nil {
		return 0, nil
	}
	var old []*gatehouse.RingKey
	err = g.Store.ViewQueues(ctx, func(q gatehouse.ReadQueues) (err error) {
		old, err = q.OldRingKeys(gatehouse.RingLinks, q.Now().Add(-g.config.LinkRotation), maxRotated)
		return err
	})
	for _, k := range old {
		if !g.config.Master.Has(k.Master) {
			continue
		}
		e := g.Store.Update(ctx, k.Tenant, func(tx gatehouse.Tx) error {
			_, err := g.rotate(tx, k.Tenant, k, author{id: rotationAuthor})
			return err
		})
		switch {
		case e == nil:
			rotated++
		case !errors.Is(e, gatehouse.ErrConflict): // in a conflict, another replica was first
			err = errors.Join(err, fmt.Errorf("the link key of tenant %s: %w", k.Tenant, e))
		}
	}
	if rotated > 0 {
		g.Hints.Notify(usecase.TopicAudit)
	}
	return rotated, err
}
