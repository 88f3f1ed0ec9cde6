package gatehouse

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

const (
	// MinRetention is the least time that an action stays where it was, after
	// its end. It is longer than what anybody can still do with an action by a
	// key or a link of its time: stored answers (24 hours), signed links (7 days).
	MinRetention = 30 * 24 * time.Hour
	// MaxCeilingWindow is the longest window of a ceiling. An action that holds
	// a part of one is archived only when no window can reach it any more.
	MaxCeilingWindow = 366 * 24 * time.Hour
	// MaxFamily is how many actions may be archived only together. More stay
	// where they are.
	MaxFamily = 256
)

// EventArchived is the type of the audit leaf that a batch of the archiver
// leaves: its subject is the batch, its data has the ids of the actions
// (actions[].id) and the hashes of their documents (actions[].sha256).
const EventArchived = "archive.stored"

// Archivable reports whether an action in this state can be archived: nothing
// will happen to it any more unless somebody reverses it. A failed one also needs
// its push to be discarded: until then it is a dead letter.
func (s Status) Archivable() bool {
	switch s {
	case StatusRejected, StatusDenied, StatusExpired, StatusCanceled, StatusSuperseded, StatusApplied, StatusReversed, StatusFailed:
		return true
	}
	return false
}

// Record is all that the store has of one action, but for the audit log, which
// is never moved.
type Record struct {
	// Action has no Push and no Receipt of its own here.
	Action      *Action `json:"action"`
	ContentHash Hash    `json:"content_hash"`
	Push        *Push   `json:"push,omitempty"`
	// AttemptBase is the push's.
	AttemptBase int `json:"attempt_base,omitempty"`
	// Receipts are all, oldest first.
	Receipts []*Receipt     `json:"receipts,omitempty"`
	Mirror   *AppliedMirror `json:"mirror,omitempty"`
	Claims   []StoredClaim  `json:"claims,omitempty"`
}

// StoredClaim is what an action holds, or held, of a ceiling. Amount is in
// millionths, rounded away from zero.
type StoredClaim struct {
	Ceiling    string     `json:"ceiling"`
	Scope      string     `json:"scope"`
	Amount     int64      `json:"amount"`
	ReservedAt time.Time  `json:"reserved_at"`
	ReleasedAt *time.Time `json:"released_at,omitempty"`
}

// Archived is an action as the archive keeps it: what it is found by, and all
// of it in one document.
type Archived struct {
	Tenant, ID string
	// ApprovalID and PushID are "" where there is none.
	ApprovalID, PushID string
	IdempotencyKey     string
	Status             Status
	ActionType         string
	RiskLevel          RiskLevel
	ProposerID         string
	ProposedAt         time.Time
	EndedAt            time.Time
	ArchivedAt         time.Time
	// Batch is the subject of the audit leaf that names the document's hash.
	Batch string
	// SHA256 is over Document, the canonical form of a record with its version.
	SHA256   Hash
	Document JSON
}

// archiveVersion is the version of the documents that NewArchived makes.
const archiveVersion = 1

// archived is the document's shape.
type archived struct {
	Version int `json:"v"`
	*Record
}

// NewArchived makes the archive's row of a record. The record is left as it is.
func NewArchived(r *Record, batch string, now time.Time) (*Archived, error) {
	action := *r.Action
	action.Push, action.Receipt, action.ArchivedAt = nil, nil, nil
	kept := *r
	kept.Action, kept.ContentHash = &action, Hash(action.ContentHash)
	a := &Archived{
		Tenant: action.Tenant, ID: action.ID, IdempotencyKey: action.IdempotencyKey, Status: action.Status, ActionType: action.ActionType,
		RiskLevel: action.RiskLevel, ProposerID: action.ProposerID, ProposedAt: action.ProposedAt, EndedAt: action.EndedAt(),
		ArchivedAt: now, Batch: batch,
	}
	if action.Approval != nil {
		a.ApprovalID = action.Approval.ID
	}
	if r.Push != nil {
		a.PushID, kept.AttemptBase = r.Push.ID, r.Push.AttemptBase
	}
	text, err := json.Marshal(archived{archiveVersion, &kept})
	if err != nil {
		return nil, fmt.Errorf("archive %s: %w", a.ID, err)
	}
	// What was proposed may be as deep as it may, and lies deeper here.
	p := parser{src: text, maxDepth: MaxDepth + 8}
	if err := p.document(); err != nil {
		return nil, fmt.Errorf("archive %s: %w", a.ID, err)
	}
	a.Document, a.SHA256 = JSON(p.out), sha256.Sum256(p.out)
	return a, nil
}

// ErrArchiveDamaged says that an archived document is not what was archived.
var ErrArchiveDamaged = errors.New("gatehouse: a damaged document in the archive")

// Record reads the document, and checks it against its hash and against what
// the row says beside it.
func (a *Archived) Record() (*Record, error) {
	damaged := func(what string) error {
		return fmt.Errorf("%w: %s of tenant %s: %s", ErrArchiveDamaged, a.ID, a.Tenant, what)
	}
	if sha256.Sum256([]byte(a.Document)) != a.SHA256 {
		return nil, damaged("its hash is another")
	}
	d := archived{Record: &Record{}}
	if err := json.Unmarshal([]byte(a.Document), &d); err != nil {
		return nil, damaged(err.Error())
	}
	r := d.Record
	switch {
	case d.Version != archiveVersion:
		return nil, damaged(fmt.Sprintf("version %d is not known", d.Version))
	case r.Action == nil:
		return nil, damaged("there is no action in it")
	case r.Action.Tenant != a.Tenant || r.Action.ID != a.ID || r.Action.Status != a.Status || r.Action.IdempotencyKey != a.IdempotencyKey:
		return nil, damaged("it is of another action")
	}
	at := a.ArchivedAt
	r.Action.ArchivedAt, r.Action.ContentHash = &at, [32]byte(r.ContentHash)
	if r.Push != nil {
		r.Push.AttemptBase = r.AttemptBase
		r.Action.SetPush(r.Push)
	}
	for _, c := range r.Receipts {
		if !c.Late {
			r.Action.Receipt = c
		}
	}
	return r, nil
}

// EndedAt is when the action came to its end; zero while it has none.
func (a *Action) EndedAt() time.Time {
	switch {
	case !a.Status.Finished():
	case a.FinishedAt != nil:
		return *a.FinishedAt
	case a.DecidedAt != nil:
		return *a.DecidedAt
	}
	return time.Time{}
}

// ArchivePlan is what could be archived next. Each family, of one tenant, is
// archived whole or not at all: actions that revise or reverse one another.
type ArchivePlan struct {
	Families []ActionFamily
	// Next is where the next look goes on; 0 when there is nothing more.
	Next int64
	// Oldest is the earliest end of what is planned; zero for nothing.
	Oldest time.Time
}

// ActionFamily names actions of one tenant that belong together.
type ActionFamily struct {
	Tenant string
	IDs    []string
	// Of a plan: the earliest and the latest end among them, and the bytes of
	// what they propose and of what stood before. Nothing is locked by these.
	Oldest, Newest time.Time
	Bytes          int64
}

// ArchiveReader reads the archive. What FindAction, FindActionByKey, LockAction,
// FindPush and LockPush do not find among the living, they look for here, and an
// archived action has its ArchivedAt; what it has no more is a place in any list
// but that of ActionFilter.Archived. Lists of receipts, mirrors, lessons and
// facts, sums and counts are of the living only.
type ArchiveReader interface {
	// FindArchived finds by the id of an action, its approval or its push.
	FindArchived(tenant, id string) (*Archived, error)
	// PlanArchive looks, over all tenants, at the actions behind a place, 0 for
	// the beginning, in the order of their proposal, for those that ended before
	// a time and may be archived: in an archivable state; with a push, if there
	// is one, that is applied, canceled or closed; not awaited, or proposed, by a run
	// that has not ended; without a part of a ceiling that a window can still
	// reach, or a step-up; and so each of its family. It plans about limit
	// actions, of about a megabyte, and reads a few hundred at most.
	PlanArchive(after int64, before time.Time, limit int) (*ArchivePlan, error)
}

// ArchiveWriter archives.
type ArchiveWriter interface {
	// LockEnded locks families of one tenant and returns all that the store has
	// of them. Families that are not any more what PlanArchive planned, or that
	// somebody else has locked, are left out.
	LockEnded(families []ActionFamily, before time.Time) ([]*Record, error)
	// PutArchived stores locked actions of one tenant in the archive, and takes
	// them and all that belongs to them out of the other tables. An action that
	// is in the archive already is ErrConflict.
	PutArchived(list []*Archived) error
}
