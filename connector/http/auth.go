package httpconn

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// auth compiles the configured kind of authentication. A fixed credential becomes a header.
func (b *builder) auth(c *Connector, h *headers) {
	a := b.cfg.Auth
	if a == nil {
		return
	}
	n := 0
	if a.Bearer != nil {
		n++
		h.set(header{name: "Authorization", secret: "Bearer " + b.secret("auth.bearer", a.Bearer.Secret)})
	}
	if a.Basic != nil {
		n++
		if a.Basic.Username == "" || strings.ContainsAny(a.Basic.Username, ":\r\n") {
			b.fail("auth.basic.username", errors.New("is missing, or has a colon or line break"))
		}
		password := b.secret("auth.basic.password", a.Basic.Password.Secret)
		h.set(header{name: "Authorization", secret: basic(a.Basic.Username, password)})
	}
	if a.Header != nil {
		n++
		name := b.headerName("auth.header.name", a.Header.Name)
		h.set(header{name: name, secret: b.secret("auth.header", a.Header.Secret)})
	}
	if a.OAuth2 != nil {
		n++
		c.token = b.oauth2(a.OAuth2, c.client)
	}
	if a.OAuth1 != nil {
		n++
		c.oauth1 = &rest.OAuth1{
			Realm: a.OAuth1.Realm, Now: time.Now,
			ConsumerKey:    b.value("auth.oauth1.consumer_key", a.OAuth1.ConsumerKey.Secret),
			ConsumerSecret: b.value("auth.oauth1.consumer_secret", a.OAuth1.ConsumerSecret.Secret),
			Token:          b.value("auth.oauth1.token", a.OAuth1.Token.Secret),
			TokenSecret:    b.value("auth.oauth1.token_secret", a.OAuth1.TokenSecret.Secret),
		}
	}
	if n != 1 {
		b.fail("auth", errors.New("needs exactly one of bearer, basic, header, oauth2 and oauth1"))
	}
}

func basic(username, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(username+":"+password))
}

// oauth2 compiles the client credentials flow (RFC 6749, section 4.4). The result fetches access tokens.
func (b *builder) oauth2(cfg *OAuth2, client *http.Client) *rest.Token {
	const at = "auth.oauth2"
	u, err := rest.ParseBase(cfg.TokenURL, b.cfg.AllowPrivate, true)
	if err != nil {
		b.fail(at+".token_url", err)
		return nil
	}
	if strings.HasSuffix(cfg.TokenURL, "/") { // it is a whole address, not a prefix
		u = u.JoinPath("/")
	}
	if cfg.ClientID == "" {
		b.fail(at+".client_id", errors.New("is required"))
	}
	secret := b.value(at+".client_secret", cfg.ClientSecret.Secret)
	form := url.Values{"grant_type": {"client_credentials"}}
	if len(cfg.Scopes) > 0 {
		form.Set("scope", strings.Join(cfg.Scopes, " "))
	}
	if cfg.Audience != "" {
		form.Set("audience", cfg.Audience)
	}
	var authorization string
	switch cfg.Style {
	case "", "basic":
		authorization = basic(url.QueryEscape(cfg.ClientID), url.QueryEscape(secret)) // RFC 6749, section 2.3.1
	case "body":
		form.Set("client_id", cfg.ClientID)
		form.Set("client_secret", secret)
	default:
		b.fail(at+".style", errors.New("must be basic or body"))
	}
	return &rest.Token{Fetch: func(ctx context.Context) (string, time.Time, *connector.Error) {
		return rest.FetchToken(ctx, client, u, authorization, form)
	}}
}

// trust sets the trusted authorities and the client certificate.
func (b *builder) trust(c *Connector) {
	roots, err := rest.Authorities(b.cfg.CAFile)
	b.fail("ca_file", err)
	var certificates []tls.Certificate
	if cc := b.cfg.ClientCertificate; cc != nil {
		const at = "client_certificate"
		if c.base.Scheme != "https" {
			b.fail(at, errors.New("needs a base_url with https"))
		}
		cert, key := b.value(at+".cert", cc.Cert.Secret), b.value(at+".key", cc.Key.Secret)
		if b.err != nil {
			return
		}
		pair, err := rest.Certificate(cert, key)
		b.fail(at, err)
		certificates = append(certificates, pair)
	}
	rest.Trust(c.client, roots, certificates...)
}

// send authorizes a request and sends it once. After an answer 401, again reports whether another
// access token may be accepted. If the access token cannot be fetched, the request is not sent.
func (c *Connector) send(ctx context.Context, r *rest.Request) (a *rest.Answer, again bool, failed *connector.Error) {
	var token string
	switch {
	case c.oauth1 != nil:
		c.oauth1.Sign(r)
	case c.token != nil:
		if token, failed = c.token.Get(ctx); failed != nil {
			return nil, false, failed
		}
		r.SetSecret("Authorization", "Bearer "+token)
	}
	a, err := rest.Send(ctx, c.client, r)
	if err != nil {
		return nil, false, rest.Unanswered(ctx, err)
	}
	if token != "" {
		again = a.Status == http.StatusUnauthorized && c.token.Drop(token)
	}
	return a, again, nil
}

// read sends a request that changes nothing. It can be repeated, so its failure is never ambiguous.
func (c *Connector) read(ctx context.Context, r *rest.Request) (*rest.Answer, *connector.Error) {
	a, again, failed := c.send(ctx, r)
	if again {
		a, _, failed = c.send(ctx, r)
	}
	return a, rest.ReadFailure(failed)
}
