package signin

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/url"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/gatehouse-dev/gatehouse"
)

const kindOIDC = "oidc"

func (s *Service) provider(name string) (*provider, error) {
	if p := s.providers[name]; p != nil {
		return p, nil
	}
	return nil, gatehouse.E(gatehouse.CodeNotFound, "no such sign-in provider")
}

// BeginOIDC begins a sign-in.
func (s *Service) BeginOIDC(ctx context.Context, provider, returnTo string) (*gatehouse.Redirect, error) {
	p, err := s.provider(provider)
	if err != nil {
		return nil, err
	}
	return s.beginOIDC(ctx, p, &ceremony{Purpose: purposeSignIn, ReturnTo: localPath(returnTo)}, p.Tenant, "")
}

// BeginOIDCLink begins linking the caller to an identity at the provider.
func (s *Service) BeginOIDCLink(
	ctx context.Context, provider, editToken, returnTo string,
) (*gatehouse.Redirect, error) {
	p, err := s.provider(provider)
	if err != nil {
		return nil, err
	}
	c, err := signedIn(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.dir.CheckFresh(ctx, editToken); err != nil {
		return nil, err
	}
	return s.beginOIDC(ctx, p, &ceremony{Purpose: purposeLink, ReturnTo: localPath(returnTo)}, c.Session.Tenant,
		c.Session.ID)
}

// BeginOIDCStepUp asks for a fresh authentication of the caller.
func (s *Service) BeginOIDCStepUp(
	ctx context.Context, provider, actionID string, digest gatehouse.Digest, returnTo string,
) (*gatehouse.Redirect, error) {
	p, err := s.provider(provider)
	if err != nil {
		return nil, err
	}
	c, err := signedIn(ctx)
	if err != nil {
		return nil, err
	}
	m := &ceremony{Purpose: purposeStepUp, ActionID: actionID, Digest: digest, Random: randomBytes(),
		ReturnTo: localPath(returnTo)}
	return s.beginOIDC(ctx, p, m, c.Session.Tenant, c.Session.ID)
}

func (s *Service) beginOIDC(
	ctx context.Context, p *provider, m *ceremony, tenant, session string,
) (*gatehouse.Redirect, error) {
	d, err := p.discover(ctx)
	if err != nil {
		return nil, err
	}
	m.Kind, m.Provider, m.Verifier, m.Nonce, m.BegunAt = kindOIDC, p.Name, oauth2.GenerateVerifier(),
		encode(randomBytes()), s.config.Now()
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(m.Verifier)}
	if m.Purpose == purposeStepUp {
		m.Nonce = encode(m.proof())
		options = append(options, oauth2.SetAuthURLParam("prompt", "login"), oauth2.SetAuthURLParam("max_age", "0"))
	}
	state, expires, err := s.begin(ctx, m, tenant, session)
	if err != nil {
		return nil, err
	}
	to := d.oauth.AuthCodeURL(shownState(state), append(options, oidc.Nonce(m.Nonce))...)
	return &gatehouse.Redirect{URL: to, State: state, ExpiresAt: expires}, nil
}

// shownState is the state parameter of an authorization request: a hash of the browser's secret.
func shownState(state string) string {
	sum := sha256.Sum256([]byte("gatehouse oidc state\x00" + state))
	return encode(sum[:])
}

// FinishOIDC takes the provider's answer.
func (s *Service) FinishOIDC(
	ctx context.Context, state string, answer url.Values, b gatehouse.Browser,
) (*gatehouse.OIDCResult, error) {
	m, caller, err := s.take(ctx, state, kindOIDC, "")
	if err != nil {
		return nil, err
	}
	p, err := s.provider(m.Provider)
	if err != nil {
		return nil, err
	}
	for name, values := range answer {
		if len(values) != 1 {
			return nil, s.refuse(ctx, "a parameter occurs twice", "parameter", name)
		}
	}
	switch {
	case !same(answer.Get("state"), shownState(state)):
		return nil, s.refuse(ctx, "the sign-in or step-up was begun in another browser", "provider", p.Name)
	case answer.Has("iss") && answer.Get("iss") != p.Issuer: // RFC 9207
		return nil, s.refuse(ctx, "another provider answered", "provider", p.Name, "iss", answer.Get("iss"))
	case answer.Has("error"):
		return nil, s.refuse(ctx, "the provider refused", "provider", p.Name, "error", answer.Get("error"), "description",
			answer.Get("error_description"))
	case answer.Get("code") == "":
		return nil, s.refuse(ctx, "the answer has no code", "provider", p.Name)
	}
	if m.Purpose == purposeStepUp {
		m.Nonce = encode(m.proof()) // the hash of the stored values, not the nonce as it was stored
	}
	id, err := p.exchange(ctx, answer.Get("code"), m.Verifier, m.Nonce)
	var known *gatehouse.Error
	switch {
	case errors.As(err, &known):
		return nil, err
	case err != nil:
		return nil, s.refuse(ctx, "the code or its tokens are not valid", "provider", p.Name, "error", err)
	}
	return s.finishOIDC(ctx, p, m, caller, id, b)
}

func (s *Service) finishOIDC(
	ctx context.Context, p *provider, m *ceremony, caller *gatehouse.Caller, id *identity, b gatehouse.Browser,
) (*gatehouse.OIDCResult, error) {
	out := &gatehouse.OIDCResult{ReturnTo: m.ReturnTo}
	var err error
	switch {
	case m.Purpose == purposeSignIn && caller == nil:
		out.SignedIn, err = s.dir.SignInExternal(ctx, p.external(id), b)
	case m.Purpose == purposeLink && caller != nil:
		out.Linked, err = s.dir.LinkIdentity(ctx, p.Tenant, p.Issuer, id.subject)
	case m.Purpose == purposeStepUp && caller != nil:
		if why := s.stale(m, id); why != "" {
			return nil, s.refuse(ctx, why, "provider", p.Name, "auth_time", id.authTime)
		}
		out.StepUp, err = s.dir.StepUpExternal(ctx, p.Issuer, id.subject, m.ActionID, m.Digest)
	default:
		err = s.refuse(ctx, "the ceremony has another purpose", "purpose", m.Purpose)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// stale returns the reason why an authentication is not the fresh one that was requested, "" if
// it is: a provider may ignore prompt and max_age, so auth_time is checked.
func (s *Service) stale(m *ceremony, id *identity) string {
	switch {
	case id.authTime.IsZero():
		return "the provider does not say when the person authenticated"
	case id.authTime.Before(m.BegunAt.Add(-leeway).Truncate(time.Second)):
		return "the person authenticated before the step-up"
	case id.authTime.After(s.config.Now().Add(leeway)):
		return "the person authenticated in the future"
	}
	return ""
}
