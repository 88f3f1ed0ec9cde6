package signin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/gatehouse-dev/gatehouse"
)

// provider is an OIDC provider. Its addresses and keys are requested at its first use, so that
// the server starts even if the provider is down.
type provider struct {
	Provider
	redirect string
	client   *http.Client
	now      func() time.Time

	// discovering is the lock of discover; waiting for it ends with the caller's context.
	discovering chan struct{}
	found       *discovered
	// discover returns failed, its last error, until the time in retryAt.
	failed  error
	retryAt time.Time
}

// retryAfter is how long a provider that did not answer is not asked again.
const retryAfter = 5 * time.Second

type discovered struct {
	provider *oidc.Provider
	verifier *oidc.IDTokenVerifier
	oauth    oauth2.Config
}

func newProvider(p Provider, c Config) *provider {
	if len(p.Scopes) == 0 {
		p.Scopes = []string{"profile"}
	}
	if p.GroupsClaim == "" {
		p.GroupsClaim = "groups"
	}
	if p.NameClaim == "" {
		p.NameClaim = "preferred_username"
	}
	if p.Tenant == "" {
		p.Tenant = gatehouse.DefaultTenant
	}
	return &provider{Provider: p, redirect: strings.TrimSuffix(c.PublicURL, "/") + gatehouse.CallbackPath, client: c.HTTP,
		now: c.Now, discovering: make(chan struct{}, 1)}
}

// discover reads the provider's configuration once. After a failure, it returns the same error for
// retryAfter, and then tries again.
func (p *provider) discover(ctx context.Context) (*discovered, error) {
	select {
	case p.discovering <- struct{}{}:
		defer func() { <-p.discovering }()
	case <-ctx.Done():
		return nil, p.down(ctx.Err())
	}
	if p.found != nil {
		return p.found, nil
	}
	if p.failed != nil && p.now().Before(p.retryAt) {
		return nil, p.failed
	}
	// The key set outlives the request, so it does not use the request's context; the client has
	// its own time limit.
	found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), p.client), p.Issuer)
	if err != nil {
		p.failed, p.retryAt = p.down(err), p.now().Add(retryAfter)
		return nil, p.failed
	}
	p.found = &discovered{
		provider: found,
		// The clock for the expiry lags by the permitted leeway.
		verifier: found.Verifier(&oidc.Config{ClientID: p.ClientID, Now: func() time.Time { return p.now().Add(-leeway) }}),
		oauth: oauth2.Config{
			ClientID: p.ClientID, ClientSecret: p.ClientSecret, RedirectURL: p.redirect, Endpoint: found.Endpoint(),
			Scopes: append([]string{oidc.ScopeOpenID},
				slices.DeleteFunc(slices.Clone(p.Scopes), func(s string) bool { return s == oidc.ScopeOpenID })...),
		},
	}
	return p.found, nil
}

func (p *provider) down(err error) error {
	e := gatehouse.E(gatehouse.CodeBusy, "the sign-in provider %s does not answer; try again", p.Name).Because(err)
	e.RetryAfter = int(retryAfter / time.Second)
	return e
}

// asBusy turns a connection failure into busy, and returns the provider's own errors unchanged.
func (p *provider) asBusy(err error) error {
	var connection *url.Error
	if errors.As(err, &connection) {
		return p.down(err)
	}
	return err
}

// keysMissing begins the error of a verification whose keys could not be requested. The library gives this error no
// type.
const keysMissing = "failed to verify signature: fetching keys "

// identity has the provider's claims about a person.
type identity struct {
	subject  string
	name     string
	groups   []string
	authTime time.Time
}

// exchange exchanges a code for an identity. An error that is not a gatehouse.Error means that
// the code or its tokens are not valid.
func (p *provider) exchange(ctx context.Context, code, verifier, nonce string) (*identity, error) {
	d, err := p.discover(ctx)
	if err != nil {
		return nil, err
	}
	ctx = oidc.ClientContext(ctx, p.client)
	token, err := d.oauth.Exchange(ctx, code, oauth2.VerifierOption(verifier))
	if err != nil {
		return nil, p.asBusy(err)
	}
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return nil, fmt.Errorf("the provider sent no ID token")
	}
	t, err := d.verifier.Verify(ctx, raw)
	switch {
	case err == nil:
	case strings.HasPrefix(err.Error(), keysMissing):
		return nil, p.down(err)
	default:
		return nil, err
	}
	claims := make(map[string]any)
	if err := t.Claims(&claims); err != nil {
		return nil, err
	}
	switch azp, _ := claims["azp"].(string); {
	case t.Nonce == "" || !same(t.Nonce, nonce):
		return nil, fmt.Errorf("the ID token has another nonce")
	case azp == "" && len(t.Audience) > 1:
		return nil, fmt.Errorf("the ID token has several audiences and no azp")
	case azp != "" && azp != p.ClientID:
		return nil, fmt.Errorf("the ID token was made for %s", gatehouse.Quote(azp))
	case t.IssuedAt.After(p.now().Add(leeway)):
		return nil, fmt.Errorf("the ID token was issued at %s, in the future", t.IssuedAt)
	case t.Subject == "" || len(t.Subject) > 255:
		return nil, fmt.Errorf("the ID token's subject has %d bytes", len(t.Subject))
	}
	id := &identity{subject: t.Subject}
	if at, ok := claims["auth_time"].(float64); ok {
		id.authTime = time.Unix(int64(at), 0)
	}
	if err := p.complete(ctx, d, token, claims, t.Subject); err != nil {
		return nil, err
	}
	id.name, _ = claims[p.NameClaim].(string)
	id.groups = texts(claims[p.GroupsClaim])
	return id, nil
}

// complete adds the claims that the provider has only at its userinfo endpoint. Groups that
// could not be read are an error: a missing answer does not mean "no groups".
func (p *provider) complete(
	ctx context.Context, d *discovered, token *oauth2.Token, claims map[string]any, subject string,
) error {
	_, groups := claims[p.GroupsClaim]
	_, name := claims[p.NameClaim]
	if groups && name || d.provider.UserInfoEndpoint() == "" {
		return nil
	}
	info, err := d.provider.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return p.asBusy(fmt.Errorf("userinfo: %w", err))
	}
	if info.Subject != subject {
		return fmt.Errorf("userinfo is about another subject")
	}
	more := make(map[string]any)
	if err := info.Claims(&more); err != nil {
		return err
	}
	for _, claim := range []string{p.GroupsClaim, p.NameClaim} {
		if _, ok := claims[claim]; !ok {
			claims[claim] = more[claim]
		}
	}
	return nil
}

// texts reads a claim that is a text or a list of texts.
func texts(claim any) (list []string) {
	switch v := claim.(type) {
	case string:
		return []string{v}
	case []any:
		for _, item := range v {
			if s, ok := item.(string); ok {
				list = append(list, s)
			}
		}
	}
	return list
}

// external returns the sign-in of an identity, with the roles and groups that the configuration gives to the
// identity's groups.
func (p *provider) external(id *identity) gatehouse.ExternalSignIn {
	e := gatehouse.ExternalSignIn{
		Tenant: p.Tenant, Provider: p.Name, Issuer: p.Issuer, Subject: id.subject, Name: id.name, Provision: p.Provision,
	}
	for group, roles := range p.Roles {
		e.Managed = append(e.Managed, roles...)
		if slices.Contains(id.groups, group) {
			e.Roles = append(e.Roles, roles...)
		}
	}
	for group, names := range p.Groups {
		if slices.Contains(id.groups, group) {
			e.Groups = append(e.Groups, names...)
		}
	}
	slices.Sort(e.Groups)
	e.Groups = slices.Compact(e.Groups)
	return e
}
