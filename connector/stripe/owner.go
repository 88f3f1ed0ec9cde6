package stripe

import (
	"context"
	"fmt"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// owned fails unless the key belongs to key_account. It asks Stripe before the first read or
// change, so a key of another account is used for nothing else.
func (c *Connector) owned(ctx context.Context) *connector.Error {
	if c.cfg.KeyAccount == "" || c.ownerKnown.Load() {
		return nil
	}
	r := c.prepare(http.MethodGet, "/v1/account")
	r.Header.Del("Stripe-Account") // with it, Stripe would answer with the connected account
	a, err := c.hold.Send(ctx, c.client, r)
	if err != nil {
		return rest.Unread(ctx, err)
	}
	doc := a.JSON()
	id := member(doc, "id")
	wrong := func(format string, args ...any) *connector.Error {
		return &connector.Error{Kind: connector.Terminal, Code: "wrong_account", Detail: fmt.Sprintf(format, args...)}
	}
	switch {
	case a.Status == http.StatusForbidden:
		return wrong("the key may not read its account, so Gatehouse cannot verify that it belongs to the account %s",
			c.cfg.KeyAccount)
	case a.Status != http.StatusOK || !accountForm.MatchString(id):
		return unread(a, doc)
	case id != c.cfg.KeyAccount:
		return wrong("the key is for the account %s, not %s", gatehouse.Quote(id), c.cfg.KeyAccount)
	}
	c.ownerKnown.Store(true)
	return nil
}
