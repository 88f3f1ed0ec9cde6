package gate

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// The prefixes of API keys and of edit tokens.
const (
	keyPrefix  = "gth_"
	editPrefix = "gte_"
)

// newSecret returns 256 random bits as text, and the hash to store.
func newSecret(prefix string) (string, [32]byte) {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails (crypto/rand, Go 1.24)
	s := prefix + base64.RawURLEncoding.EncodeToString(raw)
	return s, sha256.Sum256([]byte(s))
}

// Authenticate returns the principal of an API key. The error is unauthenticated
// for a key that is unknown or revoked, or whose principal is disabled.
func (g *Gate) Authenticate(ctx context.Context, key string) (*gatehouse.Principal, error) {
	denied := gatehouse.E(gatehouse.CodeUnauthenticated, "a valid API key is needed")
	if !strings.HasPrefix(key, keyPrefix) || len(key) > 256 {
		return nil, denied
	}
	hash := sha256.Sum256([]byte(key))
	var p *gatehouse.Principal
	err := g.Store.ReadQueues(ctx, func(q gatehouse.ReadQueues) (err error) {
		_, p, err = q.FindKey(hash)
		return err
	})
	if errors.Is(err, gatehouse.ErrNotFound) || err == nil && p.Disabled {
		g.credentials.forget(hash)
		return nil, denied
	}
	if err == nil {
		g.credentials.keep(hash, p)
	}
	return p, err
}

// CheckEditToken reports whether a token is the person's edit token. It compares the hashes in constant time.
func (g *Gate) CheckEditToken(ctx context.Context, p *gatehouse.Principal, token string) (bool, error) {
	if !strings.HasPrefix(token, editPrefix) || len(token) > 256 {
		return false, nil
	}
	hash := sha256.Sum256([]byte(token))
	var stored [32]byte
	err := g.Store.Read(ctx, p.Tenant, func(tx gatehouse.ReadTx) (err error) {
		stored, err = tx.FindEditToken(p.ID)
		return err
	})
	if errors.Is(err, gatehouse.ErrNotFound) {
		return false, nil
	}
	ok := err == nil && subtle.ConstantTimeCompare(stored[:], hash[:]) == 1
	if ok {
		g.credentials.keepToken(p, hash)
	}
	return ok, err
}

// Bootstrap makes the tenant default with its policy and its administrator, and
// returns the administrator's secrets, which are shown only here. If the tenant
// already has a principal, it fails with already_exists.
func (g *Gate) Bootstrap(ctx context.Context) (*gatehouse.Credentials, error) {
	key, keyHash := newSecret(keyPrefix)
	edit, editHash := newSecret(editPrefix)
	out := &gatehouse.Credentials{ID: NewID("prn"), Key: key, KeyID: NewID("key"), EditToken: edit}
	err := g.Update(ctx, gatehouse.DefaultTenant, nil, func(tx gatehouse.Tx) error {
		if err := tx.LockFirstPrincipal(); err != nil {
			return err
		}
		known, err := tx.ListPrincipals("", 1)
		if err != nil {
			return err
		}
		if len(known.Items) > 0 {
			return gatehouse.E(gatehouse.CodeAlreadyExists, "this store already has a principal")
		}
		if err := g.insertTenant(tx, gatehouse.DefaultTenant, author{id: initAuthor}); err != nil {
			return err
		}
		p := &gatehouse.Principal{
			ID: out.ID, Tenant: gatehouse.DefaultTenant, Name: "admin", Kind: gatehouse.KindPerson, Person: out.ID,
			Roles: []gatehouse.Role{gatehouse.RoleAdmin}, CreatedAt: tx.Now(),
		}
		return insertPrincipal(tx, p, author{id: initAuthor}, keyHash, out.KeyID, &editHash)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// EnsurePolicies stores the configured policy for every tenant that has none.
func (g *Gate) EnsurePolicies(ctx context.Context) error {
	return g.UpdateQueues(ctx, func(q gatehouse.Queues) error {
		tenants, err := q.ListTenants()
		if err != nil {
			return err
		}
		for _, t := range tenants {
			tx := q.In(t.ID)
			version, err := tx.ActivePolicyVersion()
			if err != nil && !errors.Is(err, gatehouse.ErrNotFound) {
				return err
			}
			if version > 0 {
				continue
			}
			if _, err := storePolicy(tx, t.ID, author{id: initAuthor, name: initAuthor}, string(g.config.PolicySource),
				""); err != nil {
				return err
			}
		}
		return nil
	})
}

// insertTenant makes a tenant with the configured policy. A new store may already
// hold the tenant default.
func (g *Gate) insertTenant(tx gatehouse.Tx, id string, by author) error {
	_, err := tx.FindTenant()
	if errors.Is(err, gatehouse.ErrNotFound) {
		err = tx.InsertTenant(&gatehouse.Tenant{ID: id, CreatedAt: tx.Now()})
	}
	if err != nil {
		return err
	}
	if err := recordChange(tx, by, change{tenant: id, kind: "tenant.created", subject: id, name: id}); err != nil {
		return err
	}
	_, err = storePolicy(tx, id, author{id: initAuthor, name: initAuthor}, string(g.config.PolicySource), "")
	return err
}

func insertPrincipal(
	tx gatehouse.Tx, p *gatehouse.Principal, by author, key [32]byte, keyID string, edit *[32]byte,
) error {
	setApproverSince(nil, p, tx.Now())
	if err := tx.InsertPrincipal(p); err != nil {
		return err
	}
	err := tx.InsertKey(&gatehouse.Key{ID: keyID, Tenant: p.Tenant, PrincipalID: p.ID, Hash: key, CreatedAt: tx.Now()})
	if err != nil {
		return err
	}
	if edit != nil {
		if err := tx.PutEditToken(p.ID, *edit); err != nil {
			return err
		}
	}
	return recordPrincipal(tx, by, p, keyID)
}

// recordPrincipal records a new principal, with its first key if it has one.
func recordPrincipal(tx changeRecorder, by author, p *gatehouse.Principal, keyID string) error {
	data := map[string]any{
		"name": p.Name, "kind": p.Kind, "roles": p.Roles, "sponsor": p.Sponsor, "person": p.Person,
		"approver_since": p.ApproverSince,
	}
	if keyID != "" {
		data["key"] = keyID
	}
	return recordChange(tx, by, change{
		tenant: p.Tenant, kind: "principal.created", subject: p.ID, name: p.Name, data: data,
		detail: string(p.Kind) + "; " + rightsText(p),
	})
}
