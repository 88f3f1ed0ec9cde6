package httpconn

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

var _ connector.ProbeReporter = (*Connector)(nil)

// probe is the request of a test call.
type probe struct {
	path    *pathTemplate
	headers headers
	timeout time.Duration
}

// probe compiles the test call. The call has no action, so the headers with values of an action are
// left out.
func (b *builder) probe(common headers) *probe {
	if b.cfg.Probe == nil {
		return nil
	}
	const at = "probe.path"
	p := &probe{path: b.path(at, b.cfg.Probe.Path, false), timeout: b.cfg.Timeout.D()}
	if placeholder.MatchString(b.cfg.Probe.Path) {
		b.fail(at, errors.New("cannot have placeholders: a test call has no action"))
	}
	if p.timeout == 0 {
		p.timeout = defaultTimeout
	}
	for _, h := range common {
		if !slices.ContainsFunc(h.value, func(p part) bool { return p.name != "" }) {
			p.headers = append(p.headers, h)
		}
	}
	return p
}

// Probe implements [connector.Prober].
func (c *Connector) Probe(ctx context.Context) error {
	_, err := c.ProbeReport(ctx)
	return err
}

// ProbeReport reads the configured path. Without one it connects to the target and sends nothing;
// with OAuth 2.0 it also needs an access token.
func (c *Connector) ProbeReport(ctx context.Context) (string, error) {
	if c.probe == nil {
		return c.reach(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, c.probe.timeout)
	defer cancel()
	r, err := c.draft(http.MethodGet, c.probe.path, c.probe.headers, values{})
	if err != nil {
		return "", err
	}
	a, failed := c.read(ctx, r)
	switch {
	case failed != nil:
		return "", errors.New(failed.Detail)
	case a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden:
		return "", fmt.Errorf("the credentials are refused: %s", a.Describe())
	case a.Status < 200 || a.Status > 299:
		return "", errors.New(a.Describe())
	case !c.secret:
		return "its target answers", nil
	}
	return "its target answers and accepts the credentials", nil
}

func (c *Connector) reach(ctx context.Context) (string, error) {
	shown := "its target answers"
	switch {
	case c.token != nil:
		if _, failed := c.token.Get(ctx); failed != nil {
			return "", errors.New(failed.Detail)
		}
		shown += ", and its authorization server accepts the credentials"
	case c.secret:
		shown += "; set probe to test the credentials"
	}
	return shown, rest.Reach(ctx, c.client, c.base)
}
