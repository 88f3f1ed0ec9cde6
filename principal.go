package gatehouse

import (
	"context"
	"slices"
	"time"
)

// Kind distinguishes people from programs.
type Kind string

// The kinds of principal.
const (
	KindPerson  Kind = "person"
	KindAgent   Kind = "agent"
	KindService Kind = "service"
)

// Role is a right that a principal holds within its tenant.
type Role string

// The roles. RoleAdmin implies approver, operator, auditor and viewer.
const (
	RoleProposer Role = "proposer"
	RoleApprover Role = "approver"
	RoleOperator Role = "operator"
	RoleAuditor  Role = "auditor"
	RoleViewer   Role = "viewer"
	RoleWorker   Role = "worker"
	RoleAdmin    Role = "admin"
	// RoleEvaluator evaluates pending actions. Only a service can have this role, and it then has no other.
	RoleEvaluator Role = "evaluator"
)

// Roles lists every role.
func Roles() []Role {
	return []Role{RoleProposer, RoleApprover, RoleOperator, RoleAuditor, RoleViewer, RoleWorker, RoleAdmin, RoleEvaluator}
}

// Principal is a person, agent or service known in one tenant. Its name is
// unique within the tenant.
type Principal struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
	// Name is unique in the tenant, without regard to case; see [ValidName].
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
	// Roles are what the principal may do; see [Role].
	Roles []Role `json:"roles"`
	// Person identifies the human behind the principal: two principals of one human
	// share it, and count as one voter. It is the principal's own id unless an
	// administrator sets another.
	Person string `json:"person"`
	// Sponsor is the id of the person who answers for an agent, "" for none.
	Sponsor string `json:"sponsor,omitempty"`
	// Groups are the memberships of a person, by group and source.
	Groups []Membership `json:"groups,omitempty"`
	// Disabled principals cannot act, and their votes do not count.
	Disabled  bool      `json:"disabled"`
	CreatedAt time.Time `json:"created_at"`
	// ApproverSince is when the principal last gained the right to approve or, while holding
	// it, was given new credentials by somebody else; nil if neither has happened.
	ApproverSince *time.Time `json:"approver_since,omitempty"`
}

// Has reports whether the principal holds the role, directly or by admin.
func (p *Principal) Has(r Role) bool {
	if slices.Contains(p.Roles, r) {
		return true
	}
	implied := r == RoleApprover || r == RoleOperator || r == RoleAuditor || r == RoleViewer
	return implied && slices.Contains(p.Roles, RoleAdmin)
}

// Validate checks the combination of kind, roles and sponsor.
// It returns an [Error] with code invalid.
func (p *Principal) Validate() error {
	var v Violations
	if !ValidName(p.Name) {
		v.Add("/name", NameRule)
	}

	switch p.Kind {
	case KindPerson, KindService:
	case KindAgent:
		for _, r := range []Role{RoleApprover, RoleOperator, RoleAdmin} {
			if slices.Contains(p.Roles, r) {
				v.Add("/roles", "cannot contain %s for an agent", r)
			}
		}
	default:
		v.Add("/kind", "must be person, agent or service")
	}
	if p.Kind == KindService && (slices.Contains(p.Roles, RoleApprover) || slices.Contains(p.Roles, RoleAdmin)) {
		v.Add("/roles", "may contain approver and admin for a person only")
	}

	if len(p.Roles) == 0 {
		v.Add("/roles", "must contain at least one role")
	}
	for _, r := range p.Roles {
		if !slices.Contains(Roles(), r) {
			v.Add("/roles", "contains the unknown role %s", Quote(string(r)))
		}
		if r == RoleViewer && len(p.Roles) > 1 {
			v.Add("/roles", "cannot contain viewer together with other roles")
		}
		if r == RoleEvaluator && (len(p.Roles) > 1 || p.Kind != KindService) {
			v.Add("/roles", "may contain evaluator for a service only, and then no other role")
		}
	}

	if len(p.Groups) > 0 && p.Kind != KindPerson {
		v.Add("/groups", "may be given for a person only")
	}
	if len(p.GroupNames()) > MaxGroupMemberships {
		v.Add("/groups", "must name at most %d groups", MaxGroupMemberships)
	}
	if p.Sponsor != "" && p.Kind != KindAgent {
		v.Add("/sponsor", "may be given for an agent only")
	}
	return v.Err()
}

// Key is an API key as stored: never the secret, only its SHA-256.
type Key struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
	// PrincipalID is the owner.
	PrincipalID string `json:"principal_id"`
	// Hash is the SHA-256 of the secret.
	Hash      [32]byte  `json:"-"`
	CreatedAt time.Time `json:"created_at"`
	// RevokedAt is nil while the key is valid.
	RevokedAt *time.Time `json:"revoked_at"`
}

// Tenant isolates data: no data of one tenant is ever visible in another. The
// tenant "default" always exists; its administrators create the others.
type Tenant struct {
	ID        string    `json:"id"`
	CreatedAt time.Time `json:"created_at"`
	// FromTenant is set only in the answer to the creation: the tenant of the
	// administrator who created it.
	FromTenant string `json:"from_tenant,omitempty"`
}

// DefaultTenant is the tenant that always exists.
const DefaultTenant = "default"

// Channel is the surface that a decision came through.
type Channel string

// The channels.
const (
	ViaAPI     Channel = "api"
	ViaBulk    Channel = "api:bulk-decide"
	ViaConsole Channel = "console"
	ViaCLI     Channel = "cli"
	ViaSlack   Channel = "slack"
	ViaLink    Channel = "link"
	ViaPolicy  Channel = "policy"
	// ViaGrant is an approval given in advance: see [Grant].
	ViaGrant Channel = "grant"
	// ViaMandate is an approval given in advance with a plan: see [Mandate].
	ViaMandate Channel = "mandate"
	// ViaClient stands for any channel that the client names. The server does not
	// verify the name.
	ViaClient Channel = "client"
)

// InAdvance reports whether the approval was given before the action was proposed.
func (c Channel) InAdvance() bool { return c == ViaGrant || c == ViaMandate }

// Caller is the principal that makes a request, and what the request proved.
type Caller struct {
	// Principal is who calls, as stored.
	Principal *Principal
	// StepUp is true when the request carried the person's second secret: the edit
	// token, or its substitute on the channel.
	StepUp bool
	// TokenShown is true when a browser's request carried the person's edit token.
	// Changing rights and rules then needs no fresh sign-in. TokenWrong is true when it
	// carried another text in its place.
	TokenShown, TokenWrong bool
	// Session is the browser's session, nil for a caller with a key. In a session,
	// L4 and L5 also need a [StepUp] for the action as it was shown.
	Session *Session
	// Via is the channel, set by the server.
	Via Channel
	// RequestID appears in logs.
	RequestID string
	// Idempotency is the client's Idempotency-Key, nil when it sent none.
	Idempotency *IdempotencyRequest
	// Link is set for a decision by link. The decision is valid only while the link
	// is.
	Link *LinkProof
	// Cached is set when Principal and StepUp come from the credential cache.
	Cached *CachedCredential
}

// CachedCredential belongs to a caller from the credential cache, which may be out of
// date. A use case that accepts such a caller compares it with the store in its own
// transaction, before anything else. All other use cases refuse the caller.
type CachedCredential struct {
	// Key and EditToken are the hashes of the request's secrets.
	Key, EditToken [32]byte
	// Verified is set by the use case when the store has the same caller.
	Verified bool
}

type callerKey struct{}

// NewContext returns a context that carries the caller.
func NewContext(ctx context.Context, c *Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerFrom returns the caller of the context. The error has code unauthenticated
// when there is no caller, when its principal is missing or disabled, and when it
// comes from the credential cache and is not verified.
func CallerFrom(ctx context.Context) (*Caller, error) {
	c, err := CachedCallerFrom(ctx)
	if err == nil && c.Cached != nil && !c.Cached.Verified {
		return nil, unknownCaller()
	}
	return c, err
}

// CachedCallerFrom is CallerFrom for use cases that verify a cached caller themselves.
func CachedCallerFrom(ctx context.Context) (*Caller, error) {
	c, _ := ctx.Value(callerKey{}).(*Caller)
	if c == nil || c.Principal == nil || c.Principal.Disabled {
		return nil, unknownCaller()
	}
	return c, nil
}

func unknownCaller() error { return E(CodeUnauthenticated, "a valid API key or session is needed") }
