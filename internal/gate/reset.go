package gate

import (
	"context"
	"errors"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// machineAuthor is the logged author of a change that somebody made with direct access to the store. The person is
// not known, because no credential was checked.
func machineAuthor(act string) author {
	return author{id: act, name: "somebody at the machine", via: "machine"}
}

// AdminReset asks for new secrets for an administrator of a tenant.
type AdminReset struct {
	Tenant, Name string
	// Revoke ends every other key, session, passkey and set-up link of the administrator.
	// Identities at sign-in providers stay linked: see [Gate.UnlinkIdentity].
	Revoke bool
}

// ResetAdmin makes a new key and edit token for an administrator who has lost them.
// It takes no caller: it is for people with direct access to the store. If a tenant
// has no enabled administrator, the named person becomes one, and is created if
// missing. The reset is in the log, and every administrator is notified.
func (g *Gate) ResetAdmin(ctx context.Context, r AdminReset) (*gatehouse.Credentials, error) {
	key, keyHash := newSecret(keyPrefix)
	token, tokenHash := newSecret(editPrefix)
	out := &gatehouse.Credentials{Key: key, KeyID: NewID("key"), EditToken: token, Tenant: r.Tenant}
	by := machineAuthor("reset")
	err := g.Update(ctx, r.Tenant, nil, func(tx gatehouse.Tx) error {
		if _, err := tx.FindTenant(); err != nil {
			return usecase.NotFound(err, "tenant "+r.Tenant)
		}
		p, err := g.resetOrCreateAdmin(tx, by, r)
		if err != nil {
			return err
		}
		out.ID = p.ID
		if r.Revoke {
			if err := revokeAccess(tx, by, p); err != nil {
				return err
			}
		}
		err = tx.InsertKey(
			&gatehouse.Key{ID: out.KeyID, Tenant: p.Tenant, PrincipalID: p.ID, Hash: keyHash, CreatedAt: tx.Now()})
		if err != nil {
			return err
		}
		if err := tx.PutEditToken(p.ID, tokenHash); err != nil {
			return err
		}
		return recordChange(tx, by, change{
			tenant: p.Tenant, kind: "admin.reset", subject: p.ID, name: p.Name, detail: "a new key and edit token",
			data: map[string]any{"key": out.KeyID, "revoked": r.Revoke, "approver_since": p.ApproverSince},
		})
	})
	if err != nil {
		return nil, err
	}
	g.Log.WarnContext(ctx, "an administrator was reset with direct access to the store", "tenant", r.Tenant,
		"principal", out.ID, "name", r.Name)
	return out, nil
}

// resetOrCreateAdmin returns the named administrator, and restarts the administrator's delay as a new approver. If the
// tenant has no enabled administrator, the named person becomes one, and is created if missing.
func (g *Gate) resetOrCreateAdmin(tx gatehouse.Tx, by author, r AdminReset) (*gatehouse.Principal, error) {
	now := tx.Now()
	p, err := tx.FindPrincipal(r.Name)
	if err != nil && !errors.Is(err, gatehouse.ErrNotFound) {
		return nil, err
	}
	if err == nil {
		if p, _, err = lockPrincipals(tx, p.ID, p.ID); err != nil {
			return nil, err
		}
		if isAdmin(p) {
			p.ApproverSince = &now
			return p, tx.UpdatePrincipal(p)
		}
	}

	id := ""
	if p != nil {
		id = p.ID
	}
	left, err := otherAdmin(tx, &gatehouse.Principal{Tenant: r.Tenant, ID: id})
	switch {
	case err != nil:
		return nil, err
	case left && p == nil:
		return nil, gatehouse.E(gatehouse.CodeNotFound,
			"no principal %s in tenant %s; it has administrators: name one of them", gatehouse.Quote(r.Name), r.Tenant)
	case left:
		return nil, gatehouse.E(gatehouse.CodeInvalid,
			"%s is not an enabled administrator, and the tenant %s has others: name one of them", p.Name, r.Tenant)
	case p == nil:
		p = &gatehouse.Principal{
			ID: NewID("prn"), Tenant: r.Tenant, Name: r.Name, Kind: gatehouse.KindPerson,
			Roles: []gatehouse.Role{gatehouse.RoleAdmin}, CreatedAt: now, ApproverSince: &now,
		}
		p.Person = p.ID
		if err := p.Validate(); err != nil {
			return nil, err
		}
		if err := tx.InsertPrincipal(p); err != nil {
			return nil, err
		}
		return p, recordPrincipal(tx, by, p, "")
	}

	p.Roles, p.Disabled, p.ApproverSince = sortedRoles(append(p.Roles, gatehouse.RoleAdmin)), false, &now
	if err := p.Validate(); err != nil { // a program cannot become an administrator
		return nil, err
	}
	if err := tx.UpdatePrincipal(p); err != nil {
		return nil, err
	}
	return p, recordRights(tx, by, p)
}

// revokeAccess ends all keys, sessions, passkeys and set-up links of a principal.
func revokeAccess(tx gatehouse.Tx, by author, p *gatehouse.Principal) error {
	keys, err := tx.ListKeys(p.ID)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if k.RevokedAt != nil {
			continue
		}
		if err := tx.RevokeKey(k.ID); err != nil {
			return err
		}
		err := recordChange(tx, by,
			change{tenant: p.Tenant, kind: "key.revoked", subject: k.ID, name: p.Name, data: map[string]any{"principal": p.ID}})
		if err != nil {
			return err
		}
	}
	passkeys, err := tx.ListPasskeys(p.ID)
	if err != nil {
		return err
	}
	for _, k := range passkeys {
		if err := tx.DeletePasskey(k.ID); err != nil {
			return err
		}
		err := recordChange(tx, by, change{tenant: p.Tenant, kind: "passkey.removed", subject: k.ID, name: p.Name,
			data: map[string]any{"principal": p.ID}})
		if err != nil {
			return err
		}
	}
	if err := tx.EndSetupLinks(p.ID); err != nil {
		return err
	}
	return endSessions(tx, p, "", by.id, "administrator reset")
}
