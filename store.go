package gatehouse

import (
	"context"
	"errors"
	"time"
)

// Store keeps all data. Both engines pass internal/store/storetest in full.
//
// A transaction belongs to one tenant: it sees that tenant's rows only, but for the
// credentials that a [CredentialReader] finds. Passing a
// row of another tenant to one of its methods fails with [ErrOtherTenant]. Work
// across tenants uses a [QueueStore].
//
// Durability: when Update returns nil, the transaction is committed and survives
// kill -9 and, where the storage honours fsync, power loss. When it returns an
// error, nothing of it is stored.
//
// Isolation: transactions are serializable with respect to the rows that they lock
// or write. View sees one consistent snapshot, never an uncommitted row.
type Store interface {
	// View runs fn in a read-only transaction.
	View(ctx context.Context, tenant string, fn func(ReadTx) error) error
	// Read is View for a single query: fn calls one method that reads the store. A
	// store with network round trips fails a second query.
	Read(ctx context.Context, tenant string, fn func(ReadTx) error) error
	// Update runs fn in a transaction and commits it when fn returns nil.
	//
	// fn may run more than once: it must have no effects outside its Tx, and must
	// set all its results on each run. It must not keep the Tx. Update returns fn's
	// error unchanged. Other errors: [ErrBusy] when contention lasts; ctx.Err()
	// when the caller gave up while waiting, in which case nothing is stored.
	Update(ctx context.Context, tenant string, fn func(Tx) error) error
	QueueStore
	// Ping reports whether the store answers.
	Ping(ctx context.Context) error
	Close() error
}

// Remote marks a store that needs a round trip per query and that other processes
// also write. The process caches the callers of such a store by their keys, and the
// transaction of a use case verifies the caller: see [CachedCredential].
type Remote interface {
	Store
	Remote()
}

// ErrBusy says that contention lasted. The caller may retry.
var ErrBusy = errors.New("gatehouse: store busy")

// ErrNotFound says that a row does not exist in this tenant.
var ErrNotFound = errors.New("gatehouse: not found")

// ErrOtherTenant says that a transaction was given a row of another tenant: a bug
// of the program. Nothing of the row is stored.
var ErrOtherTenant = errors.New("gatehouse: a row of another tenant")

// ErrConflict says that a guarded write found an unexpected state, or that a row
// with the same unique key exists.
var ErrConflict = errors.New("gatehouse: conflict")

// Clock is the clock of a transaction.
type Clock interface {
	// Now is the transaction's one reading of the clock, in UTC and whole
	// microseconds. It never runs backwards from one Update to the next.
	Now() time.Time
}

// ReadTx reads the rows of one tenant in one snapshot. Methods that find one row
// return ErrNotFound. A function that needs one area takes only that interface.
type ReadTx interface {
	Clock
	TransitionReader
	ActionReader
	IDReader
	PushReader
	IdentityReader
	SessionReader
	ConsoleReader
	PolicyReader
	ConnectorVersionReader
	WorkflowReader
	RunReader
	StepReader
	ModelReader
	LogReader
	ArchiveReader
	NotificationReader
	RingReader
	SecretReader
	ReviewReader
	SlackReader
	DelegationReader
	GrantReader
	DeviceReader
	PreferenceReader
	MandateReader
	CredentialReader
	ConversationReader
}

// Tx reads and writes the rows of one tenant. A guarded write whose guard fails
// returns ErrConflict, at once or at the commit. Each write method stores the row
// as given.
type Tx interface {
	ReadTx
	TransitionWriter
	ActionWriter
	PushWriter
	IdentityWriter
	SessionWriter
	ConsoleWriter
	PolicyWriter
	ConnectorVersionWriter
	RunWriter
	LogWriter
	ArchiveWriter
	NotificationWriter
	RingWriter
	SecretWriter
	ReviewWriter
	SlackWriter
	DelegationWriter
	GrantWriter
	DeviceWriter
	PreferenceWriter
	MandateWriter
	CredentialWriter
	ConversationWriter
}

// IDReader finds ids by their beginning.
type IDReader interface {
	// FindIDs returns up to limit ids of the tenant that begin with prefix, sorted.
	// The first four characters of prefix are a type prefix: act_, apr_, psh_, run_,
	// stp_, key_, ses_, prn_, grt_, mnd_, dlg_, dev_ or rgk_; any other type has no ids. Archived
	// actions are included.
	FindIDs(prefix string, limit int) ([]string, error)
}

// ActionReader finds actions.
type ActionReader interface {
	// FindAction returns an action with its approval and votes, push summary
	// and latest receipt that is not late. id is an action's or an approval's.
	FindAction(id string) (*Action, error)
	// FindActions is FindAction for several ids, without those that do not exist. The
	// result is keyed by the given ids.
	FindActions(ids []string) (map[string]*Action, error)
	// FindActionByKey finds an action by its unique idempotency key.
	FindActionByKey(idempotencyKey string) (*Action, error)
	// OpenOnTarget returns up to limit ids, in order, of pending actions on a
	// target that are based on another version than t's and are not marked with
	// t's version yet.
	OpenOnTarget(t TargetChange, limit int) ([]string, error)
	// ListActions returns a page; see ActionFilter. The cursor is opaque; a
	// malformed one is an Error with code invalid. A walk over the pages returns
	// each action exactly once if it matches during the whole walk, despite
	// concurrent writes.
	ListActions(f ActionFilter) (Page[*Action], error)
	// OpenReversal returns the id of the newest action that reverses the
	// given one and is not rejected, denied, expired, canceled, superseded
	// or failed; "" when there is none.
	OpenReversal(actionID string) (string, error)
}

// ActionRef names an action across tenants.
type ActionRef struct{ Tenant, ID string }

// ActionWriter writes actions, approvals and votes.
type ActionWriter interface {
	// LockAction is FindAction that first locks the approval's row (the action's,
	// for an action without an approval) until the end of the transaction. The
	// status is the stored one, which the guards of MoveAction also use: an
	// approval past its expiry is still requested until it is swept.
	LockAction(id string) (*Action, error)
	// InsertAction stores an action, in one of the states that the transition table
	// has for a new one, and its approval, if any. A known idempotency key or id
	// fails with ErrConflict, a reference to a missing row with ErrNotFound.
	InsertAction(a *Action) error
	// MoveAction applies a guarded transition. A move outside the transition table
	// fails with ErrConflict.
	MoveAction(m ActionMove) error
	// MoveApproval moves an approval from requested to another state.
	MoveApproval(approvalID string, to ApprovalStatus) error
	// MarkTarget marks a waiting question whose target has changed; ErrConflict when the
	// question is answered.
	MarkTarget(approvalID string, m TargetMark) error
	// SetEvaluated stores the evaluations of a waiting question; ErrConflict when it does
	// not wait.
	SetEvaluated(approvalID string, list []Evaluated) error
	// SetMomentsDone stores done as [Approval.MomentsDone], and the time of the next moment, nil
	// for none. It fails with ErrConflict unless the stored number is from and the
	// approval is requested.
	SetMomentsDone(approvalID string, from, done int, next *time.Time) error
	// HoldRejection stores when a rejection takes effect, on a requested approval with its
	// vote. The question has no further moments.
	HoldRejection(approvalID string, at time.Time) error
	// PutVote inserts the person's vote, or replaces it.
	PutVote(approvalID string, v Vote) error
	// LinkSuperseded sets superseded_by of the old action.
	LinkSuperseded(oldID, newID string) error
	// InsertMirror stores the mirror of an applied action.
	InsertMirror(m *AppliedMirror) error
	// ReserveCeilings replaces the claims of an action, at most one for a ceiling and scope. A claim fits if the sum
	// of LockCeilings over its window, plus the claim, is at most its limit. If a claim does not fit, nothing is
	// stored, and the first such claim is returned. It locks like LockCeilings.
	ReserveCeilings(actionID string, claims ...CeilingClaim) (*CeilingExcess, error)
	// LockCeilings sums the unreleased claims of each span whose
	// [CeilingClaim.CountedAt] is after Since, and locks ceiling and scope until the
	// end of the transaction. The cost does not grow with the number of claims.
	LockCeilings(spans ...CeilingSpan) ([]Decimal, error)
	// ReleaseCeilings releases all claims of an action.
	ReleaseCeilings(actionID string) error
}

// ActionMove is one guarded transition of an action: it happens only when the
// status is From. Nil and zero fields do not change their columns, except that the
// failure is cleared when the action leaves failed, and finished_at when a replay
// approves it again.
type ActionMove struct {
	ID       string
	From, To Status
	// DecidedBy is a principal's name, or [Action.PolicyName].
	DecidedBy string
	// DecidedVia is the channel of the decision.
	DecidedVia Channel
	// Decided and Finished make the store set the times of the decision and of the end
	// to Now; a nonzero DecidedAt is the time of the decision instead.
	Decided, Finished bool
	DecidedAt         time.Time
	// Failure is as in [Action].
	Failure *Failure
	// ReversedBy is the id of the action that reverses this one.
	ReversedBy string
}

// PushReader finds pushes and receipts.
type PushReader interface {
	FindPush(id string) (*Push, error)
	// ListPushes returns a page, newest first.
	ListPushes(f PushFilter) (Page[*Push], error)
	// PushFacts calls fn with facts of pushes: first of those created at since or
	// later, newest first, then of earlier ones that are queued, picking or sent.
	// Each part has at most [MaxPushFacts]. readBy selects by the pushes' actions,
	// as in ActionFilter.
	PushFacts(since time.Time, readBy string, fn func(PushFact)) error
	// SuccessReceipt returns a receipt with outcome applied under the key.
	SuccessReceipt(idempotencyKey string) (*Receipt, error)
	// ListReceipts returns all receipts of an action, oldest first.
	ListReceipts(actionID string) ([]*Receipt, error)
	// ListMirror and ListCorpus return pages, newest first. The corpus is derived
	// from the decisions of people, in the order of their approvals; it has no rows
	// of its own. readBy selects by the actions, as in ActionFilter.
	ListMirror(readBy, cursor string, limit int) (Page[*AppliedMirror], error)
	ListCorpus(readBy, cursor string, limit int) (Page[*CorpusEntry], error)
	// WaitingLanes returns the lanes with queued pushes, the first by name.
	WaitingLanes(limit int) ([]string, error)
	// DueInLane returns when the push of a lane that has waited longest fell due, zero if
	// none is due at Now, and whether an unexpired lease on a push of the lane exists.
	DueInLane(lane string) (since time.Time, leased bool, err error)
}

// DueTenant is a tenant with due pushes. InFlight counts its pushes in picking and
// sent, except those of outside workers.
type DueTenant struct {
	Tenant        string
	Due, InFlight int
}

// PushShare bounds what one claim may take of a tenant: at most Limit pushes, and only while fewer
// than Most of them are in flight; 0 means no bound.
type PushShare struct {
	Tenant      string
	Limit, Most int
}

// LaneClaim selects due pushes for an outside worker.
type LaneClaim struct {
	// Owner and Lease are the lease of what is claimed.
	Owner string
	Lease time.Duration
	// Lanes are names of connectors.
	Lanes []string
	// Operations restricts the lanes that it names to these operations.
	Operations map[string][]string
	// Proposer restricts the claim to actions that the principal with this id proposed; "" for all.
	Proposer string
	// Limit is the largest number of pushes.
	Limit int
}

// PushWriter writes pushes and receipts.
type PushWriter interface {
	InsertPush(p *Push) error
	// LockPush is FindPush that locks the row.
	LockPush(id string) (*Push, error)
	// ClaimLane claims due pushes of the tenant for an outside worker, as ClaimPushes does.
	// Pushes in a lane belong to no share.
	ClaimLane(c LaneClaim) ([]*Push, error)
	// UpdatePush writes every mutable column of p, guarded by status and generation
	// as they were read; the write may raise p.Generation.
	UpdatePush(p *Push, from PushStatus, generation int) error
	// MarkDeadLetter stores TargetSays of a push that has just become failed or
	// unknown, and the hash of its effect, by which OpenProposal finds it. It is
	// guarded by the push's status and generation.
	MarkDeadLetter(p *Push, effect Hash) error
	// ClosePush closes an open failed push: it sets closed_at to Now.
	ClosePush(id, by, reason string) error
	InsertReceipt(r *Receipt) error
}

// IdentityReader finds tenants, principals, groups and keys.
type IdentityReader interface {
	// FindPrincipal finds a principal by id, or by name without regard to case:
	// "Ana" and "ana" cannot be two principals.
	FindPrincipal(idOrName string) (*Principal, error)
	// FindEditToken returns the hash of the principal's edit token.
	FindEditToken(principalID string) ([32]byte, error)
	ListPrincipals(cursor string, limit int) (Page[*Principal], error)
	// ListPeople returns all principals of kind person, disabled ones too, by id.
	ListPeople() ([]*Principal, error)
	// FindGroup and ListGroups return groups without their members, which are
	// stored with the principals. ListGroups sorts by name.
	FindGroup(name string) (*Group, error)
	ListGroups() ([]*Group, error)
	ListKeys(principalID string) ([]*Key, error)
	// FindKeyByID returns a key, revoked or not.
	FindKeyByID(id string) (*Key, error)
	// FindTenant returns the transaction's tenant.
	FindTenant() (*Tenant, error)
	// Inherited reports whether Inherit lets a principal read an action or run.
	Inherited(principalID, id string) (bool, error)
}

// IdentityWriter writes tenants, principals, groups, keys and stored answers.
type IdentityWriter interface {
	// InsertTenant stores a tenant. The tenant "default" always exists.
	InsertTenant(t *Tenant) error
	InsertPrincipal(p *Principal) error
	// LockFirstPrincipal locks the creation of a tenant's first principal until the
	// end of the transaction.
	LockFirstPrincipal() error
	UpdatePrincipal(p *Principal) error
	// InsertGroup stores a group without members; a known name fails with ErrConflict.
	// DeleteGroup does not change the principals.
	InsertGroup(g *Group) error
	DeleteGroup(name string) error
	InsertKey(k *Key) error
	// RevokeKey sets revoked_at to Now, once.
	RevokeKey(keyID string) error
	PutEditToken(principalID string, hash [32]byte) error
	// LockPrincipals reads principals by id, and locks them against changes
	// until the end of the transaction. Missing ones are left out.
	LockPrincipals(ids []string) ([]*Principal, error)
	InsertIdempotency(r *IdempotencyRecord) error
	// Inherit extends rights to read from one action or run to another: the agents that
	// may read the object from may also read the object id. Those are the proposer or
	// starter of from, and the agents that inherited the right to read it. Both objects
	// exist, or id is inserted in the same transaction.
	Inherit(id, from string) error
	// LockBulkCalls returns the times of the person's bulk decisions, as
	// PutBulkCalls stored them, and locks them until the end of the transaction.
	// There are none at first.
	LockBulkCalls(person string) ([]time.Time, error)
	PutBulkCalls(person string, times []time.Time) error
}

// SessionReader finds sessions, step-ups and the credentials of sign-ins.
type SessionReader interface {
	FindSessionByID(id string) (*Session, error)
	// ListSessions returns a page, newest first: of one principal, or of all when
	// principalID is "". Ended sessions are included only when ended is true.
	ListSessions(principalID string, ended bool, cursor string, limit int) (Page[*Session], error)
	FindIdentity(issuer, subject string) (*ExternalIdentity, error)
	ListIdentities(principalID string) ([]*ExternalIdentity, error)
	FindPasskey(id string) (*Passkey, error)
	ListPasskeys(principalID string) ([]*Passkey, error)
	// FindStepUp returns the newest unused step-up of a session for an action and
	// digest that was given after since.
	FindStepUp(sessionID, actionID string, digest Digest, since time.Time) (*StepUp, error)
}

// SessionWriter writes sessions, step-ups and the credentials of sign-ins.
type SessionWriter interface {
	// InsertSession stores a session of a person; for a principal of another kind it
	// fails with ErrConflict.
	InsertSession(s *Session, hash [32]byte) error
	// TouchSession moves last_seen_at and expires_at forward. It does not change a
	// revoked session, or one with a later last_seen_at.
	TouchSession(id string, seen, expires time.Time) error
	// RevokeSession sets revoked_at to Now, once.
	RevokeSession(id string) error
	// RevokeSessions revokes a principal's sessions, expired ones too, because a device token counts until its
	// session is revoked. It returns the ids of those that were not revoked before. A credential that is not ""
	// selects the sessions that began with it.
	RevokeSessions(principalID, credential string) ([]string, error)
	// InsertSetupLink stores a link and expires the person's unused links.
	InsertSetupLink(l *SetupLink) error
	// EndSetupLinks expires the person's unused links.
	EndSetupLinks(principalID string) error
	// UseSetupLink sets used_at of an unused link to Now; a used one fails with ErrConflict.
	UseSetupLink(id string) error
	InsertIdentity(i *ExternalIdentity) error
	DeleteIdentity(issuer, subject string) error
	InsertPasskey(p *Passkey) error
	// UsePasskey stores the changes of a use: the credential, its counter (guarded
	// by the counter as it was read), and last_used_at, set to Now.
	UsePasskey(id string, credential []byte, signCount, from uint32) error
	DeletePasskey(id string) error
	InsertStepUp(u *StepUp) error
	// UseStepUp sets used_at of an unused step-up to Now; a used one fails with ErrConflict.
	UseStepUp(id string) error
}

// PolicyReader finds policy versions.
type PolicyReader interface {
	// ListCeilingUse sums, by scope, the unreleased claims on a ceiling that are
	// counted after since, as LockCeilings does. It returns up to limit scopes, the fullest
	// first. scope selects the scope of this name, alone or followed by "/" and a currency;
	// "" selects all. It locks nothing.
	ListCeilingUse(ceiling, scope string, since time.Time, limit int) ([]CeilingUse, error)
	// CeilingUses is LockCeilings without the locks, by one statement: a sum for each
	// span, in their order; 0 where nothing is reserved.
	CeilingUses(spans []CeilingSpan) ([]Decimal, error)
	// ActivePolicy returns the tenant's active version.
	ActivePolicy() (*PolicyVersion, error)
	// ActivePolicyVersion returns the active version's number alone, cheaply; 0 for
	// none.
	ActivePolicyVersion() (int, error)
	FindPolicy(version int) (*PolicyVersion, error)
	// ListPolicies returns all versions, newest first, without their source.
	ListPolicies() ([]*PolicyVersion, error)
}

// PolicyWriter stores policies.
type PolicyWriter interface {
	// InsertPolicy stores the next version, makes it the active one, and
	// returns its number.
	InsertPolicy(p *PolicyVersion) (int, error)
	// ActivatePolicy makes a stored version the active one.
	ActivatePolicy(version int) error
}

// LogReader reads the audit log. It sees numbered entries only.
type LogReader interface {
	// ListEntries returns entries with index >= from in order, at most limit.
	ListEntries(from int64, limit int) ([]*Entry, error)
	// ListActionEntries returns the numbered entries about one action, in order.
	ListActionEntries(actionID string) ([]*Entry, error)
	// LogSize returns the number of numbered entries.
	LogSize() (int64, error)
	// LogHashes returns stored tree hashes by their storage index (see
	// golang.org/x/mod/sumdb/tlog.StoredHashIndex). A missing hash fails with ErrNotFound.
	LogHashes(indexes []int64) ([]Hash, error)
}

// LogWriter writes the audit log.
type LogWriter interface {
	// AppendLeaf stores a leaf, to be numbered later. The store sets At to Now when
	// it is zero, and generates ID when it is empty.
	AppendLeaf(l *Leaf) error
	// NumberLeaves turns pending leaves into entries and stores the new tree hashes
	// of the tenant's log. It fails with ErrConflict when the log has another size
	// than expected: another sequencer was faster.
	NumberLeaves(expectedSize int64, leaves []*NumberedLeaf, hashes []Hash) error
}

// PendingLeaf is a leaf that waits for its number. Row is the store's key of the
// leaf.
type PendingLeaf struct {
	Row    int64
	Tenant string
	// ActionID is "" where no action is concerned.
	ActionID string
	// Body is the canonical JSON of the leaf.
	Body JSON
}

// NumberedLeaf gives a pending leaf its index and hash.
type NumberedLeaf struct {
	// Row is the store's key of the leaf.
	Row int64
	// Index counts from 0 within the tenant's log.
	Index int64
	// LeafHash is as in [Entry].
	LeafHash Hash
}

// ConsoleReader reads facts for statistics, saved views and notices.
type ConsoleReader interface {
	// ActionFacts calls fn with facts of the newest proposals, newest first, until
	// fn returns false, for at most [MaxFacts]. readBy selects as in ActionFilter.
	ActionFacts(readBy string, fn func(ActionFact) bool) error
	// DecisionCounts returns, by endpoint, what AddDecisions stored for the UTC day
	// of a time and for the days after it.
	DecisionCounts(from time.Time) ([]DecisionCount, error)
	// ListViews returns a person's saved views by name.
	ListViews(principalID string) ([]*SavedView, error)
	// ListNotices returns a page of notices since a time, newest first. Dismissed
	// is set for the given principal.
	ListNotices(principalID string, since time.Time, f NoticeFilter) (Page[*Notice], error)
}

// ConsoleWriter writes counts, views and notices.
type ConsoleWriter interface {
	// AddDecisions adds n, at least 1, to the count of a result at an endpoint on
	// the UTC day of a time. Concurrent calls lose nothing.
	AddDecisions(day time.Time, endpoint string, result DecisionResult, n int64) error
	// PutView stores a view, replacing one of the same name.
	PutView(v *SavedView) error
	// DeleteView removes a view, if it exists.
	DeleteView(principalID, name string) error
	InsertNotice(n *Notice) error
	// DismissNotice hides a notice from a principal. dismissed is false when the
	// notice was already hidden, and when there is no such notice.
	DismissNotice(principalID, id string) (dismissed bool, err error)
}
