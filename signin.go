package gatehouse

import (
	"context"
	"net/url"
	"time"
)

// The console signs people in with two services: [BrowserService] stores the
// sessions (internal/gate), [SignInService] runs OIDC and passkey sign-ins
// (internal/signin). Neither knows HTML or cookies.
//
// A console's handler does the following.
//
//   - On every request, it calls FindSession with the session cookie's value, and puts
//     the returned caller into the context with [NewContext] for every service.
//   - Every [SignedIn] has a new token, which goes into the session cookie. Its
//     attributes are HttpOnly, Path=/ and SameSite=Lax, because an OIDC provider sends
//     the browser back by a navigation from another site; over https also Secure and
//     the name prefix __Host-. The cookie's old value goes into Browser.Previous, which
//     ends that session: a token that an attacker planted is never adopted.
//   - Between Begin and Finish, the State is in its own cookie (same attributes, until
//     ExpiresAt). The handler passes it to Finish and clears it. It works once,
//     whatever the result.
//   - A GET request has no effect: set-up links are redeemed by POST. The one exception
//     is the return from an OIDC provider, which needs the State cookie.

// Browser describes the browser that signs in.
type Browser struct {
	// UserAgent is the User-Agent header: untrusted text.
	UserAgent string
	// Previous is the session token that the browser sent, "" for none.
	Previous string
}

// SignedIn is a session that has just begun, with its token, which is shown once.
type SignedIn struct {
	Session   *Session
	Principal *Principal
	// Token goes into the browser's cookie.
	Token string
}

// BrowserService stores the sessions of browsers. For methods that take no session
// or link token, the caller of the context must come from FindSession.
type BrowserService interface {
	// FindSession returns the caller of a session token, with Session set, Via
	// console, and StepUp true: for actions up to risk level L3, the sign-in
	// substitutes for the edit token. The error is unauthenticated for a token that
	// is unknown, expired or revoked, or whose principal is disabled or has no role.
	FindSession(ctx context.Context, token string) (*Caller, error)
	// PeekSession is FindSession without recording the use of the session, for requests that an
	// open page makes by itself.
	PeekSession(ctx context.Context, token string) (*Caller, error)
	// SignOut ends the caller's session.
	SignOut(ctx context.Context) error
	// FindSetupLink returns a set-up link and its person, and does not consume the
	// link. The error is unauthenticated for an unknown or used link, expired for
	// an old one.
	FindSetupLink(ctx context.Context, token string) (*SetupLink, *Principal, error)
	// RedeemSetupLink consumes the link; errors as for FindSetupLink.
	RedeemSetupLink(ctx context.Context, token string, b Browser) (*SignedIn, error)
	// ListPasskeys and ListIdentities list what belongs to a principal, given by id
	// or name; "" is the caller. Only administrators may name other principals.
	ListPasskeys(ctx context.Context, principal string) ([]*Passkey, error)
	ListIdentities(ctx context.Context, principal string) ([]*ExternalIdentity, error)
	// RemovePasskey removes a passkey of the caller, or, for an administrator, any
	// passkey, and ends the sessions that began with it.
	RemovePasskey(ctx context.Context, id string) error
	// UnlinkIdentity removes a link to an OIDC identity, and ends the sessions that
	// began with it. Only administrators may do this: the next sign-in with an unlinked
	// identity could create a second person.
	UnlinkIdentity(ctx context.Context, issuer, subject string) error
	// FindStepUp returns the caller's unused step-up for an action with this digest;
	// not_found when there is none. Decide consumes it.
	FindStepUp(ctx context.Context, actionID string, digest Digest) (*StepUp, error)
	// StepUpWithEditToken records a step-up by the person's edit token;
	// edit_token_required for a wrong one. It works without JavaScript.
	StepUpWithEditToken(ctx context.Context, actionID string, digest Digest, token string) (*StepUp, error)
}

// SignInService runs OIDC and passkey sign-ins. Errors of the Finish methods: unauthenticated for an
// invalid State or answer, whatever the reason; role_required when the identity is
// proven but gives no access.
type SignInService interface {
	// Options lists the ways to sign in.
	Options() SignInOptions

	// BeginOIDC begins a sign-in at a provider. FinishOIDC returns
	// returnTo if it is a path of this server, else "/".
	BeginOIDC(ctx context.Context, provider, returnTo string) (*Redirect, error)
	// BeginOIDCLink begins linking the caller to its identity at a provider. Without
	// an editToken the sign-in must be fresh, else the error is step_up_required; for
	// a wrong editToken it is edit_token_required.
	BeginOIDCLink(ctx context.Context, provider, editToken, returnTo string) (*Redirect, error)
	// BeginOIDCStepUp asks the provider to authenticate the caller again, for one
	// action as it was shown.
	BeginOIDCStepUp(ctx context.Context, provider, actionID string, digest Digest, returnTo string) (*Redirect, error)
	// FinishOIDC completes any of these three at CallbackPath, from the State
	// cookie's value and the query's parameters. For linking and step-up, the context
	// must have the caller that began them.
	FinishOIDC(ctx context.Context, state string, answer url.Values, b Browser) (*OIDCResult, error)

	// Sign-in needs no caller. Registration adds a passkey to the caller, with the
	// errors of BeginOIDCLink. A step-up is for the caller and one action as it was
	// shown.
	BeginPasskeySignIn(ctx context.Context) (*Challenge, error)
	FinishPasskeySignIn(ctx context.Context, state string, response []byte, b Browser) (*SignedIn, error)
	BeginPasskeyRegistration(ctx context.Context, name, editToken string) (*Challenge, error)
	FinishPasskeyRegistration(ctx context.Context, state string, response []byte) (*Passkey, error)
	BeginPasskeyStepUp(ctx context.Context, actionID string, digest Digest) (*Challenge, error)
	FinishPasskeyStepUp(ctx context.Context, state string, response []byte) (*StepUp, error)
}

// SignInOptions lists the ways to sign in.
type SignInOptions struct {
	// Providers lists the OIDC providers in the order of the configuration.
	Providers []SignInProvider
	// Passkeys says whether passkeys are enabled.
	Passkeys bool
	// PasskeyOrigins are the origins at which browsers can use passkeys, such as
	// http://localhost:8080. The same page at another address cannot use them.
	PasskeyOrigins []string
}

// SignInProvider is one OIDC provider.
type SignInProvider struct {
	// Name selects the provider in BeginOIDC; Issuer is its issuer in an
	// ExternalIdentity.
	Name, Issuer string
}

// CallbackPath is the path, below the configured public_url, to which OIDC
// providers send the browser back.
const CallbackPath = "/signin/oidc/callback"

// Redirect sends the browser to a provider (303).
type Redirect struct {
	URL string
	// State goes into a cookie until ExpiresAt.
	State     string
	ExpiresAt time.Time
}

// Challenge is a WebAuthn ceremony. Options is the JSON of
// PublicKeyCredentialCreationOptionsJSON or …RequestOptionsJSON, for
// PublicKeyCredential.parseCreationOptionsFromJSON and parseRequestOptionsFromJSON.
// The Finish method takes the JSON of the browser's credential,
// PublicKeyCredential.toJSON.
type Challenge struct {
	Options JSON
	// State goes into a cookie until ExpiresAt.
	State     string
	ExpiresAt time.Time
}

// OIDCResult is the result of FinishOIDC: exactly one of SignedIn, Linked and StepUp
// is set.
type OIDCResult struct {
	SignedIn *SignedIn
	Linked   *ExternalIdentity
	StepUp   *StepUp
	// ReturnTo is a path of this server.
	ReturnTo string
}

// ExternalSignIn is a proven OIDC identity, with the roles and groups that the
// configuration maps its groups to.
type ExternalSignIn struct {
	Tenant, Provider, Issuer, Subject string
	// Name is the provider's name for the person, used for a new principal. It
	// does not identify the person.
	Name string
	// Roles are the roles that the mapping gives the person. Managed are all roles
	// that the mapping can give: a sign-in takes away only these.
	Roles, Managed []Role
	// Groups are the groups of this tenant that the mapping gives the person. Other
	// memberships from the same issuer end.
	Groups []string
	// Provision says whether to create a person for an unknown identity that has a role.
	Provision bool
}
