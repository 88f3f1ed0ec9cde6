package gate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/ring"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// A secret of the store is sealed under a key of the ring, and that key under the
// master key. So a new master key reseals only the keys of the ring: see
// [Gate.ResealKeys].

var _ gatehouse.SecretService = (*Gate)(nil)

// OpenedSecret is a secret with its value, for the connectors that refer to it.
type OpenedSecret struct {
	Name    string
	Version int
	Value   string
	// Err says why there is no value.
	Err error
}

func secretAAD(s *gatehouse.Secret) []string {
	return []string{s.Tenant, "secret", s.Name, strconv.Itoa(s.Version)}
}

// sealSecret seals a value under the tenant's key. It makes a new key if there is none,
// if this server cannot open the key, or if the key is not valid.
func (g *Gate) sealSecret(tx ringWriter, s *gatehouse.Secret, value string) error {
	if g.config.Master == nil {
		return errNoMaster()
	}
	key, err := activeRingKey(tx, gatehouse.RingSecrets)
	if err != nil {
		return err
	}
	var under *ring.Master
	if key != nil {
		if under, err = secretsKey(g.config.Master, key); errors.Is(err, ring.ErrSealed) {
			if err := tx.RetireRingKey(key.ID, tx.Now()); err != nil {
				return err
			}
			key = nil
		}
	}
	if key == nil {
		if key, err = g.newRingKey(tx, s.Tenant, s.SetBy, gatehouse.RingSecrets, ring.NewKey()); err != nil {
			return err
		}
		under, err = secretsKey(g.config.Master, key)
	}
	if err != nil {
		return err
	}
	s.RingKey = key.ID
	s.Sealed, err = under.Seal([]byte(value), secretAAD(s)...)
	return err
}

// secretsKey opens a key of the ring that seals secrets. The error is [ring.ErrSealed]
// also for a key that opens but is not valid: nothing was ever sealed under it.
func secretsKey(master *ring.Master, k *gatehouse.RingKey) (*ring.Master, error) {
	raw, err := openRing(master, k)
	if err != nil {
		return nil, err
	}
	key, err := ring.FromKey(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ring.ErrSealed, err)
	}
	return key, nil
}

// opener maps the ids of ring keys to the opened keys, which open the secrets of a tenant.
type opener map[string]*ring.Master

// newOpener returns an opener with those ring keys that a master key can open and that are valid.
func newOpener(tx gatehouse.RingReader, master *ring.Master) (opener, error) {
	keys, err := tx.ListRingKeys(gatehouse.RingSecrets)
	o := opener{}
	for _, k := range keys {
		if key, err := secretsKey(master, k); err == nil {
			o[k.ID] = key
		}
	}
	return o, err
}

func (o opener) open(s *gatehouse.Secret) (string, error) {
	key := o[s.RingKey]
	if key == nil {
		return "", ring.ErrSealed
	}
	plain, err := key.Open(s.Sealed, key.ID(), secretAAD(s)...)
	return string(plain), err
}

// state sets the state of a secret.
func (o opener) state(s *gatehouse.Secret) {
	s.State = gatehouse.SecretSet
	if s.RevokedAt != nil {
		s.State = gatehouse.SecretRevoked
	} else if _, err := o.open(s); err != nil {
		s.State = gatehouse.SecretUnreadable
	}
}

// OpenSecrets returns the secrets of a tenant with their values.
func (g *Gate) OpenSecrets(ctx context.Context, tenant string) ([]OpenedSecret, error) {
	return OpenSecrets(ctx, g.Store, g.config.Master, tenant)
}

// OpenSecrets is [Gate.OpenSecrets] for a program that has a store and no gate.
func OpenSecrets(
	ctx context.Context, store gatehouse.Store, master *ring.Master, tenant string,
) (opened []OpenedSecret, err error) {
	err = store.View(ctx, tenant, func(tx gatehouse.ReadTx) error {
		opened = nil
		list, err := tx.ListSecrets()
		if err != nil || len(list) == 0 {
			return err
		}
		keys, err := newOpener(tx, master)
		for _, s := range list {
			o := OpenedSecret{Name: s.Name, Version: s.Version}
			if s.RevokedAt != nil {
				o.Err = errors.New("was revoked; gatehouse secret set stores it again")
			} else if o.Value, o.Err = keys.open(s); o.Err != nil {
				o.Err = errors.New("cannot be opened: its key is damaged, or sealed under a master key that this server " +
					"does not have; see links.master_key")
			}
			opened = append(opened, o)
		}
		return err
	})
	return opened, err
}

// ListSecrets returns the tenant's secrets, and those that connectors use but that are
// not stored.
func (g *Gate) ListSecrets(ctx context.Context) (list []*gatehouse.Secret, err error) {
	if _, err := admin(ctx); err != nil {
		return nil, err
	}
	err = g.View(ctx, "secret", func(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
		if list, err = tx.ListSecrets(); err != nil {
			return err
		}
		keys, err := newOpener(tx, g.config.Master)
		if err != nil {
			return err
		}
		uses := g.secretUses(c.Principal.Tenant)
		for _, s := range list {
			keys.state(s)
			s.UsedBy = usecase.OrEmpty(uses[s.Name])
			delete(uses, s.Name)
		}
		for _, name := range slices.Sorted(maps.Keys(uses)) {
			list = append(list, &gatehouse.Secret{
				Tenant: c.Principal.Tenant, Name: name, State: gatehouse.SecretMissing, UsedBy: uses[name],
			})
		}
		slices.SortFunc(list, func(a, b *gatehouse.Secret) int { return strings.Compare(a.Name, b.Name) })
		return nil
	})
	return list, err
}

// secretUses returns which connectors use a tenant's secrets, by secret.
func (g *Gate) secretUses(tenant string) map[string][]string {
	if g.config.SecretUses == nil {
		return map[string][]string{}
	}
	return g.config.SecretUses(tenant)
}

// SetSecret stores a secret that does not exist, or was revoked.
func (g *Gate) SetSecret(ctx context.Context, n gatehouse.NewSecret) (*gatehouse.Secret, error) {
	return g.putSecret(ctx, n, "secret.set", func(old *gatehouse.Secret) error {
		if old != nil && old.RevokedAt == nil {
			return gatehouse.E(gatehouse.CodeAlreadyExists, "the secret %s exists: rotate it to replace its value",
				gatehouse.Quote(n.Name))
		}
		return nil
	})
}

// RotateSecret replaces the value of a secret.
func (g *Gate) RotateSecret(ctx context.Context, n gatehouse.NewSecret) (*gatehouse.Secret, error) {
	return g.putSecret(ctx, n, "secret.rotated", func(old *gatehouse.Secret) error {
		if old == nil || old.RevokedAt != nil {
			return gatehouse.ErrNotFound
		}
		return nil
	})
}

func (g *Gate) putSecret(
	ctx context.Context, n gatehouse.NewSecret, kind string, may func(old *gatehouse.Secret) error,
) (out *gatehouse.Secret, err error) {
	return g.changeSecret(ctx, func(tx gatehouse.Tx, c *gatehouse.Caller) (*gatehouse.Secret, error) {
		if err := n.Validate(); err != nil {
			return nil, err
		}
		old, err := tx.FindSecret(n.Name)
		if err != nil && !errors.Is(err, gatehouse.ErrNotFound) {
			return nil, err
		}
		if err := may(old); err != nil {
			return nil, err
		}
		s := &gatehouse.Secret{
			Tenant: c.Principal.Tenant, Name: n.Name, Version: 1, State: gatehouse.SecretSet,
			SetAt: new(tx.Now()), SetBy: c.Principal.ID, SetByName: c.Principal.Name,
		}
		if old != nil {
			s.Version, s.LastUsedAt = old.Version+1, old.LastUsedAt
		}
		if err := g.sealSecret(tx, s, n.Value); err != nil {
			return nil, err
		}
		if err := tx.PutSecret(s); err != nil {
			return nil, err
		}
		return s, g.recordSecret(tx, c, s, kind)
	})
}

// recordSecret writes the log entry of a change and the notice for all administrators.
// The value is in neither.
func (g *Gate) recordSecret(tx changeRecorder, c *gatehouse.Caller, s *gatehouse.Secret, kind string) error {
	s.UsedBy = usecase.OrEmpty(g.secretUses(s.Tenant)[s.Name])
	detail := "used by no connector"
	if len(s.UsedBy) > 0 {
		detail = "used by " + strings.Join(s.UsedBy, ", ")
	}
	return recordChange(tx, authorOf(c), change{
		tenant: s.Tenant, kind: kind, subject: s.Name, name: "secret " + s.Name, detail: detail,
		data: map[string]any{"version": s.Version},
	})
}

// RevokeSecret deletes the value of a secret.
func (g *Gate) RevokeSecret(ctx context.Context, name string) (*gatehouse.Secret, error) {
	return g.changeSecret(ctx, func(tx gatehouse.Tx, c *gatehouse.Caller) (*gatehouse.Secret, error) {
		s, err := tx.FindSecret(name)
		if err != nil {
			return nil, err
		}
		s.State = gatehouse.SecretRevoked
		if s.RevokedAt != nil {
			s.UsedBy = usecase.OrEmpty(g.secretUses(s.Tenant)[s.Name])
			return s, nil
		}
		if err := tx.RevokeSecret(name, c.Principal.ID); err != nil {
			return nil, err
		}
		s.RevokedAt, s.RevokedBy, s.Sealed, s.RingKey = new(tx.Now()), c.Principal.ID, nil, ""
		return s, g.recordSecret(tx, c, s, "secret.revoked")
	})
}

func (g *Gate) changeSecret(
	ctx context.Context, fn func(gatehouse.Tx, *gatehouse.Caller) (*gatehouse.Secret, error),
) (out *gatehouse.Secret, err error) {
	err = g.changeKeys(ctx, "secret", func(tx gatehouse.Tx, c *gatehouse.Caller) (err error) {
		out, err = fn(tx, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	g.Hints.Notify(usecase.TopicSecrets)
	return out, nil
}

// UseSecrets notes when the secrets of a tenant were last used.
func (g *Gate) UseSecrets(ctx context.Context, tenant string, used map[string]time.Time) error {
	return g.Store.Update(ctx, tenant, func(tx gatehouse.Tx) error {
		for _, name := range slices.Sorted(maps.Keys(used)) {
			if err := tx.UseSecret(name, used[name]); err != nil {
				return err
			}
		}
		return nil
	})
}

// maxResealed limits the keys of one purpose that a round of resealing reads. Keys that cannot be
// opened are read again in every round; the limit is far above the number of tenants, so that
// such keys do not crowd out others.
const maxResealed = 10_000

// ResealKeys reseals the keys of secrets and of web push from old master keys to the first
// one, so that the old ones can be removed. It reseals retired keys too, which may still
// seal secrets. A key that does not open stays as it is: the error names each of them. The
// sweeper calls it.
func (g *Gate) ResealKeys(ctx context.Context) (resealed int, err error) {
	if g.config.Master == nil {
		return 0, nil
	}
	var damaged error
	for _, from := range g.config.Master.Old() {
		var keys []*gatehouse.RingKey
		err := g.Store.ViewQueues(ctx, func(q gatehouse.ReadQueues) error {
			secrets, err := q.RingKeysUnder(gatehouse.RingSecrets, from, maxResealed)
			if err != nil {
				return err
			}
			webPush, err := q.RingKeysUnder(gatehouse.RingWebPush, from, maxResealed)
			keys = append(secrets, webPush...)
			return err
		})
		if err != nil {
			return resealed, errors.Join(damaged, err)
		}
		for _, k := range keys {
			err := g.resealKey(ctx, k, from)
			switch {
			case err == nil:
				resealed++
			case errors.Is(err, gatehouse.ErrConflict): // another replica was first
			case errors.Is(err, ring.ErrSealed):
				damaged = errors.Join(damaged, fmt.Errorf("key %s (%s) of tenant %s: %w", k.ID, k.Purpose, k.Tenant, err))
			default:
				return resealed, errors.Join(damaged, err)
			}
		}
	}
	return resealed, damaged
}

func (g *Gate) resealKey(ctx context.Context, k *gatehouse.RingKey, from string) error {
	return g.Store.Update(ctx, k.Tenant, func(tx gatehouse.Tx) error { return g.reseal(tx, k, from) })
}

// reseal seals a key of the ring under the present master key. The key itself stays the same.
func (g *Gate) reseal(tx gatehouse.RingWriter, k *gatehouse.RingKey, from string) error {
	raw, err := g.ringSecret(k)
	if err != nil {
		return err
	}
	sealed, err := g.config.Master.Seal(raw, ringAAD(k)...)
	if err != nil {
		return err
	}
	return tx.ResealRingKey(k.ID, from, sealed, g.config.Master.ID())
}
