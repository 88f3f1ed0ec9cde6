package gate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// SignInExternal begins a session for a proven OIDC identity: of the principal that
// it is linked to, or of a new one. It first updates the roles that the
// configuration manages, and the memberships from this provider, to match the
// identity's groups, even when that leaves no role and the sign-in is refused.
func (g *Gate) SignInExternal(
	ctx context.Context, e gatehouse.ExternalSignIn, b gatehouse.Browser,
) (out *gatehouse.SignedIn, err error) {
	n := newSignIn(gatehouse.SignInOIDC, e.Issuer, b)
	var refused error
	err = g.UpdateQueues(ctx, func(q gatehouse.Queues) error {
		tx := q.In(e.Tenant)
		out, refused = nil, nil
		p, err := g.findExternal(tx, e)
		if err != nil {
			return err
		}
		if p.Disabled {
			return gatehouse.E(gatehouse.CodeUnauthenticated, "this principal is disabled")
		}
		if err := mapRoles(tx, p, e); err != nil {
			return err
		}
		if err := mapGroups(tx, p, e); err != nil {
			return err
		}
		if len(p.Roles) == 0 {
			refused = noRole()
			return nil
		}
		out, err = n.begin(q, p)
		return err
	})
	if err == nil {
		err = refused
	}
	if err != nil {
		return nil, usecase.NotFound(err, "tenant")
	}
	return out, nil
}

func noRole() error {
	return gatehouse.E(gatehouse.CodeRoleRequired, "none of your groups gives you a role here")
}

func (g *Gate) findExternal(tx gatehouse.Tx, e gatehouse.ExternalSignIn) (*gatehouse.Principal, error) {
	i, err := tx.FindIdentity(e.Issuer, e.Subject)
	if err == nil {
		// The whole row may be written with new roles, so lock it.
		p, _, err := lockPrincipals(tx, i.PrincipalID, i.PrincipalID)
		return p, err
	}
	switch {
	case !errors.Is(err, gatehouse.ErrNotFound):
		return nil, err
	case !e.Provision:
		return nil, gatehouse.E(gatehouse.CodeRoleRequired,
			"this identity is linked to nobody here: sign in by a set-up link, and link it under Settings")
	case len(e.Roles) == 0:
		return nil, noRole()
	}
	name, err := freeName(tx, e)
	if err != nil {
		return nil, err
	}
	p := &gatehouse.Principal{ID: NewID("prn"), Tenant: e.Tenant, Name: name, Kind: gatehouse.KindPerson,
		Roles: sortedRoles(e.Roles), CreatedAt: tx.Now()}
	p.Person = p.ID
	if err := p.Validate(); err != nil {
		return nil, err
	}
	setApproverSince(nil, p, tx.Now())
	if err := tx.InsertPrincipal(p); err != nil {
		return nil, err
	}
	if err := recordPrincipal(tx, providerAuthor(e), p, ""); err != nil {
		return nil, err
	}
	return p, linkIdentity(tx, p, e.Issuer, e.Subject, providerAuthor(e))
}

// providerAuthor is the author of changes that a sign-in provider causes.
func providerAuthor(e gatehouse.ExternalSignIn) author {
	return author{id: "sign_in:" + e.Provider, name: e.Provider, tenant: e.Tenant, via: gatehouse.ViaConsole}
}

// freeName derives a free name from the provider's name for the person. The
// provider's own name is its prefix: nobody can take the name of a principal, or of
// somebody whom a policy names, by choosing that name at the provider.
func freeName(tx gatehouse.IdentityReader, e gatehouse.ExternalSignIn) (string, error) {
	clean := strings.Map(func(r rune) rune {
		if gatehouse.ValidName("a" + string(r)) {
			return r
		}
		return '-'
	}, e.Name)
	sum := sha256.Sum256([]byte(e.Issuer + "\x00" + e.Subject))
	suffix := hex.EncodeToString(sum[:4])
	name := e.Provider + ":" + clean[:min(len(clean), 64)]
	if clean == "" {
		name = e.Provider + ":" + suffix
	}
	for _, name := range []string{name, name + "-" + suffix} {
		_, err := tx.FindPrincipal(name)
		if errors.Is(err, gatehouse.ErrNotFound) {
			return name, nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", gatehouse.E(gatehouse.CodeAlreadyExists, "a principal has this name").With("name", name)
}

// mapRoles gives a person the roles of their groups, and takes away the other
// managed roles, whoever gave them. Roles that are not managed stay, and a tenant's last
// administrator stays administrator.
func mapRoles(tx gatehouse.Tx, p *gatehouse.Principal, e gatehouse.ExternalSignIn) error {
	if len(e.Managed) == 0 {
		return nil
	}
	roles := slices.DeleteFunc(slices.Clone(p.Roles), func(r gatehouse.Role) bool { return slices.Contains(e.Managed, r) })
	roles = sortedRoles(append(roles, e.Roles...))
	if slices.Contains(p.Roles, gatehouse.RoleAdmin) && !slices.Contains(roles, gatehouse.RoleAdmin) {
		switch others, err := otherAdmin(tx, p); {
		case err != nil:
			return err
		case !others:
			// Somebody has to be able to correct the mapping of groups.
			roles = sortedRoles(append(roles, gatehouse.RoleAdmin))
		}
	}
	if slices.Equal(roles, sortedRoles(p.Roles)) {
		return nil
	}
	before := *p
	p.Roles = roles
	setApproverSince(&before, p, tx.Now())
	if err := tx.UpdatePrincipal(p); err != nil {
		return err
	}
	by := providerAuthor(e)
	if err := endGrantsOf(tx, by, p); err != nil {
		return err
	}
	if err := recordRights(tx, by, p); err != nil || len(roles) > 0 {
		return err
	}
	return endSessions(tx, p, "", by.id, "no role left")
}

// otherAdmin reports whether the tenant has an administrator besides p, and locks
// that administrator until the end of the transaction. If two administrators lose
// the role at the same moment, one keeps it.
func otherAdmin(tx peopleWriter, p *gatehouse.Principal) (bool, error) {
	for cursor := ""; ; {
		page, err := tx.ListPrincipals(cursor, gatehouse.MaxLimit)
		if err != nil {
			return false, err
		}
		for _, found := range page.Items {
			if found.ID == p.ID || !isAdmin(found) {
				continue
			}
			locked, _, err := lockPrincipals(tx, found.ID, found.ID)
			if err != nil {
				return false, err
			}
			if isAdmin(locked) {
				return true, nil
			}
		}
		if cursor = page.NextCursor; cursor == "" {
			return false, nil
		}
	}
}

func isAdmin(p *gatehouse.Principal) bool { return !p.Disabled && p.Has(gatehouse.RoleAdmin) }

func linkIdentity(tx gatehouse.Tx, p *gatehouse.Principal, issuer, subject string, by author) error {
	err := tx.InsertIdentity(
		&gatehouse.ExternalIdentity{Tenant: p.Tenant, Issuer: issuer, Subject: subject, PrincipalID: p.ID,
			CreatedAt: tx.Now()})
	if err != nil {
		return err
	}
	return recordIdentity(tx, "identity.linked", p, issuer, subject, by)
}

func recordIdentity(tx changeRecorder, event string, p *gatehouse.Principal, issuer, subject string, by author) error {
	return recordChange(tx, by, change{
		tenant: p.Tenant, kind: event, subject: p.ID, name: p.Name, detail: issuer,
		data: map[string]any{"issuer": issuer, "subject": subject},
	})
}

// LinkIdentity links a proven OIDC identity of a tenant to the caller.
func (g *Gate) LinkIdentity(
	ctx context.Context, tenant, issuer, subject string,
) (*gatehouse.ExternalIdentity, error) {
	c, err := browserCaller(ctx)
	if err != nil {
		return nil, err
	}
	p := c.Principal
	if tenant != p.Tenant {
		return nil, gatehouse.E(gatehouse.CodeRoleRequired, "this provider is for another tenant")
	}
	by := usecase.Case{By: c}
	return usecase.Perform(ctx, g.Runner, by, func(tx gatehouse.Tx) (*gatehouse.ExternalIdentity, error) {
		out, err := tx.FindIdentity(issuer, subject)
		switch {
		case err == nil && out.PrincipalID == p.ID:
			return out, nil
		case err == nil:
			return nil, gatehouse.E(gatehouse.CodeAlreadyExists, "this identity is linked to somebody else")
		case !errors.Is(err, gatehouse.ErrNotFound):
			return nil, err
		}
		if err := linkIdentity(tx, p, issuer, subject, authorOf(c)); err != nil {
			return nil, err
		}
		return &gatehouse.ExternalIdentity{Tenant: tenant, Issuer: issuer, Subject: subject, PrincipalID: p.ID,
			CreatedAt: tx.Now()}, nil
	})
}

// ListIdentities lists a principal's OIDC identities.
func (g *Gate) ListIdentities(ctx context.Context, principal string) (list []*gatehouse.ExternalIdentity, err error) {
	err = g.View(ctx, "principal", func(tx gatehouse.ReadTx, c *gatehouse.Caller) error {
		p, err := ownOrAdmins(tx, c, principal)
		if err != nil {
			return err
		}
		list, err = tx.ListIdentities(p.ID)
		return err
	})
	return list, err
}

// UnlinkIdentity removes a link, and ends the sessions that began with it. Only an
// administrator may do so: at a provider that provisions persons, people who unlink
// themselves would come back as second persons, and could vote twice.
func (g *Gate) UnlinkIdentity(ctx context.Context, issuer, subject string) error {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return err
	}
	err = g.Do(ctx, c, func(tx gatehouse.Tx) error {
		i, err := tx.FindIdentity(issuer, subject)
		if err != nil {
			return err
		}
		if err := Require(c, gatehouse.RoleAdmin); err != nil {
			return err
		}
		if err := checkStepUp(tx, c); err != nil {
			return err
		}
		p, err := tx.FindPrincipal(i.PrincipalID)
		if err != nil {
			return err
		}
		if err := tx.DeleteIdentity(issuer, subject); err != nil {
			return err
		}
		if err := recordIdentity(tx, "identity.unlinked", p, issuer, subject, authorOf(c)); err != nil {
			return err
		}
		return endSessions(tx, p, issuer, c.Principal.ID, "identity unlinked")
	})
	return usecase.NotFound(err, "identity")
}
