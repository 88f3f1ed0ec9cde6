package shared

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// One search for archivable actions reads up to ArchiveScan actions, and plans
// about archiveBytes bytes of proposals.
const (
	ArchiveScan  = 200
	archiveBytes = 1 << 20
)

// ArchiveCandidate holds the facts about an action that decide whether it can be archived.
type ArchiveCandidate struct {
	Seq        int64
	Tenant, ID string
	Status     gatehouse.Status
	ProposedAt time.Time
	EndedAt    time.Time
	// Pinned is true if other rows still need the action in the tables.
	Pinned bool
	// Related is true if the action revises or reverses another one, or another one revises or
	// reverses it.
	Related bool
	// Size is the size of the proposal in bytes.
	Size int64
}

func (e *ArchiveCandidate) archivable(before time.Time) bool {
	return e.Status.Archivable() && !e.Pinned && e.EndedAt.Before(before)
}

// CandidateReader reads actions for Plan and Unchanged.
type CandidateReader struct {
	// Scan reads up to ArchiveScan actions after a row, in row order.
	Scan func(after int64) ([]*ArchiveCandidate, error)
	// Find reads one action; nil when it does not exist.
	Find func(tenant, id string) (*ArchiveCandidate, error)
	// RelatedIDs returns the ids of the actions that an action refers to or that refer
	// to it, possibly with duplicates and the action itself.
	RelatedIDs func(tenant, id string) ([]string, error)
}

// NewCandidateReader returns a CandidateReader that uses the database engine's own statements. In scan and find, $1 is
// a time: claims made at this time or before no longer count against any ceiling.
func NewCandidateReader(t Reader, scan, find, related string) CandidateReader {
	reach := t.Now().Add(-gatehouse.MaxCeilingWindow)
	return CandidateReader{
		Scan: func(after int64) ([]*ArchiveCandidate, error) {
			return list(t, scanCandidate, scan, reach, after, ArchiveScan)
		},
		Find: func(tenant, id string) (*ArchiveCandidate, error) {
			rows, err := list(t, scanCandidate, find, reach, tenant, id)
			if err != nil || len(rows) == 0 {
				return nil, err
			}
			return rows[0], nil
		},
		RelatedIDs: func(tenant, id string) ([]string, error) { return list(t, scanText, related, tenant, id) },
	}
}

// Plan implements PlanArchive of gatehouse.ActionQueueReader.
func (s CandidateReader) Plan(after int64, before time.Time, limit int) (*gatehouse.ArchivePlan, error) {
	rows, err := s.Scan(after)
	if err != nil {
		return nil, err
	}
	plan := &gatehouse.ArchivePlan{}
	known := map[string]bool{}
	planned, size := 0, int64(0)
	young := true
	for _, e := range rows {
		young = young && !e.ProposedAt.Before(before)
		if key := e.Tenant + "/" + e.ID; known[key] || !e.archivable(before) {
			continue
		}
		if planned >= limit || size >= archiveBytes {
			return plan, nil
		}
		family, err := s.family(e, before)
		if err != nil {
			return nil, err
		}
		plan.Next = e.Seq
		if family == nil {
			continue
		}
		f := gatehouse.ActionFamily{Tenant: e.Tenant}
		for _, m := range family {
			known[m.Tenant+"/"+m.ID] = true
			f.IDs = append(f.IDs, m.ID)
			f.Bytes += m.Size
			if f.Oldest.IsZero() || m.EndedAt.Before(f.Oldest) {
				f.Oldest = m.EndedAt
			}
			if m.EndedAt.After(f.Newest) {
				f.Newest = m.EndedAt
			}
		}
		size += f.Bytes
		if plan.Oldest.IsZero() || f.Oldest.Before(plan.Oldest) {
			plan.Oldest = f.Oldest
		}
		planned += len(f.IDs)
		plan.Families = append(plan.Families, f)
	}
	plan.Next = 0
	// Rows are in the order of proposal times: if all of these are young, so are the rest.
	if len(rows) == ArchiveScan && !young {
		plan.Next = rows[len(rows)-1].Seq
	}
	return plan, nil
}

// family returns an action and all actions that must be archived with it, sorted
// by id; nil if one of them cannot be archived, or if there are more than
// gatehouse.MaxFamily.
func (s CandidateReader) family(first *ArchiveCandidate, before time.Time) ([]*ArchiveCandidate, error) {
	if !first.archivable(before) {
		return nil, nil
	}
	family := []*ArchiveCandidate{first}
	known := map[string]bool{first.ID: true}
	for i := 0; i < len(family); i++ {
		if !family[i].Related {
			continue
		}
		ids, err := s.RelatedIDs(first.Tenant, family[i].ID)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if known[id] {
				continue
			}
			known[id] = true
			e, err := s.Find(first.Tenant, id)
			if err != nil || e == nil || !e.archivable(before) || len(family) == gatehouse.MaxFamily {
				return nil, err
			}
			family = append(family, e)
		}
	}
	slices.SortFunc(family, func(a, b *ArchiveCandidate) int { return strings.Compare(a.ID, b.ID) })
	return family, nil
}

// Unchanged reports whether a family has not changed since the plan.
func (s CandidateReader) Unchanged(f gatehouse.ActionFamily, before time.Time) (bool, error) {
	if len(f.IDs) == 0 {
		return false, nil
	}
	first, err := s.Find(f.Tenant, f.IDs[0])
	if err != nil || first == nil {
		return false, err
	}
	current, err := s.family(first, before)
	if err != nil {
		return false, err
	}
	want := slices.Sorted(slices.Values(f.IDs))
	return slices.EqualFunc(current, want, func(e *ArchiveCandidate, id string) bool { return e.ID == id }), nil
}

// ArchivedByID finds an archived action by any of its ids.
const ArchivedByID = `
SELECT tenant, id, approval_id, push_id, idempotency_key, status, action_type, risk, proposer_id, proposed_at,
  ended_at, archived_at, batch, sha256, document
FROM action_archive WHERE tenant = $1 AND id = $2
UNION ALL
SELECT tenant, id, approval_id, push_id, idempotency_key, status, action_type, risk, proposer_id, proposed_at,
  ended_at, archived_at, batch, sha256, document
FROM action_archive WHERE tenant = $1 AND approval_id = $2
UNION ALL
SELECT tenant, id, approval_id, push_id, idempotency_key, status, action_type, risk, proposer_id, proposed_at,
  ended_at, archived_at, batch, sha256, document
FROM action_archive WHERE tenant = $1 AND push_id = $2 LIMIT 1`

// FindArchived finds an archived action by any of its ids.
func (t Reads) FindArchived(id string) (*gatehouse.Archived, error) {
	return find(t, ScanArchived, ArchivedByID, t.Tenant(), id)
}

// ArchivedPush returns the push of FindArchived's result; ErrNotFound unless id is the push's.
func ArchivedPush(id string, a *gatehouse.Archived, err error) (*gatehouse.Push, error) {
	switch {
	case err != nil:
		return nil, err
	case a.PushID != id:
		return nil, gatehouse.ErrNotFound
	}
	record, err := a.Record()
	if err != nil {
		return nil, err
	}
	return record.Push, nil
}

// HasDerivedKey reports whether an action's idempotency key was derived from its id.
// No other action can have such a key.
func HasDerivedKey(a *gatehouse.Action) bool { return strings.HasPrefix(a.IdempotencyKey, a.ID+":") }

// Packer compresses one document after another.
type Packer struct{ w *flate.Writer }

// Pack compresses a document with DEFLATE (RFC 1951).
func (p *Packer) Pack(document gatehouse.JSON) ([]byte, error) {
	var out bytes.Buffer
	if p.w == nil {
		w, err := flate.NewWriter(&out, flate.BestSpeed)
		if err != nil {
			return nil, fmt.Errorf("store: compress a document: %w", err)
		}
		p.w = w
	} else {
		p.w.Reset(&out)
	}
	if _, err := io.WriteString(p.w, string(document)); err != nil {
		return nil, fmt.Errorf("store: compress a document: %w", err)
	}
	if err := p.w.Close(); err != nil {
		return nil, fmt.Errorf("store: compress a document: %w", err)
	}
	return out.Bytes(), nil
}

// maxDocument bounds the unpacked size of a document, in bytes.
const maxDocument = 256 << 20

// Unpack reverses Pack. Unreadable data is [gatehouse.ErrArchiveDamaged].
func Unpack(packed []byte) (gatehouse.JSON, error) {
	text, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), maxDocument))
	if err != nil {
		return "", fmt.Errorf("%w: %w", gatehouse.ErrArchiveDamaged, err)
	}
	return gatehouse.JSON(text), nil
}

// ArchiveCursorFilter returns the filter of a cursor of the archive's list.
func ArchiveCursorFilter(tenant string, f gatehouse.ActionFilter) []string {
	return BoundToReader(
		[]string{tenant, string(f.Status), f.ActionType, fmt.Sprint(int(f.RiskLevel)), f.ProposedBy, f.Query}, f.ReadBy)
}
