package gate

import (
	"context"
	"errors"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// FindStepUp returns the valid, unused step-up of the caller's session for an action with this digest.
func (g *Gate) FindStepUp(
	ctx context.Context, actionID string, digest gatehouse.Digest,
) (u *gatehouse.StepUp, err error) {
	err = g.View(ctx, "step-up", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		if c.Session == nil {
			return gatehouse.ErrNotFound
		}
		u, err = openStepUp(tx, c, actionID, digest)
		return err
	})
	return u, err
}

func openStepUp(
	tx gatehouse.ReadTx, c *gatehouse.Caller, actionID string, digest gatehouse.Digest,
) (*gatehouse.StepUp, error) {
	return tx.FindStepUp(c.Session.ID, actionID, digest, tx.Now().Add(-gatehouse.StepUpTTL))
}

// StepUpWithEditToken records a step-up by the person's edit token.
func (g *Gate) StepUpWithEditToken(
	ctx context.Context, actionID string, digest gatehouse.Digest, token string,
) (*gatehouse.StepUp, error) {
	c, err := browserCaller(ctx)
	if err != nil {
		return nil, err
	}
	if err := g.wantEditToken(ctx, c, token); err != nil {
		return nil, err
	}
	return g.recordStepUp(ctx, c, gatehouse.StepUpEditToken, actionID, digest, nil)
}

func (g *Gate) wantEditToken(ctx context.Context, c *gatehouse.Caller, token string) error {
	ok, err := g.CheckEditToken(ctx, c.Principal, token)
	if err == nil && !ok {
		err = gatehouse.E(gatehouse.CodeEditTokenRequired, "this is not your edit token")
	}
	return err
}

// StepUpExternal records a step-up by an OIDC identity, which must be linked
// to the caller.
func (g *Gate) StepUpExternal(
	ctx context.Context, issuer, subject, actionID string, digest gatehouse.Digest,
) (*gatehouse.StepUp, error) {
	c, err := browserCaller(ctx)
	if err != nil {
		return nil, err
	}
	return g.recordStepUp(ctx, c, gatehouse.StepUpOIDC, actionID, digest, func(tx gatehouse.Tx) error {
		i, err := tx.FindIdentity(issuer, subject)
		if errors.Is(err, gatehouse.ErrNotFound) || err == nil && i.PrincipalID != c.Principal.ID {
			return gatehouse.E(gatehouse.CodeUnauthenticated, "that was somebody else's identity, not yours")
		}
		return err
	})
}

// StepUpPasskey records a step-up by one of the caller's passkeys. p is the verified
// passkey with its new counter; from is the counter before the verification.
func (g *Gate) StepUpPasskey(
	ctx context.Context, p *gatehouse.Passkey, from uint32, actionID string, digest gatehouse.Digest,
) (*gatehouse.StepUp, error) {
	c, err := browserCaller(ctx)
	if err != nil {
		return nil, err
	}
	return g.recordStepUp(ctx, c, gatehouse.StepUpPasskey, actionID, digest, func(tx gatehouse.Tx) error {
		if p.Tenant != c.Principal.Tenant || p.PrincipalID != c.Principal.ID {
			return gatehouse.E(gatehouse.CodeUnauthenticated, "that passkey is somebody else's")
		}
		return usePasskey(tx, p, from)
	})
}

// recordStepUp stores a step-up for an action. It refuses a digest that differs from the
// action's. check verifies the proof in the same transaction; nil if the caller has verified it.
func (g *Gate) recordStepUp(ctx context.Context, c *gatehouse.Caller, method gatehouse.StepUpMethod, actionID string,
	digest gatehouse.Digest,
	check func(gatehouse.Tx) error,
) (*gatehouse.StepUp, error) {
	out, err := usecase.Perform(ctx, g.Runner, usecase.Case{By: c}, func(tx gatehouse.Tx) (*gatehouse.StepUp, error) {
		s, err := tx.FindSessionByID(c.Session.ID)
		if err != nil {
			return nil, err
		}
		if !s.Live(tx.Now()) {
			return nil, signInFirst()
		}
		a, err := tx.FindAction(actionID)
		if err != nil {
			return nil, err
		}
		if a.Digest != digest {
			return nil, gatehouse.E(gatehouse.CodeDigestMismatch, "this is not what you saw: the digest "+
				"differs").With("digest", a.Digest)
		}
		if check != nil {
			if err := check(tx); err != nil {
				return nil, err
			}
		}
		u := &gatehouse.StepUp{
			ID: NewID("stu"), Tenant: s.Tenant, SessionID: s.ID, ActionID: a.ID, Digest: a.Digest, Method: method, At: tx.Now(),
		}
		if err := tx.InsertStepUp(u); err != nil {
			return nil, err
		}
		return u, tx.AppendLeaf(&gatehouse.Leaf{
			Tenant: u.Tenant, Type: "step_up.given", Subject: u.ID, ActionID: a.ID, Actor: c.Principal.ID, Digest: a.Digest,
			Data: usecase.Object(map[string]any{"session": s.ID, "method": string(method)}),
		})
	})
	return out, usecase.NotFound(err, "action")
}

// stepUp consumes the proof that an approval at L4 and L5 needs in a session. The
// action is locked, so only one of two decisions finds the proof.
func (r *ruling) stepUp(tx gatehouse.Tx) error {
	c, a := r.caller, r.action
	if c.Session == nil || !a.RiskLevel.NeedsConfirmation() {
		return nil
	}
	u, err := openStepUp(tx, c, a.ID, a.Digest)
	if errors.Is(err, gatehouse.ErrNotFound) {
		return gatehouse.E(gatehouse.CodeStepUpRequired, "confirm your identity: with a passkey, at your sign-in "+
			"provider, or with your edit token").
			With("methods", []gatehouse.StepUpMethod{gatehouse.StepUpPasskey, gatehouse.StepUpOIDC, gatehouse.StepUpEditToken})
	}
	if err != nil {
		return err
	}
	r.proof = u
	return tx.UseStepUp(u.ID)
}

// CheckFresh fails with step_up_required unless the caller has signed in recently
// or gives their edit token: a session that was left open, or stolen, must not gain
// another way to sign in.
func (g *Gate) CheckFresh(ctx context.Context, editToken string) error {
	c, err := browserCaller(ctx)
	if err != nil {
		return err
	}
	if editToken != "" {
		return g.wantEditToken(ctx, c, editToken)
	}
	return g.Store.View(ctx, c.Principal.Tenant, func(tx gatehouse.ReadTx) error {
		if tx.Now().Sub(c.Session.CreatedAt) < gatehouse.FreshSignIn {
			return nil
		}
		return gatehouse.E(gatehouse.CodeStepUpRequired,
			"sign in again, or give your edit token, to add another way of signing in")
	})
}

// sortedRoles returns a set of roles in the order of gatehouse.Roles. viewer is
// dropped when there are other roles.
func sortedRoles(roles []gatehouse.Role) []gatehouse.Role {
	out := []gatehouse.Role{}
	for _, r := range gatehouse.Roles() {
		if slices.Contains(roles, r) {
			out = append(out, r)
		}
	}
	if len(out) > 1 {
		out = slices.DeleteFunc(out, func(r gatehouse.Role) bool { return r == gatehouse.RoleViewer })
	}
	return out
}
