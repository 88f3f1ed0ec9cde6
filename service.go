package gatehouse

import (
	"context"
	"fmt"
	"time"
)

// The service interfaces are the operations for outside callers. The use cases
// (internal/gate, internal/runs) implement them over a store, the client implements
// them over HTTP. The caller is in the context (see [NewContext]). Errors are
// [*Error].

// ActionService proposes and decides actions.
type ActionService interface {
	ConversationService
	// Propose judges and stores a proposal. replayed is true when the
	// idempotency_key is known, with the same content.
	Propose(ctx context.Context, p *Proposal) (a *Action, replayed bool, err error)
	FindAction(ctx context.Context, id string) (*Action, error)
	// WaitAction waits until the action is decided or finished, at most for the
	// given time, and returns its present state.
	WaitAction(ctx context.Context, id string, wait time.Duration, until Until) (*Action, error)
	ListActions(ctx context.Context, f ActionFilter) (Page[*Action], error)
	Decide(ctx context.Context, id string, d Decision) (*Answer, error)
	// Answer is the idempotent form of Decide: approve or reject, by action or
	// approval id.
	Answer(ctx context.Context, id string, d Decision) (*ShortAnswer, error)
	BulkDecide(ctx context.Context, b BulkDecision) (*BulkAnswer, error)
	Cancel(ctx context.Context, id string) (*CancelAnswer, error)
	// Undo takes back a decision within its hold. A new revision of the same content replaces
	// the action. The active policy judges the revision, and people decide again unless the
	// policy denies it.
	Undo(ctx context.Context, id string) (*UndoAnswer, error)
	Revise(ctx context.Context, id string, p *Proposal) (*Action, error)
	// Rebase replaces a pending action with a new one that has the same change and the
	// target's current state, which the gate reads.
	Rebase(ctx context.Context, id string) (*Action, error)
	// Edit replaces a pending action with a revision whose change a reviewer edited.
	Edit(ctx context.Context, id string, e EditRequest) (*Action, error)
	Reverse(ctx context.Context, id string, r ReverseRequest) (*Action, error)
	// Evidence returns everything that the store has about one action.
	Evidence(ctx context.Context, id string) (*Evidence, error)
	ListMirror(ctx context.Context, cursor string, limit int) (Page[*AppliedMirror], error)
	ListCorpus(ctx context.Context, cursor string, limit int) (Page[*CorpusEntry], error)
}

// Until says what a long poll waits for.
type Until string

// The ends that a long poll can wait for.
const (
	UntilDecided  Until = "decided"
	UntilFinished Until = "finished"
)

// MaxWait bounds a long poll.
const MaxWait = 60 * time.Second

// Decision is a person's answer to one action.
type Decision struct {
	// Decision is approved or rejected.
	Decision DecisionKind `json:"decision"`
	// Notes are the person's words, at most [MaxNotesBytes] bytes.
	Notes string `json:"notes,omitempty"`
	// Digest is the digest that the person saw.
	Digest Digest `json:"digest,omitempty"`
	// Confirm is the retyped value that [Confirm] asks for.
	Confirm string `json:"confirm,omitempty"`
	// AcknowledgeStale accepts that the target has changed since the proposal.
	AcknowledgeStale bool `json:"acknowledge_stale,omitempty"`
	// Hold lets a rejection take effect only after the action's hold, as an approval
	// does: until then Undo can take it back. An approval is held in any case.
	Hold bool `json:"hold,omitempty"`
}

// Validate checks the decision without the store.
func (d *Decision) Validate() error {
	var v Violations
	checkKind(&v, d.Decision)
	checkSeen(&v, "/digest", d.Decision, d.Digest)
	checkText(&v, "/notes", d.Notes, MaxNotesBytes)
	return v.Err()
}

func checkKind(v *Violations, kind DecisionKind) {
	switch kind {
	case Approve, Reject:
	case "":
		v.Add("/decision", "is required: approved or rejected")
	default:
		v.Add("/decision", "must be approved or rejected")
	}
}

func checkSeen(v *Violations, pointer string, kind DecisionKind, digest Digest) {
	if kind == Approve && digest == "" {
		v.Add(pointer, "is required to approve: the digest of what you saw")
	}
}

// The codes of a successful answer.
const (
	Decided         = "decided"
	VoteRecorded    = "vote_recorded"
	AlreadyApproved = "already_approved"
	AlreadyRejected = "already_rejected"
)

// The codes of an undo.
const (
	Undone        = "undone"
	AlreadyUndone = "already_undone"
)

// Answer is the outcome of a decision. Code and Result are the same word: decided,
// vote_recorded, already_approved or already_rejected.
type Answer struct {
	Code   string `json:"code"`
	Result string `json:"result"`
	// Action is the action after the decision.
	Action *Action `json:"action"`
	// Votes counts the approving votes so far, Required the needed ones.
	Votes    int `json:"votes"`
	Required int `json:"required"`
	// Replayed is true when the same decision had already been taken.
	Replayed bool `json:"replayed,omitempty"`
	// NotesStored is false when the answer is replayed and the request's notes were
	// not kept; nil in all other cases.
	NotesStored *bool `json:"notes_stored,omitempty"`
}

// ShortAnswer is the answer of the idempotent form.
type ShortAnswer struct {
	ActionID string `json:"action_id"`
	// Status is approved, rejected, vote_recorded, already_approved or
	// already_rejected.
	Status string `json:"status"`
	// ApprovedBy and RejectedBy are names, set for an earlier decision only.
	ApprovedBy string `json:"approved_by,omitempty"`
	// ApprovedAt is nil unless ApprovedBy is set.
	ApprovedAt *time.Time `json:"approved_at,omitempty"`
	RejectedBy string     `json:"rejected_by,omitempty"`
	// RejectedAt is nil unless RejectedBy is set.
	RejectedAt *time.Time `json:"rejected_at,omitempty"`
	// Votes and Required are set with vote_recorded.
	Votes    int `json:"votes,omitempty"`
	Required int `json:"required,omitempty"`
	// Replayed is as in Answer.
	Replayed bool `json:"replayed,omitempty"`
	// NotesStored is as in Answer.
	NotesStored *bool `json:"notes_stored,omitempty"`
}

// MaxBulk bounds a bulk decision.
const MaxBulk = 500

// BulkDecision is one answer to several actions of L1 to L3.
type BulkDecision struct {
	// Decision is the answer to every item.
	Decision DecisionKind `json:"decision"`
	// Notes apply to each vote, at most [MaxNotesBytes] bytes.
	Notes string `json:"notes,omitempty"`
	// Hold is as in a Decision.
	Hold bool `json:"hold,omitempty"`
	// Items are at most [MaxBulk].
	Items []BulkItem `json:"items"`
}

// Validate checks the decision without the store.
func (b *BulkDecision) Validate() error {
	var v Violations
	checkKind(&v, b.Decision)
	checkText(&v, "/notes", b.Notes, MaxNotesBytes)
	if len(b.Items) == 0 || len(b.Items) > MaxBulk {
		v.Add("/items", "must have 1 to %d items", MaxBulk)
		return v.Err()
	}
	for i, item := range b.Items {
		at := fmt.Sprintf("/items/%d", i)
		if item.ActionID == "" {
			v.Add(at+"/action_id", "is required")
		}
		checkSeen(&v, at+"/digest", b.Decision, item.Digest)
	}
	return v.Err()
}

// BulkItem names one action, with the digest that was seen.
type BulkItem struct {
	ActionID string `json:"action_id"`
	// Digest is what the person saw; an approval needs it.
	Digest Digest `json:"digest,omitempty"`
}

// BulkAnswer has one result per item, in order, and their counts.
type BulkAnswer struct {
	// Results are in the order of the items.
	Results []BulkResult `json:"results"`
	// Decided counts the items that this call decided. Voted counts those whose quorum is
	// still open after the person's vote, new or repeated.
	Decided int `json:"decided"`
	Voted   int `json:"vote_recorded"`
	// Replayed counts items for which this person had already taken the same decision.
	Replayed int `json:"replayed"`
	// Skipped counts the results that have a reason in their Skipped.
	Skipped int `json:"skipped"`
}

// BulkResult holds either the code of an answer or why the item was skipped.
type BulkResult struct {
	ActionID string `json:"action_id"`
	// Result is the code of an answer, "" for a skipped item.
	Result string `json:"result,omitempty"`
	// Skipped is the code of an error or another reason, such as
	// individual_decision_required; "" for an answer.
	Skipped string `json:"skipped,omitempty"`
	// Detail explains Skipped to people.
	Detail string `json:"detail,omitempty"`
}

// CancelAnswer is the outcome of a cancellation.
type CancelAnswer struct {
	// Code is canceled or already_canceled.
	Code string `json:"code"`
	// Result is the same word as Code.
	Result string `json:"result"`
	// Action is the action afterwards.
	Action *Action `json:"action"`
}

// UndoAnswer is the outcome of an undo.
type UndoAnswer struct {
	// Code is undone or already_undone.
	Code string `json:"code"`
	// Result is the same word as Code.
	Result string `json:"result"`
	// Action is the new revision: it asks people again, unless the policy denies it.
	Action *Action `json:"action"`
}

// ReverseRequest says why an applied action should be reversed.
type ReverseRequest struct {
	// Rationale tells the approvers of the reversal why.
	Rationale string `json:"rationale,omitempty"`
}

// Validate checks the request without the store.
func (r *ReverseRequest) Validate() error {
	var v Violations
	checkText(&v, "/rationale", r.Rationale, MaxTextBytes)
	return v.Err()
}

// Evidence is everything that the store has about one action: enough for an
// outsider to see what was proposed, who decided, and what was done.
type Evidence struct {
	// Action is the action as it is now.
	Action *Action `json:"action"`
	// Receipts and Entries are complete, oldest first.
	Receipts []*Receipt `json:"receipts"`
	Entries  []*Entry   `json:"entries"`
	// Canonical is the text whose SHA-256 is the digest.
	Canonical string `json:"canonical"`
}

// DispatchService manages pushes and dead letters.
type DispatchService interface {
	ListPushes(ctx context.Context, f PushFilter) (Page[*Push], error)
	Drain(ctx context.Context, r DrainRequest) (*DrainAnswer, error)
	ListDeadLetters(ctx context.Context, f DeadLetterFilter) (Page[*DeadLetter], error)
	// GroupDeadLetters groups, by error, the dead letters that the filter selects. It
	// ignores Group, Limit and Cursor.
	GroupDeadLetters(ctx context.Context, f DeadLetterFilter) (*DeadLetterGroups, error)
	ReplayDeadLetters(ctx context.Context, r ReplayRequest) (*ReplayAnswer, error)
	DiscardDeadLetters(ctx context.Context, r DiscardRequest) (*DeadLetterAnswer, error)
	ResolveDeadLetters(ctx context.Context, r ResolveRequest) (*DeadLetterAnswer, error)
	ResolvePush(ctx context.Context, id string, r Resolution) (*Push, error)
	// ListBreakers lists the connectors that serve the caller's tenant, by name,
	// each with the state of its breaker. A breaker that another replica opened is
	// known only while pushes wait for it.
	ListBreakers(ctx context.Context) ([]BreakerState, error)
	// DispatchHealth returns the health of each connector, and the queue over the last
	// [HealthWindow].
	DispatchHealth(ctx context.Context) (*DispatchHealth, error)
}

// DrainRequest lists the due pushes, or sends them.
type DrainRequest struct {
	// DryRun nil means true.
	DryRun *bool `json:"dry_run,omitempty"`
	// Limit is 1 to [MaxDrain]; 0 means 100.
	Limit int `json:"limit,omitempty"`
}

// MaxDrain bounds the limit of one drain.
const MaxDrain = 1000

// Validate checks the request without the store.
func (r *DrainRequest) Validate() error {
	var v Violations
	if r.Limit < 0 || r.Limit > MaxDrain {
		v.Add("/limit", "must be 1 to %d", MaxDrain)
	}
	return v.Err()
}

// DrainAnswer lists the pushes that were sent or, in a dry run, would be.
type DrainAnswer struct {
	// DryRun is true when nothing was sent.
	DryRun bool `json:"dry_run"`
	// Items are the due pushes.
	Items []DrainItem `json:"items"`
}

// DrainItem is one push of a drain.
type DrainItem struct {
	PushID    string `json:"push_id"`
	ActionID  string `json:"action_id"`
	Connector string `json:"connector"`
	Operation string `json:"operation"`
	Target    Target `json:"target"`
	// Change is the approved change.
	Change JSON `json:"proposed_change"`
	// Digest is the approved digest.
	Digest Digest `json:"digest"`
	// Key is the idempotency key.
	Key string `json:"idempotency_key"`
	// Outcome is "due" in a dry run, else the push's status afterwards.
	Outcome string `json:"outcome"`
	// Detail is the last error of the push, "" for none.
	Detail string `json:"detail,omitempty"`
	// NotBefore is the end of the hold.
	NotBefore time.Time `json:"not_before"`
	// Receipt is nil in a dry run, and when the push got none.
	Receipt *Receipt `json:"receipt,omitempty"`
	// Class is A, B or C: it decides what may be done after an ambiguous call.
	Class string `json:"class"`
}

// Resolution is an operator's statement about an unknown outcome.
type Resolution struct {
	Outcome string `json:"outcome"` // applied or failed
	// Reason is required, at most [MaxNotesBytes] bytes.
	Reason string `json:"reason"`
}

// AdminService manages principals, keys, groups and tenants.
type AdminService interface {
	CreatePrincipal(ctx context.Context, r NewPrincipal) (*Credentials, error)
	FindPrincipal(ctx context.Context, idOrName string) (*Principal, error)
	ListPrincipals(ctx context.Context, cursor string, limit int) (Page[*Principal], error)
	UpdatePrincipal(ctx context.Context, idOrName string, r PrincipalChange) (*Principal, error)
	// CreateKey makes a further key; RevokeKey ends one; RotateEditToken makes a
	// new edit token and ends the old one.
	CreateKey(ctx context.Context, principal string) (*Credentials, error)
	ListKeys(ctx context.Context, principal string) ([]*Key, error)
	RevokeKey(ctx context.Context, keyID string) error
	RotateEditToken(ctx context.Context, principal string) (*Credentials, error)
	// PutGroup makes a group, or replaces the members that are set by hand. With m.New it
	// replaces nothing.
	// ChangeGroup adds members by hand and removes members of any source.
	// DeleteGroup ends all memberships. All three need the caller's edit token, or
	// a fresh sign-in.
	PutGroup(ctx context.Context, name string, m GroupMembers) (*Group, error)
	ChangeGroup(ctx context.Context, name string, c GroupChange) (*Group, error)
	DeleteGroup(ctx context.Context, name string) error
	FindGroup(ctx context.Context, name string) (*Group, error)
	ListGroups(ctx context.Context) ([]*Group, error)
	CreateTenant(ctx context.Context, id string) (*Tenant, error)
	ListTenants(ctx context.Context) ([]*Tenant, error)
	WhoAmI(ctx context.Context) (*Principal, error)
}

// NewPrincipal asks for a principal with its first key.
type NewPrincipal struct {
	// Tenant is the caller's when "". Only an administrator of the default tenant
	// may name another, and only for the first principal there, who becomes its
	// administrator.
	Tenant string `json:"tenant,omitempty"`
	// Name is unique in the tenant; see [ValidName].
	Name string `json:"name"`
	// Kind is person, agent or service.
	Kind Kind `json:"kind"`
	// Roles are what the principal may do; see [Role].
	Roles []Role `json:"roles"`
	// Person is as in [Principal]; "" for the new principal's own id.
	Person string `json:"person,omitempty"`
	// Sponsor is a person's id or name; agents only.
	Sponsor string `json:"sponsor,omitempty"`
}

// PrincipalChange changes the fields that are not nil.
type PrincipalChange struct {
	// Roles replaces all roles; nil leaves them.
	Roles *[]Role `json:"roles,omitempty"`
	// Sponsor is a person's id or name; "" removes it.
	Sponsor *string `json:"sponsor,omitempty"`
	// Disabled is nil to leave it as it is.
	Disabled *bool `json:"disabled,omitempty"`
}

// Credentials are secrets that are shown once.
type Credentials struct {
	// ID is the principal's id.
	ID string `json:"id"`
	// Key is the secret, shown only here; "" when no key was made.
	Key string `json:"key,omitempty"`
	// KeyID is the id of the key, by which it can be revoked.
	KeyID string `json:"key_id,omitempty"`
	// EditToken is set for persons only.
	EditToken string `json:"edit_token,omitempty"`
	// Tenant and FromTenant are set when an administrator of one tenant
	// (FromTenant) made the first principal of another (Tenant).
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
	// PolicyUsage returns the use of the accounts of the active policy's ceilings:
	// per ceiling up to MaxCeilingAccounts, the fullest first. An agent that may
	// read only its own actions sees neither the accounts of other agents nor those of targets.
	PolicyUsage(ctx context.Context) ([]*CeilingAccount, error)
	// ProposePolicy proposes to replace the active policy, as an L4 action that
	// another person approves.
	ProposePolicy(ctx context.Context, r PolicyProposal) (*Action, error)
	// ExplainPolicy judges a proposal without storing anything.
	ExplainPolicy(ctx context.Context, p *Proposal) (*Explanation, error)
}

// PolicyProposal asks to replace the active policy.
type PolicyProposal struct {
	// Source is the whole new text.
	Source string `json:"source"`
	// Rationale tells the approvers why.
	Rationale string `json:"rationale,omitempty"`
}

// Explanation is how the active policy would judge a proposal.
type Explanation struct {
	PolicyOutcome
	// RiskLevel is the level that the server would set.
	RiskLevel RiskLevel `json:"risk_level"`
	// RiskName is the policy's own name of the level, "" for none.
	RiskName string `json:"risk_name,omitempty"`
	// Required is the number of distinct persons who must approve.
	Required int `json:"required"`
	// Roles, People and Groups are whom the question would ask.
	Roles  []Role   `json:"roles"`
	People []string `json:"people,omitempty"`
	Groups []string `json:"groups,omitempty"`
	// Expiry is how long people would have to answer.
	Expiry Duration `json:"expiry"`
	Timing
	// Hold is the effective one, including the server's default.
	Hold Duration `json:"hold"`
	// Ceilings are the claims that an approval would reserve.
	Ceilings []CeilingClaim `json:"ceilings,omitempty"`
	// EditUpTo is the highest level at which an editor of the change may approve it
	// alone; at 0 an editor never approves it.
	EditUpTo int `json:"edit_approve_up_to"`
	// CoveredBy is the id of the caller's grant or mandate that would approve the
	// proposal now, "" for none. It ignores ceilings, the longest time that the policy permits,
	// and whether those who gave it may still decide.
	CoveredBy string `json:"covered_by,omitempty"`
	// Trace has a line for each rule: matched, or the condition that did not hold.
	Trace []RuleTrace `json:"trace"`
}

// RuleTrace is the result of one rule.
type RuleTrace struct {
	// Rule is the rule's id.
	Rule string `json:"rule"`
	// Outcome is what the rule decides when it matches.
	Outcome Outcome `json:"outcome"`
	// Matched is true when the rule's condition held.
	Matched bool `json:"matched"`
	// Detail says why the rule did not match, "" when it did.
	Detail string `json:"detail,omitempty"`
}

// AuditService reads the log.
type AuditService interface {
	ListEntries(ctx context.Context, from int64, limit int) ([]*Entry, error)
	// Head returns size and root hash of the numbered log.
	Head(ctx context.Context) (*LogHead, error)
	// Checkpoint returns the head as a signed note, in the format of C2SP tlog-checkpoint.
	// The error has code unsupported if there is no master key.
	Checkpoint(ctx context.Context) ([]byte, error)
	// LogKeys returns the public keys that verify checkpoints. The first one signs; the others
	// are of earlier master keys. Without a master key there are none.
	LogKeys(ctx context.Context) (*LogKeys, error)
	// ProveEntry proves that an entry lies in the log of the given size; 0 means the size of
	// the numbered log.
	ProveEntry(ctx context.Context, entry, size int64) (*EntryProof, error)
	// ProveGrowth proves that the log at size from is a prefix of the log at size to. If to
	// is 0, it means the size of the numbered log.
	ProveGrowth(ctx context.Context, from, to int64) (*GrowthProof, error)
}

// LogKeys are the public keys of a log.
type LogKeys struct {
	Keys []string `json:"keys"`
}

// EntryProof is the inclusion proof of RFC 6962, section 2.1.1.
type EntryProof struct {
	Entry int64 `json:"entry"`
	Size  int64 `json:"size"`
	// Root is the root hash of the log of that size. A proof is worth as much as the
	// checkpoint that states the same root.
	Root Hash `json:"root"`
	// LeafHash is the hash of the entry.
	LeafHash Hash `json:"leaf_hash"`
	// Hashes are the siblings on the way from the leaf to the root.
	Hashes []Hash `json:"hashes"`
}

// GrowthProof is the consistency proof of RFC 6962, section 2.1.2.
type GrowthProof struct {
	From     int64  `json:"from"`
	To       int64  `json:"to"`
	FromRoot Hash   `json:"from_root"`
	ToRoot   Hash   `json:"to_root"`
	Hashes   []Hash `json:"hashes"`
}

// LogHead is the RFC 6962 tree head of a tenant's log.
type LogHead struct {
	Tenant string `json:"tenant"`
	// Size counts the numbered entries.
	Size int64 `json:"size"`
	// Root is the root hash of the Merkle tree (RFC 6962) over the entries.
	Root Hash `json:"root"`
}

// LogCheck is the result of comparing a whole log with its own head. It proves that
// the store agrees with that head, not that the head extends an earlier one: for
// that, compare it with a head that was kept elsewhere.
type LogCheck struct {
	LogHead
	// Found counts the entries that were read: Size, unless some are missing.
	Found int64 `json:"found"`
	// Unnumbered counts leaves that are not in the log yet, at most 10,000.
	Unnumbered int `json:"unnumbered"`
	// Fault describes the first error; "" when everything holds.
	Fault string `json:"fault,omitempty"`
}
