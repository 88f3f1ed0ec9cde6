package stripe

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

var _ connector.ProbeReporter = (*Connector)(nil)

// Probe implements [connector.Prober].
func (c *Connector) Probe(ctx context.Context) error {
	_, err := c.ProbeReport(ctx)
	return err
}

// ProbeReport reads the account of the key. A restricted key may lack the permission to do so;
// Stripe's answer 403 then shows that it has accepted the key.
func (c *Connector) ProbeReport(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if failure := c.owned(ctx); failure != nil {
		return "", errors.New(failure.Detail)
	}
	a, err := c.hold.Send(ctx, c.client, c.prepare(http.MethodGet, "/v1/account"))
	if err != nil {
		return "", errors.New(rest.Unread(ctx, err).Detail)
	}
	doc := a.JSON()
	inner, _ := doc.Get("error")
	id, code := member(doc, "id"), member(inner, "code")
	switch {
	case a.Status == http.StatusUnauthorized:
		return "", fmt.Errorf("the key is refused: %s", refusal(a, doc).Detail)
	case a.Status == http.StatusForbidden && code == "account_invalid":
		return "", fmt.Errorf("the key has no access to the account %s", c.cfg.Account)
	case a.Status == http.StatusForbidden:
		return "its target answers and accepts the key, which may not read its account", nil
	case a.Status != http.StatusOK:
		return "", errors.New(refusal(a, doc).Detail)
	case !accountForm.MatchString(id):
		return "", errors.New("the answer names no account")
	case c.cfg.Account != "" && id != c.cfg.Account:
		return "", fmt.Errorf("the key is for the account %s, not %s", gatehouse.Quote(id), c.cfg.Account)
	}
	return "its target answers and accepts the key for the account " + id, nil
}
