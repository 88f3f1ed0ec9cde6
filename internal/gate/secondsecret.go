package gate

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
)

// Whoever can create credentials, roles or policies can create an approver. Such changes are
// therefore guarded like decisions: a key alone, which can be found in environments and shell
// histories, is not enough.

// provenAdmin returns the caller of a use case that makes or changes credentials,
// roles, groups, set-up links, policies, secrets or connectors: an administrator
// who has proven the second secret. See [Gate.proven].
func (g *Gate) provenAdmin(ctx context.Context) (*gatehouse.Caller, error) {
	c, err := admin(ctx)
	if err != nil {
		return nil, err
	}
	return c, g.requireSecondSecret(ctx, c)
}

// requireSecondSecret fails with edit_token_required unless the request carried the caller's
// edit token, or comes from a browser that signed in within
// [gatehouse.FreshSignIn].
func (g *Gate) requireSecondSecret(ctx context.Context, c *gatehouse.Caller) error {
	return g.Store.View(ctx, c.Principal.Tenant, func(tx gatehouse.ReadTx) error { return checkSecondSecret(tx, c) })
}

func checkSecondSecret(tx gatehouse.Clock, c *gatehouse.Caller) error {
	switch {
	case c.Session == nil && c.StepUp, c.TokenShown:
		return nil
	case c.Session == nil:
		return gatehouse.E(gatehouse.CodeEditTokenRequired,
			"changing rights, credentials or rules needs your edit token (X-Edit-Token)")
	case tx.Now().Sub(c.Session.CreatedAt) < gatehouse.FreshSignIn:
		return nil
	}
	return gatehouse.E(gatehouse.CodeEditTokenRequired,
		"changing rights, credentials or rules needs your edit token, or a sign-in of the last %d minutes",
		int(gatehouse.FreshSignIn.Minutes()))
}

// ShowEditToken returns the context of a signed-in browser, with TokenShown set
// when the request carried the person's edit token. A wrong token does not change
// the context: use cases that need the token then refuse the request.
func (g *Gate) ShowEditToken(ctx context.Context, token string) (context.Context, error) {
	c, err := browserCaller(ctx)
	if err != nil {
		return ctx, err
	}
	ok, err := g.CheckEditToken(ctx, c.Principal, token)
	if err != nil || !ok {
		return ctx, err
	}
	shown := *c
	shown.TokenShown = true
	return gatehouse.NewContext(ctx, &shown), nil
}
