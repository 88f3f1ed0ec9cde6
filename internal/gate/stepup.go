package gate

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

// A person who can create credentials, roles or policies can create an approver. Such changes therefore need a
// step-up, as decisions do: an API key alone is not enough, since keys can be found in environment variables and
// shell histories.

// adminWithStepUp returns the caller of a use case that creates or changes credentials, roles, groups, set-up
// links, policies, secrets or connectors. The caller must be an administrator; see also requireStepUp.
func (g *Gate) adminWithStepUp(ctx context.Context) (*gatehouse.Caller, error) {
	c, err := admin(ctx)
	if err != nil {
		return nil, err
	}
	return c, g.requireStepUp(ctx, c)
}

// requireStepUp fails with edit_token_required unless the request carried the caller's edit token, or comes
// from a browser session that is younger than [gatehouse.FreshSignIn].
func (g *Gate) requireStepUp(ctx context.Context, c *gatehouse.Caller) error {
	return g.Store.View(ctx, c.Principal.Tenant, func(tx gatehouse.ReadTx) error { return checkStepUp(tx, c) })
}

func checkStepUp(tx gatehouse.Clock, c *gatehouse.Caller) error {
	switch {
	case c.Session == nil && c.StepUp, c.TokenShown:
		return nil
	case c.Session == nil:
		return gatehouse.E(gatehouse.CodeEditTokenRequired,
			"changing rights, credentials or rules needs your edit token in X-Edit-Token")
	case tx.Now().Sub(c.Session.CreatedAt) < gatehouse.FreshSignIn:
		return nil
	case c.TokenWrong:
		return gatehouse.E(gatehouse.CodeEditTokenRequired, "this is not your edit token")
	}
	return gatehouse.E(gatehouse.CodeEditTokenRequired,
		"changing rights, credentials or rules needs your edit token, or a sign-in of the last %d minutes",
		int(gatehouse.FreshSignIn.Minutes()))
}

// ShowEditToken checks an edit token that a signed-in browser sent. It returns the context with TokenShown or
// TokenWrong set in the caller. A use case that needs a step-up accepts a wrong token only from a session that is
// younger than [gatehouse.FreshSignIn], which needs no token.
func (g *Gate) ShowEditToken(ctx context.Context, token string) (context.Context, error) {
	c, err := browserCaller(ctx)
	if err != nil {
		return ctx, err
	}
	ok, err := g.CheckEditToken(ctx, c.Principal, token)
	if err != nil {
		return ctx, err
	}
	shown := *c
	shown.TokenShown, shown.TokenWrong = ok, !ok
	return gatehouse.NewContext(ctx, &shown), nil
}
