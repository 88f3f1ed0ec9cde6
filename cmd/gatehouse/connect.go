package main

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
)

// service is what the client commands speak to: the domain, over HTTP.
type service interface {
	gatehouse.ActionService
	gatehouse.DispatchService
	gatehouse.AdminService
	gatehouse.PolicyService
	gatehouse.AuditService
	gatehouse.SessionService
	gatehouse.RunService
	gatehouse.CheckService
	gatehouse.KeeperService
	gatehouse.NoticeService
	gatehouse.NotificationService
	gatehouse.LinkKeyService
	gatehouse.DelegationService
	gatehouse.GrantService
	gatehouse.InsightService
}

// connect makes the client. It does not yet speak to the server.
func (g *globals) connect() (service, error) {
	if err := g.resolve(); err != nil {
		return nil, err
	}
	c, err := client.New(g.URL, g.Key, client.WithEditToken(g.EditToken), client.WithChannel(gatehouse.ViaCLI))
	if err != nil {
		return nil, usagef("--url or GATEHOUSE_URL is not the address of a server, such as http://127.0.0.1:8080")
	}
	return c, nil
}

// isUnreachable reports whether an error is of the connection: no server, or
// none that answered in full.
func isUnreachable(err error) bool {
	var u *url.Error
	return errors.As(err, &u) && !errors.Is(err, context.Canceled)
}

// wordsOf is what an error says to a person: of a connection, which server was
// not reached and why, without the request that was on its way.
func wordsOf(err error) string {
	var u *url.Error
	if !isUnreachable(err) || !errors.As(err, &u) {
		return err.Error()
	}
	server := u.URL
	if at, perr := url.Parse(u.URL); perr == nil {
		server = at.Scheme + "://" + at.Host
	}
	return "no answer from " + server + ": " + u.Err.Error()
}

// passing reports whether an error may be gone when one asks again: the server
// is busy, restarting, or was not reached.
func passing(err error) bool {
	var e *gatehouse.Error
	return isUnreachable(err) || errors.As(err, &e) && e.Code.Retryable()
}

// retryIn is how long to wait after an error that a retry may mend.
func retryIn(err error) time.Duration {
	var e *gatehouse.Error
	if errors.As(err, &e) && e.RetryAfter > 0 {
		return time.Duration(e.RetryAfter) * time.Second
	}
	return time.Second
}
