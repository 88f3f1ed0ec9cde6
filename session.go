package gatehouse

import (
	"context"
	"time"
)

// SignInMethod is how a session began.
type SignInMethod string

// The methods of signing in.
const (
	SignInSetup   SignInMethod = "setup"
	SignInOIDC    SignInMethod = "oidc"
	SignInPasskey SignInMethod = "passkey"
)

// The times of sessions and of what is signed in with.
const (
	// SessionIdle ends a session that was not used.
	SessionIdle = 12 * time.Hour
	// SessionMax ends every session.
	SessionMax = 7 * 24 * time.Hour
	// SessionTouch is how far LastSeenAt may lag behind.
	SessionTouch = time.Minute
	// FreshSignIn is how long a sign-in is proof enough to add another means
	// of signing in.
	FreshSignIn = 15 * time.Minute
	// StepUpTTL is how long a step-up may wait for its decision.
	StepUpTTL = 5 * time.Minute
	// SetupLinkTTL is how long a set-up link may wait to be used.
	SetupLinkTTL = 30 * time.Minute
	// SessionKept is how long sessions that have ended, their step-ups, and
	// set-up links stay to be listed; the audit log keeps what they were.
	SessionKept = 30 * 24 * time.Hour
	// CeremonyTTL is how long a person may take to sign in.
	CeremonyTTL = 10 * time.Minute
)

// Session is a person's signed-in browser, in one tenant. The browser holds
// its token; only the token's SHA-256 is stored.
type Session struct {
	ID          string       `json:"id"`
	Tenant      string       `json:"tenant"`
	PrincipalID string       `json:"principal_id"`
	Method      SignInMethod `json:"method"`
	// Credential is what was signed in with: the passkey's id, or the OIDC
	// issuer; empty for a set-up link.
	Credential string `json:"credential,omitempty"`
	// UserAgent is what the browser called itself: hostile text.
	UserAgent string    `json:"user_agent"`
	CreatedAt time.Time `json:"created_at"`
	// LastSeenAt lags by at most SessionTouch.
	LastSeenAt time.Time `json:"last_seen_at"`
	// ExpiresAt is LastSeenAt + SessionIdle, and CreatedAt + SessionMax at most.
	ExpiresAt time.Time  `json:"expires_at"`
	RevokedAt *time.Time `json:"revoked_at"`
}

// Live reports whether the session holds at a time.
func (s *Session) Live(now time.Time) bool { return s.RevokedAt == nil && now.Before(s.ExpiresAt) }

// Expiry is when the session ends if it is last used at seen.
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
	// Name is what its owner calls it.
	Name string `json:"name"`
	// CredentialID is the authenticator's, unique over all tenants.
	CredentialID []byte `json:"-"`
	// Credential is the public key and what else the verifier keeps, as JSON.
	Credential []byte `json:"-"`
	// SignCount is the authenticator's counter, 0 where it has none.
	SignCount  uint32     `json:"-"`
	CreatedAt  time.Time  `json:"created_at"`
	LastUsedAt *time.Time `json:"last_used_at"`
}

// ExternalIdentity says that an OIDC subject is a principal. Nothing but
// issuer and subject identifies; names and addresses change hands.
type ExternalIdentity struct {
	Tenant      string    `json:"tenant"`
	Issuer      string    `json:"issuer"`
	Subject     string    `json:"subject"`
	PrincipalID string    `json:"principal_id"`
	CreatedAt   time.Time `json:"created_at"`
}

// SetupLink lets one person in, once. Only the token's SHA-256 is stored.
type SetupLink struct {
	ID          string     `json:"id"`
	Tenant      string     `json:"tenant"`
	PrincipalID string     `json:"principal_id"`
	Hash        [32]byte   `json:"-"`
	CreatedAt   time.Time  `json:"created_at"`
	ExpiresAt   time.Time  `json:"expires_at"`
	UsedAt      *time.Time `json:"used_at"`
}

// NewSetupLink is a set-up link as it is shown, once.
type NewSetupLink struct {
	ID          string `json:"id"`
	PrincipalID string `json:"principal_id"`
	Token       string `json:"setup_token"`
	// Path is where the console takes it, to be put behind the server's address.
	Path      string    `json:"setup_path"`
	ExpiresAt time.Time `json:"expires_at"`
}

// SetupPath is the console's page that takes a set-up link's token in the
// query parameter token.
const SetupPath = "/setup"

// StepUpMethod is what a step-up was proven with.
type StepUpMethod string

// The methods of a step-up.
const (
	StepUpPasskey   StepUpMethod = "passkey"
	StepUpOIDC      StepUpMethod = "oidc"
	StepUpEditToken StepUpMethod = "edit_token"
)

// StepUp is the proof that the person in front of a session is who signed in,
// given for one action as it was shown. The decision uses it up.
type StepUp struct {
	ID        string       `json:"id"`
	Tenant    string       `json:"tenant"`
	SessionID string       `json:"session_id"`
	ActionID  string       `json:"action_id"`
	Digest    Digest       `json:"digest"`
	Method    StepUpMethod `json:"method"`
	At        time.Time    `json:"at"`
	UsedAt    *time.Time   `json:"used_at"`
}

// Ceremony is a sign-in or step-up under way: what the server has to remember
// between the question and the answer. It is found by the SHA-256 of a secret
// that the browser holds, and is taken out by the first answer.
type Ceremony struct {
	Hash [32]byte
	// Tenant is empty while it is not known who signs in.
	Tenant string
	// SessionID is set when a signed-in person has begun it.
	SessionID string
	// Data is the ceremony's own, JSON.
	Data      []byte
	ExpiresAt time.Time
}

// SessionFilter selects sessions of one tenant, the newest first.
type SessionFilter struct {
	// Principal is an id or name; empty for the caller's own. Those of others
	// are shown to an administrator.
	Principal string
	// All selects everybody's, for an administrator.
	All bool
	// Ended includes those that are revoked or have expired.
	Ended  bool
	Limit  int
	Cursor string
}

// SessionService manages sessions, here and over HTTP.
type SessionService interface {
	// ListSessions returns a page.
	ListSessions(ctx context.Context, f SessionFilter) (Page[*Session], error)
	// RevokeSession ends a session of the caller's, or, for an administrator,
	// anybody's, from the next request on. Of an ended one it changes nothing.
	RevokeSession(ctx context.Context, id string) (*Session, error)
	// CreateSetupLink makes a person's one-time link, for an administrator.
	// Earlier links of the person that were not used end.
	CreateSetupLink(ctx context.Context, principal string) (*NewSetupLink, error)
}
