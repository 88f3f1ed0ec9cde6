package gate

import (
	"context"
	"errors"
	"fmt"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// admin returns the caller, who must be an administrator.
func admin(ctx context.Context) (*gatehouse.Caller, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	return c, Require(c, gatehouse.RoleAdmin)
}

// CreatePrincipal makes a principal with its first key, and, for a person, an edit
// token. Both secrets are shown only in this answer.
func (g *Gate) CreatePrincipal(ctx context.Context, r gatehouse.NewPrincipal) (*gatehouse.Credentials, error) {
	c, err := g.adminWithStepUp(ctx)
	if err != nil {
		return nil, err
	}
	tenant := r.Tenant
	if tenant == "" {
		tenant = c.Principal.Tenant
	}
	if tenant != c.Principal.Tenant && c.Principal.Tenant != gatehouse.DefaultTenant {
		return nil, gatehouse.E(gatehouse.CodeRoleRequired,
			"only an administrator of the tenant default can create the first principal of another tenant")
	}

	p := &gatehouse.Principal{
		ID: NewID("prn"), Tenant: tenant, Name: r.Name, Kind: r.Kind, Roles: r.Roles, Person: r.Person,
	}
	if p.Person == "" {
		p.Person = p.ID
	}
	p.Sponsor = r.Sponsor
	if err := p.Validate(); err != nil {
		return nil, err
	}

	key, keyHash := newSecret(keyPrefix)
	out := &gatehouse.Credentials{ID: p.ID, Key: key, KeyID: NewID("key")}
	if tenant != c.Principal.Tenant {
		out.Tenant, out.FromTenant = tenant, c.Principal.Tenant
	}
	var edit *[32]byte
	if p.Kind == gatehouse.KindPerson {
		token, hash := newSecret(editPrefix)
		out.EditToken, edit = token, &hash
	}

	return usecase.PerformAcross(ctx, g.Runner, c, func(q gatehouse.Queues) (*gatehouse.Credentials, error) {
		tx := q.In(tenant)
		row := *p
		row.CreatedAt = tx.Now()
		if _, err := tx.FindTenant(); err != nil {
			return nil, unknown(err, "/tenant", "names a tenant that does not exist")
		}
		if tenant != c.Principal.Tenant {
			if err := firstOf(tx, tenant, &row); err != nil {
				return nil, err
			}
		}
		if _, err := tx.FindPrincipal(row.Name); err == nil {
			return nil, gatehouse.E(gatehouse.CodeAlreadyExists, "a principal has this name").With("name", row.Name)
		} else if !errors.Is(err, gatehouse.ErrNotFound) {
			return nil, err
		}
		if err := resolveLinks(tx, &row); err != nil {
			return nil, err
		}
		if err := insertPrincipal(tx, &row, authorAcross(c, q), keyHash, out.KeyID, edit); err != nil {
			return nil, err
		}
		return out, nil
	})
}

// firstOf fails unless p is the first principal of the tenant, and an
// administrator: from then on the tenant manages itself. Of several concurrent
// calls only one succeeds.
func firstOf(tx peopleWriter, tenant string, p *gatehouse.Principal) error {
	if err := tx.LockFirstPrincipal(); err != nil {
		return err
	}
	known, err := tx.ListPrincipals("", 1)
	if err != nil {
		return err
	}
	if len(known.Items) > 0 {
		return gatehouse.E(gatehouse.CodeRoleRequired,
			"the tenant %s has principals: its own administrators make the others", tenant).With("roles",
			[]gatehouse.Role{gatehouse.RoleAdmin})
	}
	if !p.Has(gatehouse.RoleAdmin) {
		return gatehouse.Violations{
			{Pointer: "/roles", Detail: "must contain admin: the first principal of a tenant is its administrator"}}.Err()
	}
	return nil
}

// resolveLinks turns the sponsor's and the person's names into ids.
func resolveLinks(tx gatehouse.IdentityReader, p *gatehouse.Principal) error {
	if p.Sponsor != "" {
		s, err := tx.FindPrincipal(p.Sponsor)
		if err != nil {
			return unknown(err, "/sponsor", "names a principal that does not exist: "+gatehouse.Quote(p.Sponsor))
		}
		if s.Kind != gatehouse.KindPerson {
			return gatehouse.Violations{{Pointer: "/sponsor", Detail: "must be a person"}}.Err()
		}
		p.Sponsor = s.ID
	}
	if p.Person != p.ID {
		same, err := tx.FindPrincipal(p.Person)
		if err != nil {
			return unknown(err, "/person", "names a principal that does not exist: "+gatehouse.Quote(p.Person))
		}
		p.Person = same.Person
	}
	return nil
}

func unknown(err error, pointer, detail string) error {
	if errors.Is(err, gatehouse.ErrNotFound) {
		return gatehouse.Violations{{Pointer: pointer, Detail: detail}}.Err()
	}
	return err
}

// FindPrincipal returns a principal by id or name.
func (g *Gate) FindPrincipal(ctx context.Context, idOrName string) (p *gatehouse.Principal, err error) {
	err = g.View(ctx, "principal", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		p, err = tx.FindPrincipal(idOrName)
		return err
	})
	return p, err
}

// ListPrincipals returns a page of the tenant's principals.
func (g *Gate) ListPrincipals(
	ctx context.Context, cursor string, limit int,
) (page gatehouse.Page[*gatehouse.Principal], err error) {
	err = g.View(ctx, "principal", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		page, err = tx.ListPrincipals(cursor, limit)
		return err
	})
	return page, err
}

// validateKeepingRoles validates a change of a principal that keeps its roles. It accepts a principal without roles: a
// sign-in may have taken the last one.
func validateKeepingRoles(p *gatehouse.Principal) error {
	kept := *p
	if len(kept.Roles) == 0 {
		kept.Roles = []gatehouse.Role{gatehouse.RoleViewer}
	}
	return kept.Validate()
}

// UpdatePrincipal changes a principal's roles, its sponsor, or whether it is
// disabled. The change takes effect at once: on the next request, and on the
// votes for actions that have not been sent.
func (g *Gate) UpdatePrincipal(
	ctx context.Context, idOrName string, r gatehouse.PrincipalChange,
) (*gatehouse.Principal, error) {
	change := func(tx gatehouse.Tx, c *gatehouse.Caller, p *gatehouse.Principal) (*gatehouse.Principal, error) {
		before := *p
		if r.Roles != nil {
			p.Roles = *r.Roles
		}
		if r.Disabled != nil {
			p.Disabled = *r.Disabled
		}
		if r.Sponsor != nil {
			p.Sponsor = *r.Sponsor
		}
		validate := validateKeepingRoles
		if r.Roles != nil {
			validate = (*gatehouse.Principal).Validate
		}
		if err := validate(p); err != nil {
			return nil, err
		}
		if err := resolveLinks(tx, p); err != nil {
			return nil, err
		}
		if p.ID == c.Principal.ID && (p.Disabled || !p.Has(gatehouse.RoleAdmin)) {
			pointer := "/roles"
			if p.Disabled {
				pointer = "/disabled"
			}
			return nil, gatehouse.Violations{
				{Pointer: pointer, Detail: "would lock out the administrator who makes the change"}}.Err()
		}
		setApproverSince(&before, p, tx.Now())
		if err := tx.UpdatePrincipal(p); err != nil {
			return nil, err
		}
		if p.Disabled {
			if err := endSessions(tx, p, "", c.Principal.ID, "disabled"); err != nil {
				return nil, err
			}
		}
		if err := endGrantsOf(tx, authorOf(c), p); err != nil {
			return nil, err
		}
		return p, recordRights(tx, authorOf(c), p)
	}
	return changePrincipal(ctx, g, idOrName, change)
}

// onPrincipal changes a principal.
type onPrincipal[T any] func(gatehouse.Tx, *gatehouse.Caller, *gatehouse.Principal) (*T, error)

// changePrincipal checks that the caller is an administrator, and changes a principal
// in a transaction. Each run of the closure reads the row again.
func changePrincipal[T any](ctx context.Context, g *Gate, idOrName string, fn onPrincipal[T]) (*T, error) {
	if _, err := g.FindPrincipal(ctx, idOrName); err != nil {
		return nil, err
	}
	c, err := g.adminWithStepUp(ctx)
	if err != nil {
		return nil, err
	}
	out, err := usecase.Perform(ctx, g.Runner, usecase.Case{By: c}, func(tx gatehouse.Tx) (*T, error) {
		p, err := tx.FindPrincipal(idOrName)
		if err != nil {
			return nil, err
		}
		// The whole row is written, so it is locked against other changes first.
		p, self, err := lockPrincipals(tx, p.ID, c.Principal.ID)
		if err != nil {
			return nil, err
		}
		if err := stillAdmin(self); err != nil {
			return nil, err
		}
		return fn(tx, c, p)
	})
	return out, usecase.NotFound(err, "principal")
}

// CreateKey makes a further key for a principal.
func (g *Gate) CreateKey(ctx context.Context, principal string) (*gatehouse.Credentials, error) {
	return changePrincipal(ctx, g, principal, newKey())
}

// newKey returns the change that gives a principal a further key.
func newKey() func(gatehouse.Tx, *gatehouse.Caller, *gatehouse.Principal) (*gatehouse.Credentials, error) {
	secret, hash := newSecret(keyPrefix)
	out := &gatehouse.Credentials{Key: secret, KeyID: NewID("key")}
	return func(tx gatehouse.Tx, c *gatehouse.Caller, p *gatehouse.Principal) (*gatehouse.Credentials, error) {
		out.ID = p.ID
		err := tx.InsertKey(&gatehouse.Key{
			ID: out.KeyID, Tenant: p.Tenant, PrincipalID: p.ID, Hash: hash, CreatedAt: tx.Now(),
		})
		if err != nil {
			return nil, err
		}
		if err := recordKey(tx, c, p, "key.created", out.KeyID); err != nil {
			return nil, err
		}
		return out, nil
	}
}

func recordKey(tx changeRecorder, c *gatehouse.Caller, p *gatehouse.Principal, event, subject string) error {
	return recordChange(tx, authorOf(c), change{
		tenant: p.Tenant, kind: event, subject: subject, name: p.Name,
		data: map[string]any{"principal": p.ID, "approver_since": p.ApproverSince},
	})
}

// recordRights records a principal's new rights.
func recordRights(tx changeRecorder, by author, p *gatehouse.Principal) error {
	return recordChange(tx, by, change{
		tenant: p.Tenant, kind: "principal.changed", subject: p.ID, name: p.Name, detail: rightsText(p),
		data: map[string]any{"roles": p.Roles, "sponsor": p.Sponsor, "disabled": p.Disabled,
			"approver_since": p.ApproverSince},
	})
}

// ListKeys returns a principal's keys, without their secrets.
func (g *Gate) ListKeys(ctx context.Context, principal string) (keys []*gatehouse.Key, err error) {
	err = g.View(ctx, "principal", func(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
		p, err := tx.FindPrincipal(principal)
		if err != nil {
			return err
		}
		keys, err = tx.ListKeys(p.ID)
		return err
	})
	return keys, err
}

// RevokeKey ends a key, at once.
func (g *Gate) RevokeKey(ctx context.Context, keyID string) error {
	c, err := g.adminWithStepUp(ctx)
	if err != nil {
		return err
	}
	err = g.Do(ctx, c, func(tx gatehouse.Tx) error {
		if err := tx.RevokeKey(keyID); err != nil {
			return err
		}
		k, err := tx.FindKeyByID(keyID)
		if err != nil {
			return err
		}
		p, err := tx.FindPrincipal(k.PrincipalID)
		if err != nil {
			return err
		}
		return recordKey(tx, c, p, "key.revoked", keyID)
	})
	return usecase.NotFound(err, "key")
}

// RotateEditToken gives a person a new edit token and ends the old one.
func (g *Gate) RotateEditToken(ctx context.Context, principal string) (*gatehouse.Credentials, error) {
	token, hash := newSecret(editPrefix)
	out := &gatehouse.Credentials{EditToken: token}
	change := func(tx gatehouse.Tx, c *gatehouse.Caller, p *gatehouse.Principal) (*gatehouse.Credentials, error) {
		if p.Kind != gatehouse.KindPerson {
			return nil, gatehouse.E(gatehouse.CodeInvalid, "only a person has an edit token")
		}
		out.ID = p.ID
		if err := tx.PutEditToken(p.ID, hash); err != nil {
			return nil, err
		}
		if err := restartApproverDelay(tx, c, p); err != nil {
			return nil, err
		}
		if err := recordKey(tx, c, p, "edit_token.rotated", p.ID); err != nil {
			return nil, err
		}
		return out, nil
	}
	return changePrincipal(ctx, g, principal, change)
}

// CreateTenant makes a tenant with the configured policy.
func (g *Gate) CreateTenant(ctx context.Context, id string) (*gatehouse.Tenant, error) {
	c, err := defaultAdmin(ctx)
	if err != nil {
		return nil, err
	}
	if err := g.requireStepUp(ctx, c); err != nil {
		return nil, err
	}
	if !gatehouse.ValidName(id) {
		return nil, gatehouse.Violations{{Pointer: "/id", Detail: "must be letters, digits, or any of ._@:+-"}}.Err()
	}
	return usecase.PerformAcross(ctx, g.Runner, c, func(q gatehouse.Queues) (*gatehouse.Tenant, error) {
		tx := q.In(id)
		if _, err := tx.FindTenant(); err == nil {
			return nil, gatehouse.E(gatehouse.CodeAlreadyExists, "the tenant exists").With("id", id)
		} else if !errors.Is(err, gatehouse.ErrNotFound) {
			return nil, err
		}
		out := &gatehouse.Tenant{ID: id, CreatedAt: tx.Now(), FromTenant: c.Principal.Tenant}
		if err := g.insertTenant(tx, id, authorAcross(c, q)); err != nil {
			return nil, err
		}
		return out, nil
	})
}

// ListTenants returns all tenants, to an administrator of the tenant default.
func (g *Gate) ListTenants(ctx context.Context) (list []*gatehouse.Tenant, err error) {
	if _, err := defaultAdmin(ctx); err != nil {
		return nil, err
	}
	err = g.Store.ViewQueues(ctx, func(q gatehouse.ReadQueues) (err error) {
		list, err = q.ListTenants()
		return err
	})
	return list, err
}

func defaultAdmin(ctx context.Context) (*gatehouse.Caller, error) {
	c, err := admin(ctx)
	if err != nil {
		return nil, err
	}
	if c.Principal.Tenant != gatehouse.DefaultTenant {
		return nil, gatehouse.E(gatehouse.CodeRoleRequired, "tenants are managed by administrators of the tenant %s",
			gatehouse.DefaultTenant)
	}
	return c, nil
}

// WhoAmI returns the caller's principal.
func (g *Gate) WhoAmI(ctx context.Context) (*gatehouse.Principal, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, fmt.Errorf("who am i: %w", err)
	}
	return c.Principal, nil
}
