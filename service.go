package gatehouse

import (
	"context"
	"time"
)

// The service interfaces are what the outside can do. The use cases
// (internal/app) implement them over a store, the client over HTTP; the
// caller is in the context (see [NewContext]). Errors are [*Error].

// ActionService proposes and decides.
type ActionService interface {
	// Propose judges and stores a proposal. replayed is true when the
	// idempotency_key was known with the same content.
	Propose(ctx context.Context, p *Proposal) (a *Action, replayed bool, err error)
	FindAction(ctx context.Context, id string) (*Action, error)
	// WaitAction returns when the action is decided or finished, or with the
	// action as it is when the time is over.
	WaitAction(ctx context.Context, id string, wait time.Duration, until Until) (*Action, error)
	ListActions(ctx context.Context, f ActionFilter) (Page[*Action], error)
	Decide(ctx context.Context, id string, d Decision) (*Answer, error)
	// Answer is the idempotent form: approve or reject, by action or approval id.
	Answer(ctx context.Context, id string, d Decision) (*ShortAnswer, error)
	BulkDecide(ctx context.Context, b BulkDecision) (*BulkAnswer, error)
	Cancel(ctx context.Context, id string) (*CancelAnswer, error)
	Revise(ctx context.Context, id string, p *Proposal) (*Action, error)
	// Rebase replaces a pending action by the same change on the present state of
	// its target, which the gate reads.
	Rebase(ctx context.Context, id string) (*Action, error)
	Reverse(ctx context.Context, id string, r ReverseRequest) (*Action, error)
	// Evidence returns all that is known of one action.
	Evidence(ctx context.Context, id string) (*Evidence, error)
	ListMirror(ctx context.Context, cursor string, limit int) (Page[*AppliedMirror], error)
	ListCorpus(ctx context.Context, cursor string, limit int) (Page[*CorpusEntry], error)
}

// Until says what a long poll waits for.
type Until string

// What can be waited for.
const (
	UntilDecided  Until = "decided"
	UntilFinished Until = "finished"
)

// MaxWait bounds a long poll.
const MaxWait = 60 * time.Second

// Decision is a person's answer to one action.
type Decision struct {
	Decision         DecisionKind `json:"decision"`
	Notes            string       `json:"notes,omitempty"`
	Digest           Digest       `json:"digest,omitempty"`
	Confirm          string       `json:"confirm,omitempty"`
	AcknowledgeStale bool         `json:"acknowledge_stale,omitempty"`
}

// The codes of a successful answer.
const (
	Decided         = "decided"
	VoteRecorded    = "vote_recorded"
	AlreadyApproved = "already_approved"
	AlreadyRejected = "already_rejected"
)

// Answer is what a decision came to. Code and Result are the same word:
// decided, vote_recorded, already_approved or already_rejected.
type Answer struct {
	Code     string  `json:"code"`
	Result   string  `json:"result"`
	Action   *Action `json:"action"`
	Votes    int     `json:"votes"`
	Required int     `json:"required"`
	Replayed bool    `json:"replayed,omitempty"`
	// NotesStored is false where the answer is replayed and the notes that came
	// with the request were not kept; nil everywhere else.
	NotesStored *bool `json:"notes_stored,omitempty"`
}

// ShortAnswer is the answer of the idempotent form: status is approved,
// rejected, vote_recorded, already_approved or already_rejected.
type ShortAnswer struct {
	ActionID   string     `json:"action_id"`
	Status     string     `json:"status"`
	ApprovedBy string     `json:"approved_by,omitempty"`
	ApprovedAt *time.Time `json:"approved_at,omitempty"`
	RejectedBy string     `json:"rejected_by,omitempty"`
	RejectedAt *time.Time `json:"rejected_at,omitempty"`
	// Votes and Required are set with vote_recorded.
	Votes    int  `json:"votes,omitempty"`
	Required int  `json:"required,omitempty"`
	Replayed bool `json:"replayed,omitempty"`
	// NotesStored is as in Answer.
	NotesStored *bool `json:"notes_stored,omitempty"`
}

// MaxBulk bounds a bulk decision.
const MaxBulk = 500

// BulkDecision is one answer to many actions of L1 to L3.
type BulkDecision struct {
	Decision DecisionKind `json:"decision"`
	Notes    string       `json:"notes,omitempty"`
	Items    []BulkItem   `json:"items"`
}

// BulkItem names one of them, with the digest that was seen.
type BulkItem struct {
	ActionID string `json:"action_id"`
	Digest   Digest `json:"digest,omitempty"`
}

// BulkAnswer has one result per item, in order, and their counts.
type BulkAnswer struct {
	Results []BulkResult `json:"results"`
	Decided int          `json:"decided"`
	Voted   int          `json:"vote_recorded"`
	// Replayed counts decisions of this person that stood already.
	Replayed int `json:"replayed"`
	Skipped  int `json:"skipped"`
}

// BulkResult holds either the code of an answer or why it was skipped.
type BulkResult struct {
	ActionID string `json:"action_id"`
	Result   string `json:"result,omitempty"`
	Skipped  string `json:"skipped,omitempty"`
	Detail   string `json:"detail,omitempty"`
}

// CancelAnswer has result canceled or already_canceled.
type CancelAnswer struct {
	Code   string  `json:"code"`
	Result string  `json:"result"`
	Action *Action `json:"action"`
}

// ReverseRequest says why an applied action is to be undone.
type ReverseRequest struct {
	Rationale string `json:"rationale,omitempty"`
}

// Evidence is all that is known of one action: enough for a stranger to see
// what was proposed, who decided, and what was done.
type Evidence struct {
	Action   *Action    `json:"action"`
	Receipts []*Receipt `json:"receipts"`
	Entries  []*Entry   `json:"entries"`
	// Canonical is the text whose SHA-256 is the digest.
	Canonical string `json:"canonical"`
}

// DispatchService looks after pushes and dead letters.
type DispatchService interface {
	ListPushes(ctx context.Context, f PushFilter) (Page[*Push], error)
	Drain(ctx context.Context, r DrainRequest) (*DrainAnswer, error)
	ListDeadLetters(ctx context.Context, f DeadLetterFilter) (Page[*DeadLetter], error)
	ReplayDeadLetters(ctx context.Context, r ReplayRequest) (*ReplayAnswer, error)
	DiscardDeadLetters(ctx context.Context, r DiscardRequest) (*DeadLetterAnswer, error)
	ResolveDeadLetters(ctx context.Context, r ResolveRequest) (*DeadLetterAnswer, error)
	ResolvePush(ctx context.Context, id string, r Resolution) (*Push, error)
	// ListBreakers lists the connectors that serve the caller's tenant, by name, each
	// with the state of its breaker. Where another replica has opened it, only the
	// pushes that wait tell so.
	ListBreakers(ctx context.Context) ([]BreakerState, error)
}

// DrainRequest asks what would be sent, or sends it. DryRun nil means true.
type DrainRequest struct {
	DryRun *bool `json:"dry_run,omitempty"`
	Limit  int   `json:"limit,omitempty"`
}

// DrainAnswer lists what would be, or was, sent.
type DrainAnswer struct {
	DryRun bool        `json:"dry_run"`
	Items  []DrainItem `json:"items"`
}

// DrainItem is one push of a drain. Outcome is "due" in a dry run, else the
// push's status afterwards.
type DrainItem struct {
	PushID    string    `json:"push_id"`
	ActionID  string    `json:"action_id"`
	Connector string    `json:"connector"`
	Operation string    `json:"operation"`
	Target    Target    `json:"target"`
	Change    JSON      `json:"proposed_change"`
	Digest    Digest    `json:"digest"`
	Key       string    `json:"idempotency_key"`
	Outcome   string    `json:"outcome"`
	Detail    string    `json:"detail,omitempty"`
	NotBefore time.Time `json:"not_before"`
	Receipt   *Receipt  `json:"receipt,omitempty"`
	// Class is A, B or C: what may be done after an ambiguous call.
	Class string `json:"class"`
}

// Resolution is an operator's word on an unknown outcome.
type Resolution struct {
	Outcome string `json:"outcome"` // applied or failed
	Reason  string `json:"reason"`
}

// AdminService manages who is who.
type AdminService interface {
	CreatePrincipal(ctx context.Context, r NewPrincipal) (*Credentials, error)
	FindPrincipal(ctx context.Context, idOrName string) (*Principal, error)
	ListPrincipals(ctx context.Context, cursor string, limit int) (Page[*Principal], error)
	UpdatePrincipal(ctx context.Context, idOrName string, r PrincipalChange) (*Principal, error)
	// CreateKey makes another key; RevokeKey ends one; RotateEditToken makes
	// a new edit token and ends the old one.
	CreateKey(ctx context.Context, principal string) (*Credentials, error)
	ListKeys(ctx context.Context, principal string) ([]*Key, error)
	RevokeKey(ctx context.Context, keyID string) error
	RotateEditToken(ctx context.Context, principal string) (*Credentials, error)
	// PutGroup makes a group, or sets the members that are set by hand. ChangeGroup
	// adds members by hand and removes members of any source. DeleteGroup ends all
	// memberships. All three need the caller's edit token, or a fresh sign-in.
	PutGroup(ctx context.Context, name string, m GroupMembers) (*Group, error)
	ChangeGroup(ctx context.Context, name string, c GroupChange) (*Group, error)
	DeleteGroup(ctx context.Context, name string) error
	FindGroup(ctx context.Context, name string) (*Group, error)
	ListGroups(ctx context.Context) ([]*Group, error)
	CreateTenant(ctx context.Context, id string) (*Tenant, error)
	ListTenants(ctx context.Context) ([]*Tenant, error)
	WhoAmI(ctx context.Context) (*Principal, error)
}

// NewPrincipal asks for a principal with its first key. Tenant may differ from
// the caller's only for an administrator of the default tenant, and only for the
// first principal there, who is its administrator.
type NewPrincipal struct {
	Tenant  string `json:"tenant,omitempty"`
	Name    string `json:"name"`
	Kind    Kind   `json:"kind"`
	Roles   []Role `json:"roles"`
	Person  string `json:"person,omitempty"`
	Sponsor string `json:"sponsor,omitempty"`
}

// PrincipalChange changes what is not nil.
type PrincipalChange struct {
	Roles    *[]Role `json:"roles,omitempty"`
	Sponsor  *string `json:"sponsor,omitempty"`
	Disabled *bool   `json:"disabled,omitempty"`
}

// Credentials are shown once. EditToken is set for persons only.
type Credentials struct {
	ID        string `json:"id"`
	Key       string `json:"key,omitempty"`
	KeyID     string `json:"key_id,omitempty"`
	EditToken string `json:"edit_token,omitempty"`
	// Tenant and FromTenant are set where an administrator of one tenant made the
	// first principal of another: where it was made, and from where.
	Tenant     string `json:"tenant,omitempty"`
	FromTenant string `json:"from_tenant,omitempty"`
}

// MaxCeilingAccounts bounds the accounts of one ceiling that PolicyUsage returns.
const MaxCeilingAccounts = 50

// PolicyService manages policies.
type PolicyService interface {
	ApplyPolicy(ctx context.Context, source string) (*PolicyVersion, error)
	ActivePolicy(ctx context.Context) (*PolicyVersion, error)
	FindPolicy(ctx context.Context, version int) (*PolicyVersion, error)
	ListPolicies(ctx context.Context) ([]*PolicyVersion, error)
	ActivatePolicy(ctx context.Context, version int) (*PolicyVersion, error)
	// PolicyUsage tells how full the accounts of the active policy's ceilings are:
	// of each ceiling up to MaxCeilingAccounts, the fullest first. An agent that
	// reads only its own actions does not read the accounts of other agents.
	PolicyUsage(ctx context.Context) ([]*CeilingAccount, error)
	// ProposePolicy proposes to replace the active policy, as an action of L4 that
	// somebody else approves.
	ProposePolicy(ctx context.Context, r PolicyProposal) (*Action, error)
	// ExplainPolicy judges a proposal without storing anything.
	ExplainPolicy(ctx context.Context, p *Proposal) (*Explanation, error)
}

// PolicyProposal asks to replace the active policy.
type PolicyProposal struct {
	Source    string `json:"source"`
	Rationale string `json:"rationale,omitempty"`
}

// Explanation tells how the active policy would judge a proposal.
type Explanation struct {
	PolicyOutcome
	RiskLevel RiskLevel `json:"risk_level"`
	RiskName  string    `json:"risk_name,omitempty"`
	Required  int       `json:"required"`
	Roles     []Role    `json:"roles"`
	People    []string  `json:"people,omitempty"`
	Groups    []string  `json:"groups,omitempty"`
	Expiry    Duration  `json:"expiry"`
	Timing
	Hold     Duration       `json:"hold"`
	Ceilings []CeilingClaim `json:"ceilings,omitempty"`
	// Trace has a line for each rule: matched, or what did not hold.
	Trace []RuleTrace `json:"trace"`
}

// RuleTrace is what became of one rule.
type RuleTrace struct {
	Rule    string  `json:"rule"`
	Outcome Outcome `json:"outcome"`
	Matched bool    `json:"matched"`
	Detail  string  `json:"detail,omitempty"`
}

// AuditService reads the log.
type AuditService interface {
	ListEntries(ctx context.Context, from int64, limit int) ([]*Entry, error)
	// Head returns size and root hash of the numbered log.
	Head(ctx context.Context) (*LogHead, error)
}

// LogHead is the RFC 6962 tree head of a tenant's log.
type LogHead struct {
	Tenant string `json:"tenant"`
	Size   int64  `json:"size"`
	Root   Hash   `json:"root"`
}

// LogCheck is what comparing a whole log with itself came to. It proves that
// the store agrees with its own head, not that the head is the one of
// yesterday: for that, compare it with a head that was kept elsewhere.
type LogCheck struct {
	LogHead
	// Found counts the entries that were read: Size, unless some are missing.
	Found int64 `json:"found"`
	// Unnumbered counts leaves that are not in the log yet, 1000 at most.
	Unnumbered int `json:"unnumbered"`
	// Fault tells the first thing that is wrong; "" when everything holds.
	Fault string `json:"fault,omitempty"`
}
