package gatehouse

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

const (
	// MinRetention is the least time that an action stays in the live tables after
	// its end. No stored answer ([IdempotencyWindow]) and no signed link to the action
	// ([MaxLinkTTL]) lives longer.
	MinRetention = 30 * 24 * time.Hour
	// MaxCeilingWindow is the longest window of a ceiling. An action with a claim
	// on a ceiling is archived only after the claim is outside every window.
	MaxCeilingWindow = 366 * 24 * time.Hour
	// MaxFamily bounds the size of a family of actions, which is archived whole or
	// not at all. Larger families stay in the live tables.
	MaxFamily = 256
)

// EventArchived is the type of the audit leaf that the archiver writes per batch.
// Its subject is the batch; its data lists the ids of the actions (actions[].id)
// and the hashes of their documents (actions[].sha256).
const EventArchived = "archive.stored"

// Archivable reports whether an action in this state can be archived: it will not
// change any more unless somebody reverses it. A failed action also needs its push
// to be discarded: until then it is a dead letter.
func (s Status) Archivable() bool {
	switch s {
	case StatusRejected, StatusDenied, StatusExpired, StatusCanceled, StatusSuperseded, StatusApplied, StatusReversed,
		StatusFailed:
		return true
	}
	return false
}

// Record is what the archive keeps of one action. The audit log never moves;
// notifications, cards and reviews stay in the live tables until they are purged.
type Record struct {
	// Action has Push and Receipt only in a record that [Archived.Record] has read.
	Action *Action `json:"action"`
	// ContentHash is the SHA-256 of the canonical proposal; see
	// [Proposal.ContentHash].
	ContentHash Hash `json:"content_hash"`
	// Push is nil for an action that was never approved.
	Push *Push `json:"push,omitempty"`
	// AttemptBase is Push.AttemptBase, which the push's own JSON leaves out.
	AttemptBase int `json:"attempt_base,omitempty"`
	// Receipts are all receipts of the action, oldest first.
	Receipts []*Receipt `json:"receipts,omitempty"`
	// Mirror is nil unless the action was applied.
	Mirror *AppliedMirror `json:"mirror,omitempty"`
	// Claims are all claims on ceilings, released or not.
	Claims []StoredClaim `json:"claims,omitempty"`
}

// StoredClaim is an action's claim on a ceiling, released or not.
type StoredClaim struct {
	// Ceiling and Scope are as in [CeilingClaim].
	Ceiling string `json:"ceiling"`
	Scope   string `json:"scope"`
	// Amount is in millionths, rounded away from zero.
	Amount int64 `json:"amount"`
	// ReservedAt is the time of the approval that reserved it.
	ReservedAt time.Time `json:"reserved_at"`
	// ReleasedAt is nil while the claim counts.
	ReleasedAt *time.Time `json:"released_at,omitempty"`
}

// Archived is the archive's row of an action: columns for lookups, and one document
// with the whole record.
type Archived struct {
	// The fields up to EndedAt repeat the record's, for lookups.
	Tenant, ID string
	// ApprovalID and PushID are "" where the action has none.
	ApprovalID, PushID string
	IdempotencyKey     string
	Status             Status
	ActionType         string
	RiskLevel          RiskLevel
	ProposerID         string
	ProposedAt         time.Time
	EndedAt            time.Time
	// ArchivedAt is when the archiver moved the action.
	ArchivedAt time.Time
	// Batch is the subject of the audit leaf that names the document's hash.
	Batch string
	// SHA256 is the hash of Document, the canonical form of a record with its
	// version.
	SHA256 Hash
	// Document is the whole record: see [NewArchived].
	Document JSON
}

// archiveVersion is the version of the documents that NewArchived makes.
const archiveVersion = 1

// archived is the document's shape.
type archived struct {
	Version int `json:"v"`
	*Record
}

// NewArchived makes the archive row of a record. It does not change the record.
func NewArchived(r *Record, batch string, now time.Time) (*Archived, error) {
	action := *r.Action
	action.Push, action.Receipt, action.ArchivedAt = nil, nil, nil
	kept := *r
	kept.Action, kept.ContentHash = &action, Hash(action.ContentHash)
	a := &Archived{
		Tenant: action.Tenant, ID: action.ID, IdempotencyKey: action.IdempotencyKey, Status: action.Status,
		ActionType: action.ActionType,
		RiskLevel:  action.RiskLevel, ProposerID: action.ProposerID, ProposedAt: action.ProposedAt, EndedAt: action.EndedAt(),
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
	// The proposal may use the full depth, and is nested deeper within the
	// document.
	p := parser{src: text, maxDepth: MaxDepth + 8}
	if err := p.document(); err != nil {
		return nil, fmt.Errorf("archive %s: %w", a.ID, err)
	}
	a.Document, a.SHA256 = JSON(p.out), sha256.Sum256(p.out)
	return a, nil
}

// ErrArchiveDamaged says that a document was changed after it was archived.
var ErrArchiveDamaged = errors.New("gatehouse: a damaged document in the archive")

// Record reads the document, and checks it against its hash and against the columns
// of the row.
func (a *Archived) Record() (*Record, error) {
	damaged := func(what string) error {
		return fmt.Errorf("%w: %s of tenant %s: %s", ErrArchiveDamaged, a.ID, a.Tenant, what)
	}
	if sha256.Sum256([]byte(a.Document)) != a.SHA256 {
		return nil, damaged("its hash differs")
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
		return nil, damaged("it has no action")
	case r.Action.Tenant != a.Tenant || r.Action.ID != a.ID || r.Action.Status != a.Status ||
		r.Action.IdempotencyKey != a.IdempotencyKey:
		return nil, damaged("it belongs to another action")
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

// EndedAt returns when the action ended; zero for an action that has not ended.
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

// ArchivePlan lists the families that could be archived next. A family is the
// actions of one tenant that revise or reverse one another. It is archived whole or
// not at all.
type ArchivePlan struct {
	// Families are in the order of the scan.
	Families []ActionFamily
	// Next is the cursor from which the next scan continues; 0 at the end.
	Next int64
	// Oldest is the earliest end among the planned actions; zero for an empty plan.
	Oldest time.Time
}

// ActionFamily names actions of one tenant that belong together.
type ActionFamily struct {
	Tenant string
	// IDs are the ids of all its actions.
	IDs []string
	// In a plan: the earliest and the latest end in the family, and the size in
	// bytes of the proposed changes and pre-images. LockEnded ignores
	// these fields.
	Oldest, Newest time.Time
	Bytes          int64
}

// ArchiveReader reads the archive. FindAction, FindActions, FindActionByKey, LockAction,
// FindPush and LockPush fall back to the archive when the live tables have no such
// row; an archived action has ArchivedAt set. Lists show archived actions only with
// ActionFilter.Archived. Lists of receipts, mirrors, lessons and facts, sums and
// counts cover live rows only.
type ArchiveReader interface {
	// FindArchived finds an archived action by the id of the action, its approval
	// or its push.
	FindArchived(id string) (*Archived, error)
}

// ArchiveWriter moves actions to the archive.
type ArchiveWriter interface {
	// LockEnded locks families of one tenant and returns their full records. It
	// leaves out families that have changed since PlanArchive planned them, and
	// families that another transaction has locked.
	LockEnded(families []ActionFamily, before time.Time) ([]*Record, error)
	// PutArchived stores locked actions of one tenant in the archive, and deletes
	// everything that a [Record] holds, and the snoozes, from the live tables. It fails
	// with ErrConflict if an action is already archived.
	PutArchived(list []*Archived) error
}
