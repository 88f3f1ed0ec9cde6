package gatehouse

import (
	"context"
	"net/url"
	"time"
)

// The console signs people in with two services: [BrowserService] keeps the
// sessions (internal/app), [SignInService] runs the ceremonies of OIDC and
// passkeys (internal/signin). Neither knows HTML or cookies.
//
// A console's handler does the following.
//
//   - On every request: FindSession with the session cookie's value. Its caller
//     goes into the context with [NewContext], and every service then knows it.
//   - Signing in: what gives a [SignedIn] gives a new token. It goes into the
//     session cookie (HttpOnly, Path=/, SameSite=Lax: an OIDC provider's answer
//     arrives as a navigation from elsewhere; Secure and __Host- over https).
//     The cookie's old value goes into Browser.Previous: that session ends, and
//     a token that was planted is never adopted.
//   - Between Begin and Finish: the State goes into a cookie of its own (same
//     attributes, until ExpiresAt), is handed to Finish and cleared. It works
//     once, whatever comes of it.
//   - A page under GET begins nothing that counts: set-up links are redeemed by
//     POST. The one exception is OIDC's return, which needs the State cookie.

// Browser is what a sign-in comes from.
type Browser struct {
	UserAgent string
	// Previous is the session token that the browser sent, if it sent one.
	Previous string
}

// SignedIn is a session that has just begun, with its token, shown this once.
type SignedIn struct {
	Session   *Session
	Principal *Principal
	Token     string
}

// BrowserService keeps the sessions of browsers. Where a method takes no
// token, the caller of the context must come from FindSession.
type BrowserService interface {
	// FindSession returns the caller of a session token, with Session set, Via
	// console, and StepUp true: the sign-in stands in for the edit token up to
	// L3. Unauthenticated for a token that is unknown, expired or revoked, or
	// whose principal is disabled.
	FindSession(ctx context.Context, token string) (*Caller, error)
	// PeekSession is FindSession without the note that the session was used:
	// for what a page does while nobody looks at it.
	PeekSession(ctx context.Context, token string) (*Caller, error)
	// SignOut ends the caller's session.
	SignOut(ctx context.Context) error
	// FindSetupLink tells whom a set-up link is for, and does not use it up.
	// Unauthenticated for one that is unknown or used, expired for an old one.
	FindSetupLink(ctx context.Context, token string) (*SetupLink, *Principal, error)
	// RedeemSetupLink uses it up; errors as FindSetupLink.
	RedeemSetupLink(ctx context.Context, token string, b Browser) (*SignedIn, error)
	// ListPasskeys and ListIdentities return those of a principal, by id or
	// name, "" for the caller: others' are shown to an administrator.
	ListPasskeys(ctx context.Context, principal string) ([]*Passkey, error)
	ListIdentities(ctx context.Context, principal string) ([]*ExternalIdentity, error)
	// RemovePasskey removes a passkey of the caller's, or, for an
	// administrator, anybody's, and ends the sessions that began with it.
	RemovePasskey(ctx context.Context, id string) error
	// UnlinkIdentity does the same to a link to an OIDC identity, for an
	// administrator only: who unlinks itself could come back as somebody new.
	UnlinkIdentity(ctx context.Context, issuer, subject string) error
	// FindStepUp returns the caller's open step-up for an action as shown;
	// not_found when there is none. Decide uses it up.
	FindStepUp(ctx context.Context, actionID string, digest Digest) (*StepUp, error)
	// StepUpWithEditToken records a step-up by the person's edit token;
	// edit_token_required for a wrong one. It works without JavaScript.
	StepUpWithEditToken(ctx context.Context, actionID string, digest Digest, token string) (*StepUp, error)
}

// SignInService runs the ceremonies. Errors of Finish: unauthenticated for a
// State or an answer that does not hold, whatever the reason; role_required
// where the identity is proven and gives no access.
type SignInService interface {
	// Options tells what can be signed in with here.
	Options() SignInOptions

	// BeginOIDC begins a sign-in at a provider. returnTo is a path of this
	// server (else "/" is taken), handed back by FinishOIDC.
	BeginOIDC(ctx context.Context, provider, returnTo string) (*Redirect, error)
	// BeginOIDCLink begins linking the caller to its identity at a provider:
	// step_up_required unless the sign-in is fresh or editToken is the caller's.
	BeginOIDCLink(ctx context.Context, provider, editToken, returnTo string) (*Redirect, error)
	// BeginOIDCStepUp asks the provider to authenticate the caller anew, for
	// one action as it was shown.
	BeginOIDCStepUp(ctx context.Context, provider, actionID string, digest Digest, returnTo string) (*Redirect, error)
	// FinishOIDC takes the provider's answer at CallbackPath to any of them:
	// the State cookie's value and the query's parameters. A link and a step-up
	// need the caller that began them in the context.
	FinishOIDC(ctx context.Context, state string, answer url.Values, b Browser) (*OIDCResult, error)

	// BeginPasskeySignIn, and then the caller's: adding one (step_up_required
	// as for BeginOIDCLink), and a step-up for one action as it was shown.
	BeginPasskeySignIn(ctx context.Context) (*Challenge, error)
	FinishPasskeySignIn(ctx context.Context, state string, response []byte, b Browser) (*SignedIn, error)
	BeginPasskeyRegistration(ctx context.Context, name, editToken string) (*Challenge, error)
	FinishPasskeyRegistration(ctx context.Context, state string, response []byte) (*Passkey, error)
	BeginPasskeyStepUp(ctx context.Context, actionID string, digest Digest) (*Challenge, error)
	FinishPasskeyStepUp(ctx context.Context, state string, response []byte) (*StepUp, error)
}

// SignInOptions tells what can be signed in with.
type SignInOptions struct {
	// Providers lists the OIDC providers in the order of the configuration.
	Providers []SignInProvider
	Passkeys  bool
	// PasskeyOrigins are where browsers can use them, such as
	// http://localhost:8080: the same page at another address cannot.
	PasskeyOrigins []string
}

// SignInProvider is one OIDC provider.
type SignInProvider struct {
	// Name names it in BeginOIDC, Issuer in an ExternalIdentity.
	Name, Issuer string
}

// CallbackPath is where OIDC providers send the browser back to, behind the
// configured public_url.
const CallbackPath = "/signin/oidc/callback"

// Redirect is where the browser has to go (303), and what it has to keep.
type Redirect struct {
	URL       string
	State     string
	ExpiresAt time.Time
}

// Challenge is a WebAuthn ceremony: Options is the JSON of
// PublicKeyCredentialCreationOptionsJSON or …RequestOptionsJSON, for
// PublicKeyCredential.parseCreationOptionsFromJSON and
// parseRequestOptionsFromJSON; the answer's toJSON() is what Finish takes.
type Challenge struct {
	Options   JSON
	State     string
	ExpiresAt time.Time
}

// OIDCResult is what an OIDC ceremony came to: exactly one of SignedIn, Linked
// and StepUp is set.
type OIDCResult struct {
	SignedIn *SignedIn
	Linked   *ExternalIdentity
	StepUp   *StepUp
	// ReturnTo is a path of this server.
	ReturnTo string
}

// ExternalSignIn is a proven OIDC identity, and what the configuration makes of
// its groups.
type ExternalSignIn struct {
	Tenant, Provider, Issuer, Subject string
	// Name is what the person is called there, for one who is new here. It
	// identifies nobody.
	Name string
	// Roles are those of the person's groups. Managed are all that the
	// mapping can give: those, and no others, are taken away again.
	Roles, Managed []Role
	// Groups are the groups of this tenant that the person is a member of, as the
	// mapping says; memberships that the issuer gave earlier end.
	Groups []string
	// Provision makes a person of an unknown identity that has a role.
	Provision bool
}
