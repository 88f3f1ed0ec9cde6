package sqlite

import (
	"errors"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// candidateColumns are the columns of shared.ArchiveCandidate for an action a. A failed action ends when its push is
// closed. An open push, an open run, a step-up, and a ceiling claim that still counts pin the action. Ceiling claims
// that are counted at the time ?1 or before are outside every window.
const candidateColumns = `a.seq, a.tenant, a.id, a.status, a.proposed_at,
  CASE WHEN a.status = 'failed'
    THEN coalesce((SELECT h.closed_at FROM push h WHERE h.action_seq = a.seq), a.finished_at)
  ELSE coalesce(a.finished_at, a.decided_at) END,
  EXISTS (SELECT 1 FROM push h WHERE h.action_seq = a.seq AND h.status <> 'applied' AND h.status <> 'canceled'
    AND h.closed_at IS NULL)
  OR a.status = 'failed' AND NOT EXISTS (SELECT 1 FROM push h WHERE h.action_seq = a.seq AND h.closed_at IS NOT NULL)
  OR EXISTS (SELECT 1 FROM step s JOIN run r ON r.seq = s.run_seq
WHERE s.tenant = a.tenant AND s.action_id = a.id AND s.action_id IS NOT NULL
    AND r.status <> 'succeeded' AND r.status <> 'failed_terminal' AND r.status <> 'canceled')
  OR EXISTS (SELECT 1 FROM ceiling_claim c WHERE c.action_seq = a.seq AND c.released_at IS NULL AND c.counted_at > ?1)
  OR EXISTS (SELECT 1 FROM step_up u WHERE u.tenant = a.tenant AND u.action_id = a.id),
  a.supersedes IS NOT NULL OR a.superseded_by IS NOT NULL OR a.reverses IS NOT NULL OR a.reversed_by IS NOT NULL
  OR EXISTS (SELECT 1 FROM action k WHERE k.tenant = a.tenant AND k.reverses = a.id AND k.reverses IS NOT NULL)
  OR EXISTS (SELECT 1 FROM action k WHERE k.tenant = a.tenant AND k.supersedes = a.id AND k.supersedes IS NOT NULL),
  coalesce((SELECT octet_length(p.proposed_change) + octet_length(p.current_state) FROM proposal p
WHERE p.seq = a.seq), 0)`

const (
	scanCandidates = `SELECT ` + candidateColumns + ` FROM action a WHERE a.seq > ?2 ORDER BY a.seq LIMIT ?3`
	findCandidate  = `SELECT ` + candidateColumns + ` FROM action a WHERE a.tenant = ?2 AND a.id = ?3`
	findRelated    = `SELECT supersedes FROM action WHERE tenant = ?1 AND id = ?2 AND supersedes IS NOT NULL
UNION ALL SELECT superseded_by FROM action WHERE tenant = ?1 AND id = ?2 AND superseded_by IS NOT NULL
UNION ALL SELECT reverses FROM action WHERE tenant = ?1 AND id = ?2 AND reverses IS NOT NULL
UNION ALL SELECT reversed_by FROM action WHERE tenant = ?1 AND id = ?2 AND reversed_by IS NOT NULL
UNION ALL SELECT id FROM action WHERE tenant = ?1 AND supersedes = ?2 AND supersedes IS NOT NULL
UNION ALL SELECT id FROM action WHERE tenant = ?1 AND superseded_by = ?2 AND superseded_by IS NOT NULL
UNION ALL SELECT id FROM action WHERE tenant = ?1 AND reverses = ?2 AND reverses IS NOT NULL
UNION ALL SELECT id FROM action WHERE tenant = ?1 AND reversed_by = ?2 AND reversed_by IS NOT NULL`
)

func (t *readTx) candidateReader() shared.CandidateReader {
	return shared.NewCandidateReader(t, scanCandidates, findCandidate, findRelated)
}

// PlanArchive selects the actions that can be archived.
func (t *readTx) PlanArchive(after int64, before time.Time, limit int) (*gatehouse.ArchivePlan, error) {
	return t.candidateReader().Plan(after, before, limit)
}

const archivedByKey = `SELECT tenant, id, approval_id, push_id, idempotency_key, status, action_type, risk, proposer_id,
  proposed_at, ended_at, archived_at, batch, sha256,
  document FROM action_archive WHERE tenant = ? AND idempotency_key = ?`

// orArchived looks in the archive for an action that is not in the main tables.
func (t *readTx) orArchived(sql, tenant, key string, row scanned, err error) (scanned, error) {
	if err != gatehouse.ErrNotFound { //nolint:errorlint // the package's own, unwrapped
		return row, err
	}
	var a *gatehouse.Archived
	if err := t.one(sql, func(r *stmt) (err error) { a, err = shared.ScanArchived(r); return err }, tenant,
		key); err != nil {
		return scanned{}, err
	}
	record, err := a.Record()
	if err != nil {
		return scanned{}, err
	}
	return scanned{action: record.Action}, nil
}

// keyIsFree returns ErrConflict when an archived action has the same
// idempotency key.
func (t *readTx) keyIsFree(a *gatehouse.Action) error {
	if a.IdempotencyKey == "" || shared.HasDerivedKey(a) {
		return nil
	}
	n, err := t.number(`SELECT count(*) FROM action_archive
WHERE tenant = ? AND idempotency_key = ?`, a.Tenant, a.IdempotencyKey)
	if err == nil && n > 0 {
		return gatehouse.ErrConflict
	}
	return err
}

// listArchived lists the archive, the newest first.
func (t *readTx) listArchived(
	tenant string, f gatehouse.ActionFilter,
) (page gatehouse.Page[*gatehouse.Action], err error) {
	page.Items = []*gatehouse.Action{}
	bound := shared.ArchiveCursorFilter(tenant, f)
	c, err := shared.ParseCursor(f.Cursor, shared.KindArchive, bound...)
	if err != nil {
		return page, err
	}
	var where condition
	shared.FilterArchive(where.add, tenant, f, c,
		`SELECT id FROM principal WHERE tenant = ? AND name = ?`)
	limit := shared.PageLimit(f.Limit)
	size := int64(0)
	err = t.each(
		`SELECT tenant, id, approval_id, push_id, idempotency_key, status, action_type, risk, proposer_id, proposed_at,
  ended_at, archived_at, batch, sha256, document FROM action_archive WHERE `+where.sql()+` ORDER BY id DESC LIMIT ?`,
		func(r *stmt) error {
			if len(page.Items) == limit || size > shared.MaxPageBytes {
				page.NextCursor = shared.Cursor{Kind: shared.KindArchive, Filter: shared.FilterHash(bound),
					ID: page.Items[len(page.Items)-1].ID}.Encode()
				return errEnough
			}
			a, err := shared.ScanArchived(r)
			if err != nil {
				return err
			}
			size += int64(len(a.Document))
			record, err := a.Record()
			if err == nil {
				page.Items = append(page.Items, record.Action)
			}
			return err
		}, append(where.args, limit+1)...)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return page, err
}

// LockEnded reads the complete records of the families that have not changed
// since the plan. The writer's transaction is the lock.
func (t *tx) LockEnded(families []gatehouse.ActionFamily, before time.Time) (list []*gatehouse.Record, err error) {
	for _, x := range families {
		if err := t.Owns(x.Tenant); err != nil {
			return nil, err
		}
	}
	for _, f := range families {
		unchanged, err := t.candidateReader().Unchanged(f, before)
		if err != nil {
			return nil, err
		}
		if !unchanged {
			continue
		}
		for _, id := range f.IDs {
			r, err := t.record(f.Tenant, id)
			if err != nil {
				return nil, err
			}
			list = append(list, r)
		}
	}
	return list, nil
}

// record reads all rows of an action.
func (t *tx) record(tenant, id string) (*gatehouse.Record, error) {
	t.asStored = true
	defer func() { t.asStored = false }()
	row, err := t.load(findAction, tenant, id)
	if err != nil {
		return nil, err
	}
	r := &gatehouse.Record{Action: row.action}
	err = t.each(`SELECT `+pushColumns+` FROM push WHERE action_seq = ?`,
		func(s *stmt) error { r.Push = shared.ScanPush(s); return nil }, row.seq)
	if err != nil {
		return nil, err
	}
	if r.Receipts, err = t.ListReceipts(id); err != nil {
		return nil, err
	}
	if r.Action.Comments, err = t.ListComments(id); err != nil {
		return nil, err
	}
	err = t.each(`SELECT tenant, action_id, action_type, connector, operation, target, before_state, after_state, digest,
  external_id, receipt_id, applied_at FROM mirror WHERE action_seq = ?`, func(s *stmt) (err error) {
		r.Mirror = shared.ScanMirror(s, &err)
		return err
	}, row.seq)
	if err != nil {
		return nil, err
	}
	err = t.each(`SELECT c.value ->> 0, c.value ->> 1, c.value ->> 2, reserved_at, released_at
FROM ceiling_claim, json_each(claims) c WHERE action_seq = ? ORDER BY 1, 2`, func(s *stmt) error {
		r.Claims = append(r.Claims, gatehouse.StoredClaim{Ceiling: s.Text(), Scope: s.Text(), Amount: s.Int(),
			ReservedAt: s.Time(), ReleasedAt: s.TimePtr()})
		return nil
	}, row.seq)
	return r, err
}

// moveOut deletes an action from the tables, child rows first.
var moveOut = [...]string{
	`DELETE FROM mirror WHERE action_seq = ?`,
	`DELETE FROM ceiling_claim WHERE action_seq = ?`,
	`DELETE FROM receipt WHERE action_seq = ?`,
	`DELETE FROM push WHERE action_seq = ?`,
	`DELETE FROM vote WHERE seq = ?`,
	`DELETE FROM comment WHERE seq = ?`,
	`DELETE FROM snooze WHERE seq = ?`,
	`DELETE FROM approval WHERE seq = ?`,
	`DELETE FROM proposal WHERE seq = ?`,
	`DELETE FROM action WHERE seq = ?`,
}

// PutArchived moves actions into the archive.
func (t *tx) PutArchived(list []*gatehouse.Archived) error {
	for _, x := range list {
		if err := t.Owns(x.Tenant); err != nil {
			return err
		}
	}
	var packer shared.Packer
	t.lastPush, t.known = nil, knownAction{}
	var gone []*shared.Searchable
	for _, a := range list {
		packed, err := packer.Pack(a.Document)
		if err != nil {
			return err
		}
		_, err = t.exec(
			`INSERT INTO action_archive (tenant, id, approval_id, push_id, idempotency_key, status, action_type, risk,
  proposer_id, proposed_at, ended_at, archived_at, batch, sha256, document)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			a.Tenant, a.ID, shared.OrNull(a.ApprovalID), shared.OrNull(a.PushID), shared.OrNull(a.IdempotencyKey),
			string(a.Status), a.ActionType, int(a.RiskLevel),
			a.ProposerID, a.ProposedAt, a.EndedAt, a.ArchivedAt, a.Batch, a.SHA256[:], packed)
		if err != nil {
			return err
		}
		seq, err := t.number(`SELECT seq FROM action WHERE tenant = ? AND id = ?`, a.Tenant, a.ID)
		if err != nil {
			return err
		}
		if seq == 0 {
			return gatehouse.ErrNotFound
		}
		words, err := t.searchables(`a.seq = ?`, seq)
		if err != nil {
			return err
		}
		gone = append(gone, words...)
		if err := t.releaseClaims(seq); err != nil {
			return err
		}
		for _, sql := range moveOut {
			if _, err := t.exec(sql, seq); err != nil {
				return err
			}
		}
	}
	if err := t.unindex(gone); err != nil {
		return err
	}
	return t.rewindIndex()
}
