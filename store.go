package gatehouse

import (
	"context"
	"errors"
	"time"
)

// Store keeps everything. Both engines pass internal/store/storetest in full.
//
// Durability: when Update returns nil, the transaction is committed and
// survives kill -9 and, where the storage honours fsync, power loss. When it
// returns an error, nothing of it is stored.
//
// Isolation: transactions are serializable with respect to the rows that they
// lock or write. View sees one consistent snapshot, never an uncommitted row.
type Store interface {
	// View runs fn in a read-only transaction.
	View(ctx context.Context, fn func(ReadTx) error) error
	// Read is View for one question: fn calls one method that looks into the
	// store, besides those that it has foreseen. A store that is a round trip away
	// has a second one fail.
	Read(ctx context.Context, fn func(ReadTx) error) error
	// Update runs fn in a transaction and commits it when fn returns nil.
	//
	// fn may be run more than once: it must have no effects outside its Tx,
	// and must set all that it returns afresh on each run. It must not keep
	// the Tx. fn's error is returned as it is. Other errors: [ErrBusy] when
	// contention lasts, ctx.Err() when the caller gave up while waiting, in
	// which case nothing is stored.
	Update(ctx context.Context, fn func(Tx) error) error
	// Ping reports whether the store answers.
	Ping(ctx context.Context) error
	Close() error
}

// Distant is what a store is of which every question costs a round trip, and
// which other processes write as well: what is known before a transaction may
// have changed, and is better asked within it.
type Distant interface {
	Store
	Distant()
}

// ErrBusy says that contention lasted: the caller may retry.
var ErrBusy = errors.New("gatehouse: store busy")

// ErrNotFound says that a row does not exist in this tenant.
var ErrNotFound = errors.New("gatehouse: not found")

// ErrConflict says that a guarded write met another state than it expects,
// or that a unique row exists.
var ErrConflict = errors.New("gatehouse: conflict")

// ReadTx reads in one snapshot. Every method that takes a tenant sees that
// tenant's rows only. Methods that find one row return ErrNotFound.
type ReadTx interface {
	// Now is the transaction's one reading of the clock, in UTC and whole
	// microseconds. It never runs backwards from one Update to the next.
	Now() time.Time
	// Foresee tells what the closure is about to ask, before it asks anything.
	// It changes no answer: a [Distant] store fetches it with the first thing
	// that is asked, and answers from that until the closure writes.
	Foresee(o Outlook)
	ActionReader
	IDReader
	PushReader
	IdentityReader
	SessionReader
	ConsoleReader
	PolicyReader
	RunReader
	LogReader
	ArchiveReader
	NotificationReader
	RingReader
	ReviewReader
	SlackReader
	DelegationReader
}

// Tx reads and writes. A guarded write whose guard fails returns ErrConflict,
// at once or at the commit. Each write method writes the row as given.
type Tx interface {
	ReadTx
	ActionWriter
	PushWriter
	IdentityWriter
	SessionWriter
	ConsoleWriter
	PolicyWriter
	RunWriter
	LogWriter
	ArchiveWriter
	NotificationWriter
	RingWriter
	ReviewWriter
	SlackWriter
	DelegationWriter
}

// Outlook is what a closure is about to ask, as far as it is known beforehand.
// All of it is about one tenant. Zero members foresee nothing.
type Outlook struct {
	Tenant string
	// ActionID is of the action that LockAction will be asked for.
	ActionID string
	// Voters foresees PrincipalsForShare of those who approved that action, and
	// of Voter, if there is one, and FindPrincipal of its proposer and of the
	// proposer's sponsor.
	Voters bool
	Voter  string
	// PushID foresees LockPush, after LockAction of an action that is not open.
	PushID string
	// ReceiptKey foresees SuccessReceipt.
	ReceiptKey string
	// Effect foresees DeadLetterOf.
	Effect Hash
	// Policy foresees ActivePolicyVersion.
	Policy bool
	// Names foresees FindPrincipal.
	Names []string
	// Asked foresees FirstAnswerers, nil for none.
	Asked *Audience
	// ActionKey foresees FindActionByKey.
	ActionKey string
	// Key foresees FindCredential.
	Key [32]byte
	// Answer foresees FindIdempotency, of the principal PrincipalID.
	Answer      *IdempotencyRequest
	PrincipalID string
	// Views foresees ListViews, of the principal PrincipalID.
	Views bool
	// RunID is of the run that LockRun will be asked for, before anything else.
	RunID string
}

// IDReader finds things by the beginning of their ids.
type IDReader interface {
	// FindIDs returns up to limit ids of a tenant that begin with prefix, in
	// their order. The first four characters of prefix are a type prefix, such as
	// act_, apr_, psh_, run_, stp_, key_, ses_ or prn_; of another type there are
	// none. Archived actions are among them.
	FindIDs(tenant, prefix string, limit int) ([]string, error)
}

// ActionReader finds actions.
type ActionReader interface {
	// FindAction returns an action with its approval and votes, push summary
	// and latest receipt that is not late. id is an action's or an approval's.
	FindAction(tenant, id string) (*Action, error)
	// FindActionByKey finds by the unique idempotency key.
	FindActionByKey(tenant, idempotencyKey string) (*Action, error)
	// OpenOnTarget returns up to limit ids of pending actions on a target, in their
	// order, that were proposed on another version and do not say yet that it has
	// this one.
	OpenOnTarget(tenant string, t TargetChange, limit int) ([]string, error)
	// ListActions returns a page; see ActionFilter. The cursor is opaque; a
	// malformed one is an Error with code invalid. Walking the pages yields
	// every action that matched throughout exactly once, whatever is written
	// meanwhile.
	ListActions(tenant string, f ActionFilter) (Page[*Action], error)
	// ExpiredActions returns, over all tenants, up to limit pending actions
	// whose approval's expiry is at or before Now, the earliest first.
	ExpiredActions(limit int) ([]ActionRef, error)
	// TimelyActions returns, over all tenants, up to limit pending actions of whose
	// question a moment has come that the log does not tell of, the earliest first.
	TimelyActions(limit int) ([]ActionRef, error)
	// OpenReversal returns the id of the newest action that reverses the
	// given one and is not rejected, denied, expired, canceled, superseded
	// or failed; "" when there is none.
	OpenReversal(tenant, actionID string) (string, error)
}

// ActionRef names an action across tenants.
type ActionRef struct{ Tenant, ID string }

// ActionWriter writes actions, approvals and votes.
type ActionWriter interface {
	// LockAction is FindAction that first locks the approval's row (the
	// action's, where there is no approval) until the end of the transaction.
	// The status is the stored one: an approval past its expiry that was not
	// swept is still requested, as the guards of MoveAction see it.
	LockAction(tenant, id string) (*Action, error)
	// RelockAction is LockAction of an action that was read a moment ago,
	// before the transaction: what can change is read again, what never does
	// may be taken from known, which itself is left as it is.
	RelockAction(known *Action) (*Action, error)
	// InsertAction stores an action, in one of the states that the table has
	// for a new one, and its approval, if it has one. A known idempotency key
	// or id is ErrConflict; one that refers to a row that is not there is
	// ErrNotFound.
	InsertAction(a *Action) error
	// MoveAction applies a guarded transition. The table of transitions is
	// checked too: a move outside it is ErrConflict.
	MoveAction(m ActionMove) error
	// MoveApproval moves a requested approval on: guarded by its status.
	MoveApproval(tenant, approvalID string, to ApprovalStatus) error
	// MarkTarget writes what a question that waits says of its target; of one that has
	// its answer it is ErrConflict.
	MarkTarget(tenant, approvalID string, m TargetMark) error
	// TellApproval stores how many moments the log tells of, and when the next one
	// comes, nil for never. It is guarded by the number as it was read, and by the
	// approval's being requested.
	TellApproval(tenant, approvalID string, from, told int, next *time.Time) error
	// PutVote inserts the person's vote, or replaces it.
	PutVote(tenant, approvalID string, v Vote) error
	// LinkSuperseded sets superseded_by of old.
	LinkSuperseded(tenant, oldID, newID string) error
	// InsertMirror stores what an application did.
	InsertMirror(m *AppliedMirror) error
	// ReserveCeiling stores one claim of an action; the same ceiling and
	// scope of an action is stored once (a second one replaces the first).
	ReserveCeiling(tenant, actionID string, c CeilingClaim) error
	// CeilingUsed sums the unreleased claims on a ceiling and scope whose
	// [CeilingClaim.CountedAt] is after since, and locks the pair until the end of
	// the transaction. The cost does not grow with the number of claims.
	CeilingUsed(tenant, ceiling, scope string, since time.Time) (Decimal, error)
	// ReleaseCeilings gives back all that an action reserved.
	ReleaseCeilings(tenant, actionID string) error
}

// ActionMove is one guarded transition of an action: it happens only when the
// status is From. Nil and zero members leave their columns alone, but for
// Failure and FinishedAt, which are cleared when the action leaves failed.
type ActionMove struct {
	Tenant, ID string
	From, To   Status
	DecidedBy  string
	DecidedVia Channel
	// DecidedAt and FinishedAt are set to Now by the store when true.
	Decided, Finished bool
	Failure           *Failure
	ReversedBy        string
}

// PushReader finds pushes and receipts.
type PushReader interface {
	FindPush(tenant, id string) (*Push, error)
	// ListPushes returns a page, newest first.
	ListPushes(tenant string, f PushFilter) (Page[*Push], error)
	// SuccessReceipt returns a receipt with outcome applied under the key.
	SuccessReceipt(tenant, idempotencyKey string) (*Receipt, error)
	// ListReceipts returns all receipts of an action, oldest first.
	ListReceipts(tenant, actionID string) ([]*Receipt, error)
	// NextPushAt returns when the next queued push or expired lease is due,
	// over all tenants; zero for none. Queued pushes of the tenants in except
	// do not count, their leases do.
	NextPushAt(except ...string) (time.Time, error)
	// DueTenants returns up to limit tenants that have a push to claim, each
	// with as many as are due, counted up to each, and what it has in flight.
	// They come in the order of their names, first those after the given one,
	// then, around, the others up to and with it; so walking on from the last
	// one of an answer passes over nobody.
	DueTenants(after string, limit, each int) ([]DueTenant, error)
	// ExpiredLeases returns, over all tenants, up to limit pushes in picking or
	// sent whose lease ended at or before Now.
	ExpiredLeases(limit int) ([]*Push, error)
	// ListMirror and ListCorpus return pages, newest first. The corpus follows
	// from what people decided, in the order of their approvals; nothing of it
	// is stored by itself. readBy selects by their actions as in ActionFilter.
	ListMirror(tenant, readBy, cursor string, limit int) (Page[*AppliedMirror], error)
	ListCorpus(tenant, readBy, cursor string, limit int) (Page[*CorpusEntry], error)
	// PushCounts counts the pushes of all tenants by status.
	PushCounts() (map[PushStatus]int, error)
	// CountDeadLetters counts those of a tenant, or of all when tenant is "".
	CountDeadLetters(tenant string) (int, error)
	// DeadLetterOf returns the action of the tenant's newest dead letter with
	// that effect; "" when there is none.
	DeadLetterOf(tenant string, effect Hash) (actionID string, err error)
}

// DueTenant is a tenant with due pushes. InFlight counts those in picking and
// sent, whoever holds them.
type DueTenant struct {
	Tenant        string
	Due, InFlight int
}

// PushShare is what one claim may take of a tenant: at most Limit pushes, and
// only while fewer than Most of it are in flight; no Most is no bound.
type PushShare struct {
	Tenant      string
	Limit, Most int
}

// PushWriter writes pushes and receipts.
type PushWriter interface {
	InsertPush(p *Push) error
	// LockPush is FindPush that locks the row.
	LockPush(tenant, id string) (*Push, error)
	// ClaimPushes moves queued pushes that are due (not_before and next attempt
	// at or before Now) to picking, of each share's tenant the oldest due first:
	// sets owner, lease end and picked_at, and raises the generation by one.
	// Nobody else claims the same row. However many claim at a time, no claim
	// brings a tenant above its share's Most. Shares name distinct tenants.
	ClaimPushes(owner string, lease time.Duration, shares ...PushShare) ([]*Push, error)
	// ClaimLane does so, for a worker outside, with up to limit due pushes of a
	// tenant in the lanes named, which are in no share of anybody. A proposer that
	// is not "" limits it to the actions that this principal proposed.
	ClaimLane(owner string, lease time.Duration, tenant, proposer string, lanes []string, limit int) ([]*Push, error)
	// UpdatePush writes every mutable column of p, guarded by status and
	// generation as they were read; p.Generation may be raised by the write.
	UpdatePush(p *Push, from PushStatus, generation int) error
	// MarkDeadLetter stores TargetSays of a push that has just become failed or
	// unknown, and the effect that DeadLetterOf finds it by. It is guarded by
	// the push's status and generation.
	MarkDeadLetter(p *Push, effect Hash) error
	// ClosePush closes a failed push that is open: it sets closed_at to Now.
	ClosePush(tenant, id, by, reason string) error
	InsertReceipt(r *Receipt) error
}

// IdentityReader finds principals, keys and stored answers.
type IdentityReader interface {
	// FindPrincipal finds by id, or by name without regard to case: "Ana" and
	// "ana" cannot be two principals.
	FindPrincipal(tenant, idOrName string) (*Principal, error)
	// FindKey returns an unrevoked key and its principal by the key's hash,
	// over all tenants.
	FindKey(hash [32]byte) (*Key, *Principal, error)
	// FindCredential is FindKey within a tenant, with the hash of the
	// principal's edit token; zeros where there is none.
	FindCredential(tenant string, hash [32]byte) (p *Principal, editToken [32]byte, err error)
	// FindEditToken returns the hash of the principal's edit token.
	FindEditToken(tenant, principalID string) ([32]byte, error)
	ListPrincipals(tenant, cursor string, limit int) (Page[*Principal], error)
	// ListPeople returns all principals of kind person, disabled ones too, by id.
	ListPeople(tenant string) ([]*Principal, error)
	// FirstAnswerers returns, by id, the first [MaxFirstAnswerers] of the persons
	// who may decide (see Principal.MayDecide) and whom a question asks, excluded
	// ones too. There may be others among them, whom it does not ask.
	FirstAnswerers(tenant string, asked Audience) ([]*Principal, error)
	// FindGroup and ListGroups return groups without their members, which are
	// found at the principals. ListGroups goes by name.
	FindGroup(tenant, name string) (*Group, error)
	ListGroups(tenant string) ([]*Group, error)
	ListKeys(tenant, principalID string) ([]*Key, error)
	// FindKeyByID returns a key, revoked or not.
	FindKeyByID(tenant, id string) (*Key, error)
	FindTenant(id string) (*Tenant, error)
	ListTenants() ([]*Tenant, error)
	// Inherited reports whether Inherit lets a principal read an action or run.
	Inherited(tenant, principalID, id string) (bool, error)
	FindIdempotency(tenant, principalID, route, key string) (*IdempotencyRecord, error)
}

// IdentityWriter writes them.
type IdentityWriter interface {
	// InsertTenant stores a tenant; "default" is there from the beginning.
	InsertTenant(t *Tenant) error
	InsertPrincipal(p *Principal) error
	// LockFirstPrincipal keeps others from making a tenant's first principal
	// until the end of the transaction.
	LockFirstPrincipal(tenant string) error
	UpdatePrincipal(p *Principal) error
	// InsertGroup stores a group without members; a known name is ErrConflict.
	// DeleteGroup leaves the principals as they are.
	InsertGroup(g *Group) error
	DeleteGroup(tenant, name string) error
	InsertKey(k *Key) error
	// RevokeKey sets revoked_at to Now, once.
	RevokeKey(tenant, keyID string) error
	PutEditToken(tenant, principalID string, hash [32]byte) error
	// PrincipalsForShare reads principals by id and keeps them from changing
	// until the end of the transaction. Missing ones are left out.
	PrincipalsForShare(tenant string, ids []string) ([]*Principal, error)
	InsertIdempotency(r *IdempotencyRecord) error
	// Inherit lets those agents read the action or run id who may read the action
	// or run from: who proposed or started it, and who inherited it. Both exist,
	// or id is inserted in the same transaction.
	Inherit(tenant, id, from string) error
	// LockBulkCalls locks the person's times until the end of the transaction and
	// returns them as PutBulkCalls stored them, none at first.
	LockBulkCalls(tenant, person string) ([]time.Time, error)
	PutBulkCalls(tenant, person string, times []time.Time) error
	// PurgeIdempotency deletes up to limit records older than the window.
	PurgeIdempotency(olderThan time.Time, limit int) (int, error)
}

// SessionReader finds sessions and what they begin with.
type SessionReader interface {
	// FindSession returns a session and its principal by the token's hash,
	// over all tenants, ended ones too.
	FindSession(hash [32]byte) (*Session, *Principal, error)
	FindSessionByID(tenant, id string) (*Session, error)
	// ListSessions returns a page, newest first: of one principal, or of all
	// when principalID is ""; those that have ended only when ended is true.
	ListSessions(tenant, principalID string, ended bool, cursor string, limit int) (Page[*Session], error)
	// FindSetupLink finds by hash over all tenants, used and expired ones too.
	FindSetupLink(hash [32]byte) (*SetupLink, error)
	FindIdentity(tenant, issuer, subject string) (*ExternalIdentity, error)
	ListIdentities(tenant, principalID string) ([]*ExternalIdentity, error)
	FindPasskey(tenant, id string) (*Passkey, error)
	// FindPasskeyByCredential finds by the authenticator's id over all tenants.
	FindPasskeyByCredential(credentialID []byte) (*Passkey, error)
	ListPasskeys(tenant, principalID string) ([]*Passkey, error)
	// FindStepUp returns the newest step-up of a session for an action and
	// digest that is not used and was given after since.
	FindStepUp(tenant, sessionID, actionID string, digest Digest, since time.Time) (*StepUp, error)
}

// SessionWriter writes them.
type SessionWriter interface {
	// InsertSession stores a session of a person; of anybody else it is
	// ErrConflict.
	InsertSession(s *Session, hash [32]byte) error
	// TouchSession moves last_seen_at forward, and expires_at with it. Of a
	// session that was revoked, or seen later, it changes nothing.
	TouchSession(tenant, id string, seen, expires time.Time) error
	// RevokeSession sets revoked_at to Now, once.
	RevokeSession(tenant, id string) error
	// RevokeSessions does so to a principal's live sessions, or to those that
	// began with a credential when it is not "", and returns their ids.
	RevokeSessions(tenant, principalID, credential string) ([]string, error)
	// InsertSetupLink stores a link; the person's unused ones expire.
	InsertSetupLink(l *SetupLink) error
	// UseSetupLink sets used_at to Now, guarded by its being unused.
	UseSetupLink(tenant, id string) error
	InsertIdentity(i *ExternalIdentity) error
	DeleteIdentity(tenant, issuer, subject string) error
	InsertPasskey(p *Passkey) error
	// UsePasskey stores what a use changed: the credential, its counter,
	// guarded by the counter as it was read, and last_used_at, set to Now.
	UsePasskey(tenant, id string, credential []byte, signCount, from uint32) error
	DeletePasskey(tenant, id string) error
	// InsertCeremony stores one, and deletes some that have expired.
	InsertCeremony(c *Ceremony) error
	// TakeCeremony deletes and returns one; ErrNotFound for an expired one.
	TakeCeremony(hash [32]byte) (*Ceremony, error)
	InsertStepUp(u *StepUp) error
	// UseStepUp sets used_at to Now, guarded by its being unused.
	UseStepUp(tenant, id string) error
	// PurgeSessions deletes up to limit rows, over all tenants: step-ups given,
	// sessions ended, and set-up links used or expired before olderThan.
	PurgeSessions(olderThan time.Time, limit int) (int, error)
}

// PolicyReader finds policy versions.
type PolicyReader interface {
	// ListCeilingUse sums the unreleased claims on a ceiling that are counted after
	// since, as CeilingUsed does, by scope: of one scope, or, when it is "", of up to limit
	// scopes, the fullest first. It locks nothing.
	ListCeilingUse(tenant, ceiling, scope string, since time.Time, limit int) ([]CeilingUse, error)
	// CeilingUses sums the unreleased claims of each span by one statement, in the
	// order of spans: 0 where nothing is reserved. It locks nothing.
	CeilingUses(tenant string, spans []CeilingSpan) ([]Decimal, error)
	// ActivePolicy returns the tenant's active version.
	ActivePolicy(tenant string) (*PolicyVersion, error)
	// ActivePolicyVersion is its number alone, cheaply; 0 for none.
	ActivePolicyVersion(tenant string) (int, error)
	FindPolicy(tenant string, version int) (*PolicyVersion, error)
	// ListPolicies returns all versions, newest first, without their source.
	ListPolicies(tenant string) ([]*PolicyVersion, error)
}

// PolicyWriter stores policies.
type PolicyWriter interface {
	// InsertPolicy stores the next version, makes it the active one, and
	// returns its number.
	InsertPolicy(p *PolicyVersion) (int, error)
	// ActivatePolicy makes a stored version the active one.
	ActivatePolicy(tenant string, version int) error
}

// LogReader reads the audit log. Only numbered entries are seen.
type LogReader interface {
	// ListEntries returns entries with index >= from in order, at most limit.
	ListEntries(tenant string, from int64, limit int) ([]*Entry, error)
	// ListActionEntries returns the numbered entries about one action, in order.
	ListActionEntries(tenant, actionID string) ([]*Entry, error)
	// LogSize returns the number of numbered entries.
	LogSize(tenant string) (int64, error)
	// LogHashes returns stored tree hashes by their storage index (see
	// golang.org/x/mod/sumdb/tlog.StoredHashIndex); one that is not there is
	// ErrNotFound.
	LogHashes(tenant string, indexes []int64) ([]Hash, error)
	// UnnumberedLeaves returns up to limit leaves that wait for the sequencer,
	// over all tenants, in the order in which they are to be numbered.
	UnnumberedLeaves(limit int) ([]*PendingLeaf, error)
}

// LogWriter writes the audit log.
type LogWriter interface {
	// AppendLeaf stores a leaf, to be numbered later. The store fills At with
	// Now when it is zero, and ID when it is empty.
	AppendLeaf(l *Leaf) error
	// NumberLeaves turns pending leaves into entries and stores the new tree
	// hashes of each tenant's log. It fails with ErrConflict when the log has
	// another size than expected: another sequencer was here.
	NumberLeaves(tenant string, expectedSize int64, leaves []*NumberedLeaf, hashes []Hash) error
}

// PendingLeaf is a leaf that waits for its number. Row names it to the store.
type PendingLeaf struct {
	Row      int64
	Tenant   string
	ActionID string
	Body     JSON
}

// NumberedLeaf gives a pending leaf its place.
type NumberedLeaf struct {
	Row      int64
	Index    int64
	LeafHash Hash
}

// ConsoleReader finds what only the console asks for.
type ConsoleReader interface {
	// ActionFacts calls fn with facts of the newest proposals, newest first,
	// until it returns false. It ends after [MaxFacts]. readBy selects as in
	// ActionFilter.
	ActionFacts(tenant, readBy string, fn func(ActionFact) bool) error
	// DecisionCounts returns, by endpoint, what AddDecisions stored for the UTC day
	// of a time and for the days after it.
	DecisionCounts(tenant string, from time.Time) ([]DecisionCount, error)
	// ListViews returns a person's saved views by name.
	ListViews(tenant, principalID string) ([]*SavedView, error)
	// ListNotices returns a page of notices since a time, the newest first, with
	// Dismissed as it is for the principal.
	ListNotices(tenant, principalID string, since time.Time, f NoticeFilter) (Page[*Notice], error)
}

// ConsoleWriter writes it.
type ConsoleWriter interface {
	// AddDecisions adds n, at least 1, to the count of a result at an endpoint on
	// the UTC day of a time. Nothing is lost when several add at once.
	AddDecisions(tenant string, day time.Time, endpoint string, result DecisionResult, n int64) error
	// PutView stores a view, in the place of one of the same name.
	PutView(v *SavedView) error
	// DeleteView removes a view, if it is there.
	DeleteView(tenant, principalID, name string) error
	InsertNotice(n *Notice) error
	// DismissNotice hides a notice from a principal; dismissed is false when it
	// was hidden before, and when there is no such notice.
	DismissNotice(tenant, principalID, id string) (dismissed bool, err error)
}
