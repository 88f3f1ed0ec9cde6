package gatehouse

import (
	"context"
	"time"
)

// SignInMethod is the method by which a session began.
type SignInMethod string

// The methods of signing in.
const (
	SignInSetup   SignInMethod = "setup"
	SignInOIDC    SignInMethod = "oidc"
	SignInPasskey SignInMethod = "passkey"
)

// The durations of sessions and sign-ins.
const (
	// SessionIdle ends a session that is not used.
	SessionIdle = 12 * time.Hour
	// SessionMax ends every session, used or not.
	SessionMax = 7 * 24 * time.Hour
	// SessionTouch is how far LastSeenAt may lag behind the last request.
	SessionTouch = time.Minute
	// FreshSignIn is the maximum age of a sign-in with which a person may add
	// another method of signing in, or change rights, credentials and rules.
	FreshSignIn = 15 * time.Minute
	// StepUpTTL is how long a step-up stays valid for its decision.
	StepUpTTL = 5 * time.Minute
	// SetupLinkTTL is how long a set-up link stays valid.
	SetupLinkTTL = 30 * time.Minute
	// SessionKept is how long ended sessions, their step-ups, and set-up links stay
	// listed. The audit log keeps their history.
	SessionKept = 30 * 24 * time.Hour
	// CeremonyTTL is how long a person may take to sign in.
	CeremonyTTL = 10 * time.Minute
)

// Session is a person's signed-in browser, in one tenant. The browser holds the
// token; the store has only the token's SHA-256.
type Session struct {
	ID          string `json:"id"`
	Tenant      string `json:"tenant"`
	PrincipalID string `json:"principal_id"`
	// Method is how the person signed in.
	Method SignInMethod `json:"method"`
	// Credential is the credential with which the person signed in: the passkey's id, or the
	// OIDC issuer; empty for a set-up link.
	Credential string `json:"credential,omitempty"`
	// UserAgent is the User-Agent header: untrusted text.
	UserAgent string    `json:"user_agent"`
	CreatedAt time.Time `json:"created_at"`
	// LastSeenAt lags by at most SessionTouch.
	LastSeenAt time.Time `json:"last_seen_at"`
	// ExpiresAt is LastSeenAt + SessionIdle, but at most CreatedAt + SessionMax.
	ExpiresAt time.Time `json:"expires_at"`
	// RevokedAt is nil unless the session was ended early.
	RevokedAt *time.Time `json:"revoked_at"`
}

// Live reports whether the session is valid at a time.
func (s *Session) Live(now time.Time) bool { return s.RevokedAt == nil && now.Before(s.ExpiresAt) }

// Expiry returns when the session ends if it is last used at seen.
func (s *Session) Expiry(seen time.Time) time.Time {
	idle, end := seen.Add(SessionIdle), s.CreatedAt.Add(SessionMax)
	if idle.Before(end) {
		return idle
	}
	return end
}

// Passkey is a person's WebAuthn credential.
type Passkey struct {
	ID          string `json:"id"`
	Tenant      string `json:"tenant"`
	PrincipalID string `json:"principal_id"`
	// Name is the owner's name for the passkey.
	Name string `json:"name"`
	// CredentialID is the authenticator's id, unique over all tenants.
	CredentialID []byte `json:"-"`
	// Credential is the public key and the verifier's other data, as JSON.
	Credential []byte `json:"-"`
	// SignCount is the authenticator's counter; 0 when it has none.
	SignCount uint32    `json:"-"`
	CreatedAt time.Time `json:"created_at"`
	// LastUsedAt is nil before the first use.
	LastUsedAt *time.Time `json:"last_used_at"`
}

// ExternalIdentity links an OIDC subject or a Slack user to a principal. Only issuer and subject
// identify it; names and addresses can pass to another person.
type ExternalIdentity struct {
	Tenant string `json:"tenant"`
	// Issuer names the provider, such as an OIDC issuer URL.
	Issuer string `json:"issuer"`
	// Subject is the provider's id of the person.
	Subject     string    `json:"subject"`
	PrincipalID string    `json:"principal_id"`
	CreatedAt   time.Time `json:"created_at"`
}

// SetupLink lets one person sign in once. The store has only the token's SHA-256.
type SetupLink struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
	// PrincipalID is the person whom the link signs in.
	PrincipalID string `json:"principal_id"`
	// Hash is the SHA-256 of the token.
	Hash      [32]byte  `json:"-"`
	CreatedAt time.Time `json:"created_at"`
	// ExpiresAt is CreatedAt + SetupLinkTTL, or when an administrator or a newer link ended this one.
	ExpiresAt time.Time `json:"expires_at"`
	// UsedAt is nil while the link is unused.
	UsedAt *time.Time `json:"used_at"`
}

// NewSetupLink is a set-up link with its token, shown once.
type NewSetupLink struct {
	ID string `json:"id"`
	// PrincipalID is the person whom the link signs in.
	PrincipalID string `json:"principal_id"`
	// Token is the secret, shown only here.
	Token string `json:"setup_token"`
	// Path is the console's page for the link, relative to the server's address.
	Path      string    `json:"setup_path"`
	ExpiresAt time.Time `json:"expires_at"`
}

// SetupPath is the console's page for set-up links; the query parameter token holds
// the token.
const SetupPath = "/setup"

// StepUpMethod is the method by which a step-up was proven.
type StepUpMethod string

// The methods of a step-up.
const (
	StepUpPasskey   StepUpMethod = "passkey"
	StepUpOIDC      StepUpMethod = "oidc"
	StepUpEditToken StepUpMethod = "edit_token"
)

// StepUp proves that the person at a session's browser is the one who signed in. It
// is valid for one decision on one action, as shown to the person.
type StepUp struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
	// SessionID is the session whose person proved themselves.
	SessionID string `json:"session_id"`
	ActionID  string `json:"action_id"`
	// Digest is the action's digest as it was shown.
	Digest Digest `json:"digest"`
	// Method is how the person gave the proof.
	Method StepUpMethod `json:"method"`
	At     time.Time    `json:"at"`
	// UsedAt is nil until a decision consumes the step-up.
	UsedAt *time.Time `json:"used_at"`
}

// Ceremony is a sign-in, a step-up, the registration of a passkey or the link of an
// account in progress: the server's state between challenge and response. Its key is the
// SHA-256 of a secret: one in the browser, or a code that the person types in Slack. The
// first response removes it.
type Ceremony struct {
	// Hash is the SHA-256 of the secret.
	Hash [32]byte
	// Tenant is empty for a sign-in by passkey.
	Tenant string
	// SessionID is set when a signed-in person has begun the ceremony.
	SessionID string
	// Data is the ceremony's own state, as JSON.
	Data []byte
	// ExpiresAt is CeremonyTTL after the beginning, SlackLinkTTL for a code that is typed in Slack.
	ExpiresAt time.Time
}

// SessionFilter selects sessions of one tenant, newest first.
type SessionFilter struct {
	// Principal is an id or name; empty for the caller. Only administrators see the
	// sessions of others.
	Principal string
	// All selects the sessions of all principals; for administrators.
	All bool
	// Ended includes sessions that are revoked or have expired.
	Ended bool
	// Limit is at most [MaxLimit]: a greater limit means MaxLimit. 0 means [DefaultLimit].
	Limit int
	// Cursor is the NextCursor of the page before, "" for the first.
	Cursor string
}

// SessionService manages sessions.
type SessionService interface {
	// ListSessions returns a page.
	ListSessions(ctx context.Context, f SessionFilter) (Page[*Session], error)
	// RevokeSession ends one of the caller's sessions, or, for an administrator,
	// any session, from the next request on. The server also forgets the session's browser
	// (see DeviceTTL), so an expired session can be revoked too. It does not change a
	// session that was revoked before.
	RevokeSession(ctx context.Context, id string) (*Session, error)
	// CreateSetupLink makes a person's one-time link, for an administrator. It ends
	// the person's earlier unused links.
	CreateSetupLink(ctx context.Context, principal string) (*NewSetupLink, error)
}
