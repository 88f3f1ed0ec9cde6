package postgres

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// candidateColumns are the fields of shared.ArchiveCandidate, for an action a. A failed action ends when its push is
// closed. An open push, an open run, a step-up, and a ceiling claim that still counts pin the action. Ceiling claims
// that are counted at $1 or before are outside every window.
const candidateColumns = `a.seq, a.tenant, a.id, a.status, a.proposed_at,
  CASE WHEN a.status = 'failed'
    THEN coalesce((SELECT h.closed_at FROM push h WHERE h.action_seq = a.seq), a.finished_at, 0)
  ELSE coalesce(a.finished_at, a.decided_at, 0) END,
  EXISTS (SELECT 1 FROM push h WHERE h.action_seq = a.seq AND h.status NOT IN ('applied', 'canceled')
    AND h.closed_at IS NULL)
  OR a.status = 'failed' AND NOT EXISTS (SELECT 1 FROM push h WHERE h.action_seq = a.seq AND h.closed_at IS NOT NULL)
  OR EXISTS (SELECT 1 FROM step s JOIN run r ON r.seq = s.run_seq WHERE s.tenant = a.tenant AND s.action_id = a.id
    AND r.status NOT IN ('succeeded', 'failed_terminal', 'canceled'))
  OR EXISTS (SELECT 1 FROM ceiling_claim c WHERE c.action_seq = a.seq AND c.released_at IS NULL AND c.counted_at > $1)
  OR EXISTS (SELECT 1 FROM step_up u WHERE u.tenant = a.tenant AND u.action_id = a.id),
  a.supersedes IS NOT NULL OR a.superseded_by IS NOT NULL OR a.reverses IS NOT NULL OR a.reversed_by IS NOT NULL
  OR EXISTS (SELECT 1 FROM action k WHERE k.tenant = a.tenant AND k.reverses = a.id)
  OR EXISTS (SELECT 1 FROM action k WHERE k.tenant = a.tenant AND k.supersedes = a.id),
  coalesce((SELECT octet_length(p.proposed_change) + octet_length(p.current_state) FROM proposal p
    WHERE p.seq = a.seq), 0)`

const (
	scanCandidates = `SELECT ` + candidateColumns + ` FROM action a WHERE a.seq > $2 ORDER BY a.seq LIMIT $3`
	findCandidate  = `SELECT ` + candidateColumns + ` FROM action a WHERE a.tenant = $2 AND a.id = $3`
	findRelated    = `SELECT k.id FROM action a
CROSS JOIN LATERAL (VALUES (a.supersedes), (a.superseded_by), (a.reverses), (a.reversed_by)) k (id)
WHERE a.tenant = $1 AND a.id = $2 AND k.id IS NOT NULL
UNION ALL SELECT id FROM action WHERE tenant = $1 AND supersedes = $2
UNION ALL SELECT id FROM action WHERE tenant = $1 AND superseded_by = $2
UNION ALL SELECT id FROM action WHERE tenant = $1 AND reverses = $2
UNION ALL SELECT id FROM action WHERE tenant = $1 AND reversed_by = $2`

	// Each action of a list is looked up by itself: a join might read all actions of the tenant.
	//
	// A lock on one of these rows means that somebody is about to use the action: the archiver
	// skips it.
	lockEndedActions = `SELECT l.id FROM unnest($2::text[]) u (id)
CROSS JOIN LATERAL (SELECT a.id FROM action a WHERE a.tenant = $1 AND a.id = u.id FOR UPDATE SKIP LOCKED) l`
	lockEndedApprovals = `SELECT l.id FROM unnest($2::text[]) u (id)
CROSS JOIN LATERAL (SELECT seq FROM action WHERE tenant = $1 AND id = u.id LIMIT 1) a
CROSS JOIN LATERAL (SELECT o.id FROM approval o WHERE o.seq = a.seq FOR UPDATE SKIP LOCKED) l`
	countApprovals = `SELECT count(*) FROM unnest($2::text[]) u (id)
CROSS JOIN LATERAL (SELECT seq FROM action WHERE tenant = $1 AND id = u.id LIMIT 1) a
CROSS JOIN LATERAL (SELECT seq FROM approval WHERE approval.seq = a.seq OFFSET 0) o`
)

func (t *readTx) candidateReader() shared.CandidateReader {
	return shared.NewCandidateReader(t, scanCandidates, findCandidate, findRelated)
}

// PlanArchive finds the actions that can be archived.
func (t *readTx) PlanArchive(after int64, before time.Time, limit int) (*gatehouse.ArchivePlan, error) {
	defer t.AllTenants()()
	return t.candidateReader().Plan(after, before, limit)
}

const keyIsFree = `SELECT gatehouse_refuse('GH001') FROM action_archive WHERE tenant = $1 AND idempotency_key = $2`

var findArchivedByKey = reads[keyRow](`
SELECT r.n, a.tenant, a.id, a.approval_id, a.push_id, a.idempotency_key, a.status, a.action_type, a.risk,
  a.proposer_id, a.proposed_at, a.ended_at, a.archived_at, a.batch, a.sha256, a.document
FROM (
  SELECT tenant, ($2::text[])[n] AS key, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $3
) r
CROSS JOIN LATERAL (
  SELECT * FROM action_archive WHERE tenant = r.tenant AND idempotency_key = r.key OFFSET 0
) a`)

// allowSecondRead permits a second query in a Read. A lookup makes a second query only for a row that the
// tables do not have, and a page only if a proposal is too large for its share of the page.
func (t *readTx) allowSecondRead() {
	if t.single {
		t.begun, t.serverTenant = false, ""
	}
}

// findInArchive finds an archived action by an id or a key.
func (t *readTx) findInArchive(sql, tenant, key string) (a *gatehouse.Archived, err error) {
	t.allowSecondRead()
	err = t.one(sql, func(r *row) (err error) { a, err = shared.ScanArchived(r); return err }, tenant, key)
	return a, err
}

// orArchived looks in the archive for an action that the tables do not have.
func (t *readTx) orArchived(id string, a *gatehouse.Action, tenant string, err error) (*gatehouse.Action, error) {
	if err != gatehouse.ErrNotFound { //nolint:errorlint // the package's own, unwrapped
		return a, err
	}
	return actionOf(t.findInArchive(shared.ArchivedByID, tenant, id))
}

// addArchived adds the actions that the archive has.
func (t *readTx) addArchived(found map[string]*gatehouse.Action, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	queries := make([]query, len(ids))
	for i, id := range ids {
		queries[i] = ask(shared.ArchivedByID, func(r *row) (err error) {
			found[id], err = actionOf(shared.ScanArchived(r))
			return err
		}, t.tenant, id)
	}
	t.allowSecondRead()
	return t.read(queries...)
}

func actionOf(a *gatehouse.Archived, err error) (*gatehouse.Action, error) {
	if err != nil {
		return nil, err
	}
	record, err := a.Record()
	if err != nil {
		return nil, err
	}
	return record.Action, nil
}

// orArchivedPush looks in the archive for a push that the tables do not have.
func (t *readTx) orArchivedPush(id string, p *gatehouse.Push, tenant string, err error) (*gatehouse.Push, error) {
	if err != gatehouse.ErrNotFound { //nolint:errorlint // the package's own, unwrapped
		return p, err
	}
	a, err := t.findInArchive(shared.ArchivedByID, tenant, id)
	return shared.ArchivedPush(id, a, err)
}

// listArchived lists the archive, newest first.
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
		`SELECT id FROM principal WHERE tenant = ? AND folded = lower(?::text COLLATE "C")`)
	limit, size := shared.PageLimit(f.Limit), int64(0)
	sql := where.number(
		`SELECT tenant, id, approval_id, push_id, idempotency_key, status, action_type, risk, proposer_id, proposed_at,
  ended_at, archived_at, batch, sha256, document FROM action_archive WHERE `+where.sql()+` ORDER BY id DESC LIMIT ?`,
		limit+1,
	)
	err = t.each(sql, func(r *row) error {
		if page.NextCursor != "" {
			return nil
		}
		if len(page.Items) == limit || size > shared.MaxPageBytes {
			page.NextCursor = shared.Cursor{
				Kind: shared.KindArchive, Filter: shared.FilterHash(bound), ID: page.Items[len(page.Items)-1].ID,
			}.Encode()
			return nil
		}
		archived, err := shared.ScanArchived(r)
		if err != nil {
			return err
		}
		size += int64(len(archived.Document))
		a, err := actionOf(archived, nil)
		page.Items = append(page.Items, a)
		return err
	}, where.args...)
	return page, err
}

// LockEnded locks the families that nobody else has locked, and reads the full records of those
// that are still as planned.
func (t *tx) LockEnded(families []gatehouse.ActionFamily, before time.Time) (list []*gatehouse.Record, err error) {
	for _, x := range families {
		if err := t.Owns(x.Tenant); err != nil {
			return nil, err
		}
	}
	for _, f := range families {
		locked, err := t.lockFamily(f)
		if err != nil {
			return nil, err
		}
		if !locked {
			continue
		}
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

// lockFamily locks the rows of a family and reports whether all of them were free.
func (t *tx) lockFamily(f gatehouse.ActionFamily) (bool, error) {
	actions, approvals, total := 0, 0, int64(0)
	err := t.lockAndRead([]query{
		ask(lockEndedApprovals, func(*row) error { approvals++; return nil }, f.Tenant, f.IDs),
		ask(lockEndedActions, func(*row) error { actions++; return nil }, f.Tenant, f.IDs),
	}, ask(countApprovals, func(r *row) error { total = r.Int(); return nil }, f.Tenant, f.IDs))
	return actions == len(f.IDs) && int64(approvals) == total, err
}

const (
	selectPushOf = `SELECT h.tenant, h.id, h.action_id, h.connector, h.idempotency_key, h.digest, h.status, h.attempts,
  h.attempt_base, h.last_error, h.error_code, h.not_before, h.created_at, h.next_attempt, h.picked_at, h.sent_at,
  h.applied_at, h.finished_at, h.generation, h.lease_owner, h.lease_until, h.replays, h.lane, h.target_says,
  h.closed_at, h.closed_by, h.closed_reason, h.put_back
FROM push h WHERE h.action_seq = (SELECT seq FROM action WHERE tenant = $1 AND id = $2)`
	selectMirrorOf = `SELECT tenant, action_id, action_type, connector, operation, target, before_state,
  after_state, digest, external_id, receipt_id, applied_at
FROM mirror WHERE action_seq = (SELECT seq FROM action WHERE tenant = $1 AND id = $2)`
	selectClaims = `SELECT c ->> 0, c ->> 1, (c ->> 2)::bigint, reserved_at, released_at
FROM ceiling_claim CROSS JOIN LATERAL json_array_elements(claims::json) c
WHERE action_seq = (SELECT seq FROM action WHERE tenant = $1 AND id = $2)
ORDER BY (c ->> 0) COLLATE "C", (c ->> 1) COLLATE "C"`
)

// record reads everything that the archive keeps of an action, in one round trip.
func (t *tx) record(tenant, id string) (*gatehouse.Record, error) {
	out := &gatehouse.Record{}
	err := t.read(append(loadQueries(&out.Action, actionName{Tenant: tenant, ID: id}),
		ask(selectPushOf, func(r *row) error { out.Push = shared.ScanPush(r); return nil }, tenant, id),
		ask(receiptsOfAction, func(r *row) (err error) {
			out.Receipts = append(out.Receipts,
				shared.ScanReceipt(r, &err))
			return err
		}, tenant, id),
		ask(`
SELECT number, kind, answers, text, author, author_id, at FROM comment
WHERE tenant = $1 AND seq = (SELECT seq FROM action WHERE tenant = $1 AND id = $2) ORDER BY number`,
			func(r *row) error { // an earlier query has read the action
				comment, err := shared.ScanComment(r)
				out.Action.Comments = append(out.Action.Comments, comment)
				return err
			}, tenant, id),
		ask(selectMirrorOf, func(r *row) (err error) { out.Mirror = shared.ScanMirror(r, &err); return err }, tenant,
			id),
		ask(selectClaims, func(r *row) error {
			out.Claims = append(out.Claims, gatehouse.StoredClaim{Ceiling: r.Text(), Scope: r.Text(), Amount: r.Int(),
				ReservedAt: r.Time(), ReleasedAt: r.TimePtr()})
			return nil
		}, tenant, id),
	)...)
	if err == nil && out.Action == nil {
		err = gatehouse.ErrNotFound
	}
	return out, err
}

const putArchived = `INSERT INTO action_archive (tenant, id, approval_id, push_id, idempotency_key, status,
  action_type, risk, proposer_id, proposed_at, ended_at, archived_at, batch, sha256, document)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`

// moveOut deletes actions from the tables, children first.
var moveOut = [...]string{
	`DELETE FROM mirror WHERE action_seq = ANY (ARRAY(SELECT a.seq FROM unnest($2::text[]) u (id)
CROSS JOIN LATERAL (SELECT seq FROM action WHERE tenant = $1 AND id = u.id LIMIT 1) a))`,
	`DELETE FROM ceiling_claim WHERE action_seq = ANY (ARRAY(SELECT a.seq FROM unnest($2::text[]) u (id)
CROSS JOIN LATERAL (SELECT seq FROM action WHERE tenant = $1 AND id = u.id LIMIT 1) a))`,
	`DELETE FROM receipt WHERE action_seq = ANY (ARRAY(SELECT a.seq FROM unnest($2::text[]) u (id)
CROSS JOIN LATERAL (SELECT seq FROM action WHERE tenant = $1 AND id = u.id LIMIT 1) a))`,
	`DELETE FROM push WHERE action_seq = ANY (ARRAY(SELECT a.seq FROM unnest($2::text[]) u (id)
CROSS JOIN LATERAL (SELECT seq FROM action WHERE tenant = $1 AND id = u.id LIMIT 1) a))`,
	`DELETE FROM vote WHERE seq = ANY (ARRAY(SELECT a.seq FROM unnest($2::text[]) u (id)
CROSS JOIN LATERAL (SELECT seq FROM action WHERE tenant = $1 AND id = u.id LIMIT 1) a))`,
	`DELETE FROM comment WHERE seq = ANY (ARRAY(SELECT a.seq FROM unnest($2::text[]) u (id)
CROSS JOIN LATERAL (SELECT seq FROM action WHERE tenant = $1 AND id = u.id LIMIT 1) a))`,
	`DELETE FROM snooze WHERE seq = ANY (ARRAY(SELECT a.seq FROM unnest($2::text[]) u (id)
CROSS JOIN LATERAL (SELECT seq FROM action WHERE tenant = $1 AND id = u.id LIMIT 1) a))`,
	`DELETE FROM approval WHERE seq = ANY (ARRAY(SELECT a.seq FROM unnest($2::text[]) u (id)
CROSS JOIN LATERAL (SELECT seq FROM action WHERE tenant = $1 AND id = u.id LIMIT 1) a))`,
	`DELETE FROM proposal WHERE seq = ANY (ARRAY(SELECT a.seq FROM unnest($2::text[]) u (id)
CROSS JOIN LATERAL (SELECT seq FROM action WHERE tenant = $1 AND id = u.id LIMIT 1) a))`,
	`WITH w AS (
  DELETE FROM action WHERE seq = ANY (ARRAY(SELECT a.seq FROM unnest($2::text[]) u (id)
  CROSS JOIN LATERAL (SELECT seq FROM action WHERE tenant = $1 AND id = u.id LIMIT 1) a))
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH002') END`,
}

// PutArchived moves actions into the archive.
func (t *tx) PutArchived(list []*gatehouse.Archived) error {
	for _, x := range list {
		if err := t.Owns(x.Tenant); err != nil {
			return err
		}
	}
	if len(list) == 0 {
		return nil
	}
	var packer shared.Packer
	ids := make([]string, len(list))
	for i, a := range list {
		ids[i] = a.ID
		packed, err := packer.Pack(a.Document)
		if err != nil {
			return err
		}
		err = t.Write(putArchived, a.Tenant, a.ID, shared.OrNull(a.ApprovalID), shared.OrNull(a.PushID),
			shared.OrNull(a.IdempotencyKey), string(a.Status),
			a.ActionType, int(a.RiskLevel), a.ProposerID, a.ProposedAt, a.EndedAt, a.ArchivedAt, a.Batch, a.SHA256[:], packed)
		if err != nil {
			return err
		}
	}
	gone, err := t.lockIndexed(ids)
	if err != nil {
		return err
	}
	for _, sql := range moveOut {
		if err := t.Write(sql, list[0].Tenant, ids); err != nil {
			return err
		}
	}
	return t.unindex(gone)
}
