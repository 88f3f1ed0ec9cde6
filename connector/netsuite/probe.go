package netsuite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

var _ connector.ProbeReporter = (*Connector)(nil)

// Probe implements [connector.Prober].
func (c *Connector) Probe(ctx context.Context) error {
	_, err := c.ProbeReport(ctx)
	return err
}

// ProbeReport signs in with a request that changes nothing: it pings Gatehouse's RESTlet, or reads
// the description of a record type from the record service. Another RESTlet is not called, because
// its GET may change something.
func (c *Connector) ProbeReport(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	ours := c.cfg.RESTlet != nil && c.cfg.RESTlet.Protocol == protocolGatehouse
	r := c.describe()
	if ours {
		r = c.restlet(http.MethodGet, url.Values{"protocol": {protocol}, "do": {"ping"}})
	}
	x, failure := c.do(ctx, r)
	if failure != nil {
		return "", errors.New(failure.Detail)
	}
	const accepted = "its target answers and accepts the credentials"
	switch s := x.answer.Status; {
	case s == http.StatusUnauthorized:
		return "", fmt.Errorf("the login is refused: %s", x.refusal(false).Detail)
	case s == http.StatusOK && ours && rest.Text(x.doc, "outcome") != "ready":
		return "", errors.New("the RESTlet does not support the configured protocol")
	case s == http.StatusOK:
		return accepted, nil
	case c.reader() == readsNothing && (s == http.StatusForbidden || s == http.StatusNotFound):
		// Only the record service refused the request. Changes through a RESTlet do not need it.
		limit := ", whose role may not use the record service"
		if c.cfg.via(opCreate) == viaREST {
			limit += ", which create needs"
		}
		return accepted + limit, nil
	}
	return "", errors.New(x.refusal(false).Detail)
}

// describe makes a request for the description of the first record type, or of all if no entity names one.
func (c *Connector) describe() *rest.Request {
	u := *c.restURL
	u.Path += "/services/rest/record/v1/metadata-catalog"
	u.RawPath = ""
	for _, name := range slices.Sorted(maps.Keys(c.entities)) {
		if kind := c.entities[name].RESTRecord; kind != "" {
			u.Path += "/" + kind
			break
		}
	}
	return rest.NewRequest(http.MethodGet, &u)
}
