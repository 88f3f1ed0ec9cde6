package gatehouse

import (
	"context"
	"time"
)

// QueueStore is the part of a [Store] that works across tenants: claims, sweeps,
// the sequencer, the archiver, the list of tenants, and credentials whose tenant is
// not known yet. Everything else belongs to one tenant: see [Store].
type QueueStore interface {
	// ViewQueues is View for all tenants.
	ViewQueues(ctx context.Context, fn func(ReadQueues) error) error
	// ReadQueues is Read for all tenants.
	ReadQueues(ctx context.Context, fn func(ReadQueues) error) error
	// UpdateQueues is Update for all tenants.
	UpdateQueues(ctx context.Context, fn func(Queues) error) error
}

// ReadQueues reads rows of all tenants in one snapshot.
type ReadQueues interface {
	Clock
	// In moves the transaction to a tenant and returns its ReadTx. There is only
	// one ReadTx: a value that an earlier In returned now reads the new tenant, too.
	In(tenant string) ReadTx
	ActionQueueReader
	SearchQueueReader
	PushQueueReader
	RunQueueReader
	MessageQueueReader
	LogQueueReader
	TenantQueueReader
	CredentialReader
}

// Queues reads and writes rows of all tenants. A guarded write whose guard
// fails returns ErrConflict, as in [Tx].
type Queues interface {
	Clock
	// In moves the transaction to a tenant and returns its Tx. There is only one
	// Tx: a value that an earlier In returned now works on the new tenant, too.
	In(tenant string) Tx
	ActionQueueReader
	SearchQueueReader
	PushQueueReader
	RunQueueReader
	MessageQueueReader
	LogQueueReader
	TenantQueueReader
	CredentialReader
	SearchQueueWriter
	PushQueueWriter
	RunQueueWriter
	MessageQueueWriter
	CleanUpWriter
	CredentialWriter
}

// ActionQueueReader finds the actions of all tenants that the sweeper and the archiver
// work on.
type ActionQueueReader interface {
	// ExpiredActions returns up to limit pending actions whose approval's expiry
	// is at or before Now, the earliest first.
	ExpiredActions(limit int) ([]ActionRef, error)
	// ActionsWithDueMoments returns up to limit pending actions whose question has a due
	// [Moment] that is not in the log yet, the earliest first.
	ActionsWithDueMoments(limit int) ([]ActionRef, error)
	// HeldRejections returns up to limit pending actions whose held rejection takes
	// effect at or before Now, the earliest first.
	HeldRejections(limit int) ([]ActionRef, error)
	// PlanArchive finds families that can be archived. It scans at most a few hundred
	// actions, in the order of their proposal, from the given cursor on; 0 is the
	// beginning. A plan ends after about limit actions, or about a megabyte.
	//
	// Every action of a family must have ended before the given time, in an archivable
	// state. Its push, if any, must be applied, canceled or closed. The runs that
	// proposed it or wait for it must have ended. Its ceiling claims must be released,
	// or older than every window. It must have no step-up.
	PlanArchive(after int64, before time.Time, limit int) (*ArchivePlan, error)
}

// PushQueueReader finds the pushes of all tenants that dispatchers work on: the queued
// ones, except those of outside workers, and all leased ones.
type PushQueueReader interface {
	// NextPushAt returns when the next queued push is due or the next lease ends,
	// whichever is earlier; zero for none. It ignores queued pushes of the tenants
	// in except, but not their leases.
	NextPushAt(except ...string) (time.Time, error)
	// DueTenants returns up to limit tenants with pushes to claim. It counts a tenant's
	// due pushes, up to the bound each, and its pushes in flight, except those of
	// outside workers. The order is by tenant id, round-robin: first the tenants after
	// the given one, then those up to and including it. A caller who passes the last
	// tenant of the previous answer skips nobody.
	DueTenants(after string, limit, each int) ([]DueTenant, error)
	// ExpiredLeases returns up to limit pushes in picking or sent whose lease
	// ended at or before Now.
	ExpiredLeases(limit int) ([]*Push, error)
	// PushCounts counts pushes by status.
	PushCounts() (map[PushStatus]int, error)
	// CountAllDeadLetters counts the dead letters: see Push.DeadLetter.
	CountAllDeadLetters() (int, error)
}

// PushQueueWriter claims pushes.
type PushQueueWriter interface {
	// ClaimPushes moves due queued pushes (not_before and next attempt at or before
	// Now) to picking, in each share the oldest due first. It leaves those of outside
	// workers to ClaimLane. It sets owner, lease end and picked_at, and raises the
	// generation by one. Claims are exclusive. Even with concurrent claims, no tenant
	// exceeds its share's Most. No two shares may name the same tenant.
	ClaimPushes(owner string, lease time.Duration, shares ...PushShare) ([]*Push, error)
}

// RunQueueReader finds the runs and steps of all tenants that runners work on.
// SettledSteps, DueSteps, ExpiredSteps and OverdueRuns return rows with equal times
// in the order in which they were created.
type RunQueueReader interface {
	// DueLanes returns up to limit lanes of a tool with ready steps, of one tenant
	// or, when tenant is "", of all. It counts a lane's ready steps, up to the bound
	// each. The order is by tenant, workspace and workflow, round-robin: first the
	// lanes after the given one, then those up to and including it.
	DueLanes(tenant, tool string, after Lane, limit, each int) ([]DueLane, error)
	// ReadyTools returns the tools with ready steps, of one tenant or, when tenant
	// is "", of all. It looks at the first limit tools, by name, with ready steps
	// in any tenant. The built-in tool, "", comes first.
	ReadyTools(tenant string, limit int) ([]ReadyTool, error)
	// QueuedLanes returns up to limit workflows with queued runs, in the order of
	// tenant and workflow, that come after the given one. It counts a workflow's queued
	// runs, up to the bound each, and the runs of the workflow and of the tenant that
	// started after since.
	QueuedLanes(after QueuedLane, limit, each int, since time.Time) ([]QueuedLane, error)
	// SettledSteps returns up to limit steps in waiting_approval or waiting whose
	// action or child run has ended. An action has ended when it is applied,
	// failed, rejected, denied, expired, canceled, superseded or reversed; unknown
	// is not an end.
	SettledSteps(limit int) ([]StepRef, error)
	// DueSteps returns up to limit steps in failed_retryable, waiting or
	// waiting_approval whose DueAt is at or before Now, the earliest first.
	DueSteps(limit int) ([]StepRef, error)
	// ExpiredSteps returns up to limit running steps whose lease ended at or before
	// Now, the earliest first.
	ExpiredSteps(limit int) ([]StepRef, error)
	// OverdueRuns returns up to limit runs (without steps) that are neither final
	// nor stopping and whose deadline is at or before Now, the earliest first.
	OverdueRuns(limit int) ([]*Run, error)
	// UnbundledRuns returns up to limit final runs (without steps) without a
	// bundle, in the order in which they ended.
	UnbundledRuns(limit int) ([]*Run, error)
	// DueSchedules returns up to limit schedules whose NextAt is at or before Now.
	DueSchedules(limit int) ([]*Schedule, error)
	// NextRunWorkAt returns the earliest time at which a step or a schedule is due, a
	// lease ends, or a deadline passes; zero for none. When there are SettledSteps, it
	// returns a time long past. Ready steps do not count.
	NextRunWorkAt() (time.Time, error)
	// RunCounts counts, by state, the runs that are not final.
	RunCounts() (map[RunStatus]int, error)
}

// RunQueueWriter claims steps.
type RunQueueWriter interface {
	// ClaimSteps moves ready steps to running, in each share the earliest ready
	// first. It sets owner, lease end and started_at, raises
	// generation and attempts by one, and returns full steps. Claims are exclusive.
	// Even with concurrent claims, no workflow or tenant exceeds its bound. No two
	// shares may name the same lane.
	ClaimSteps(owner string, lease time.Duration, shares ...StepShare) ([]*Step, error)
}

// MessageQueueReader finds the messages, cards and Slack clicks of all tenants
// that notifiers work on.
type MessageQueueReader interface {
	// OpenNotifications counts the notifications that are not finished.
	OpenNotifications() (int, error)
	// NextNotificationAt returns when the next notification of a channel is due;
	// zero for none.
	NextNotificationAt(channel string) (time.Time, error)
	// NextSlackClickAt returns when the next click is due; zero for none.
	NextSlackClickAt() (time.Time, error)
	// NextCardAt returns when the next card of a channel is due; zero for none.
	NextCardAt(channel string) (time.Time, error)
}

// MessageQueueWriter claims and purges messages, cards and clicks.
type MessageQueueWriter interface {
	// ClaimNotifications moves up to limit notifications of a channel that are due,
	// or whose lease has ended, to sent. It sets owner and lease end, and raises
	// attempts and generation. Claims are exclusive.
	ClaimNotifications(channel, owner string, lease time.Duration, limit int) ([]*Notification, error)
	// PurgeNotifications deletes up to limit notifications that finished before
	// olderThan.
	PurgeNotifications(olderThan time.Time, limit int) (int, error)
	// ClaimSlackClicks claims up to limit clicks that are due, or whose lease has
	// ended. It sets owner and lease end, and raises attempts and generation.
	ClaimSlackClicks(owner string, lease time.Duration, limit int) ([]*SlackClick, error)
	// PurgeSlackClicks deletes up to limit clicks that finished before olderThan.
	PurgeSlackClicks(olderThan time.Time, limit int) (int, error)
	// ClaimCards claims up to limit cards of a channel that are due, or whose lease
	// has ended, as ClaimSlackClicks does.
	ClaimCards(channel, owner string, lease time.Duration, limit int) ([]*PostedCard, error)
	// PurgeCards deletes up to limit cards that are not due and were last written
	// before olderThan.
	PurgeCards(olderThan time.Time, limit int) (int, error)
}

// LogQueueReader finds the leaves that the sequencer works on.
type LogQueueReader interface {
	// UnnumberedLeaves returns up to limit leaves that wait for the sequencer, in
	// the order in which they will be numbered.
	UnnumberedLeaves(limit int) ([]*PendingLeaf, error)
}

// TenantQueueReader lists tenants and their ring keys.
type TenantQueueReader interface {
	// ListTenants returns all tenants by id.
	ListTenants() ([]*Tenant, error)
	// OldRingKeys returns up to limit active keys of a purpose that were created
	// before a time.
	OldRingKeys(purpose RingPurpose, before time.Time, limit int) ([]*RingKey, error)
	// RingKeysUnder returns up to limit keys of a purpose that are sealed under a master
	// key, retired ones too: they may still seal values.
	RingKeysUnder(purpose RingPurpose, master string, limit int) ([]*RingKey, error)
}

// CleanUpWriter deletes ended sessions, stored answers and reviews.
type CleanUpWriter interface {
	// PurgeSessions deletes up to limit rows in all: step-ups that were given before
	// olderThan, sessions that ended before it, and set-up links that were used or
	// expired before it.
	PurgeSessions(olderThan time.Time, limit int) (int, error)
	// PurgeIdempotency deletes up to limit answers that were stored before olderThan,
	// the oldest first.
	PurgeIdempotency(olderThan time.Time, limit int) (int, error)
	// PurgeReviews deletes up to limit reviews that expired before olderThan.
	PurgeReviews(olderThan time.Time, limit int) (int, error)
}

// CredentialReader finds a credential by the hash of its secret, by its id or by its
// number. It searches all tenants, even as part of a [ReadTx].
type CredentialReader interface {
	// FindKey returns an unrevoked key and its principal by the key's hash.
	FindKey(hash [32]byte) (*Key, *Principal, error)
	// FindSession returns a session and its principal by the token's hash, ended
	// sessions too.
	FindSession(hash [32]byte) (*Session, *Principal, error)
	// FindSetupLink finds a link by hash, used and expired ones too.
	FindSetupLink(hash [32]byte) (*SetupLink, error)
	// FindPasskeyByCredential finds a passkey by the authenticator's credential id.
	FindPasskeyByCredential(credentialID []byte) (*Passkey, error)
	// FindRingKey finds a key by number, revoked and ended ones too.
	FindRingKey(number uint32) (*RingKey, error)
}

// CredentialWriter writes ceremonies, which begin before the tenant is known.
type CredentialWriter interface {
	// InsertCeremony stores a ceremony, and deletes some expired ones.
	InsertCeremony(c *Ceremony) error
	// TakeCeremony deletes and returns a ceremony; ErrNotFound for an expired one.
	TakeCeremony(hash [32]byte) (*Ceremony, error)
}
