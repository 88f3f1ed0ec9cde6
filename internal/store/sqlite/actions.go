package sqlite

import (
	"errors"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const actionColumns = `
  a.seq, a.tenant, a.id, a.status, a.action_type, a.risk, a.proposer_id, coalesce(a.idempotency_key, ''), a.proposed_at,
  a.decided_by, a.decided_via, a.decided_at, a.finished_at, a.failure_code, a.failure_detail,
  coalesce(a.supersedes, ''), coalesce(a.superseded_by, ''), coalesce(a.reverses, ''), coalesce(a.reversed_by, ''),
  p.revision, p.connector, p.operation, p.entity_type, p.entity_ref, p.entity_refs, p.target_version, p.claimed_risk,
  p.amount, p.currency, p.on_behalf_of, p.expires_in, p.hold, p.digest, p.fingerprint, p.content_hash,
  p.policy_outcome, p.policy_version, p.policy_rules, p.policy_reasons, p.proposed_by, p.rationale,
  p.proposed_change, p.current_state, p.context, p.metadata, p.extra,
  o.id, o.status, o.required, o.roles, o.people, o.excluded, o.expires_at, o.created_at, o.confirm_prompt,
  o.confirm_value, o.groups, o.timing, o.told, o.changed_at, o.changed_version, o.changed_by, o.about,
  o.comments, o.asked, o.answered, o.assignee_id, o.assignee, o.evaluated`

const (
	findAction = `SELECT` + actionColumns + `
  FROM action a JOIN proposal p ON p.seq = a.seq LEFT JOIN approval o ON o.seq = a.seq
  WHERE a.tenant = ? AND a.id = ?`
	findActionByKey = `SELECT` + actionColumns + `
  FROM action a JOIN proposal p ON p.seq = a.seq LEFT JOIN approval o ON o.seq = a.seq
  WHERE a.tenant = ? AND a.idempotency_key = ?`
	findByApproval = `SELECT` + actionColumns + `
FROM approval o JOIN action a ON a.seq = o.seq JOIN proposal p ON p.seq = a.seq
WHERE o.tenant = ? AND o.id = ?`
	findActions = `SELECT` + actionColumns + `
  FROM action a JOIN proposal p ON p.seq = a.seq LEFT JOIN approval o ON o.seq = a.seq
  WHERE a.seq IN (SELECT value FROM json_each(?))`
)

// scanned is an action and its row number.
type scanned struct {
	seq    int64
	action *gatehouse.Action
}

// scanAction reads a row of actionColumns. The caller then reads the votes and calls applyExpiry.
func (t *readTx) scanAction(r *stmt) (row scanned, err error) {
	row.seq = r.Int()
	row.action, err = shared.ScanAction(r)
	return row, err
}

// applyExpiry sets the fields of an action that depend on the clock; see [gatehouse.Action.See]. If the caller reads
// the stored state, the status stays the stored one.
func (t *readTx) applyExpiry(a *gatehouse.Action) {
	if t.asStored {
		a.Approval.See(t.at)
		return
	}
	a.See(t.at)
}

// FindAction finds an action by its id or by the id of its approval.
func (t *readTx) FindAction(id string) (*gatehouse.Action, error) {
	row, err := t.find(t.tenant, id)
	return row.action, err
}

// FindActions finds actions one by one, which costs no round trips.
func (t *readTx) FindActions(ids []string) (map[string]*gatehouse.Action, error) {
	found := make(map[string]*gatehouse.Action, len(ids))
	for _, id := range ids {
		switch a, err := t.FindAction(id); {
		case err == nil:
			found[id] = a
		case !errors.Is(err, gatehouse.ErrNotFound):
			return nil, err
		}
	}
	return found, nil
}

func (t *readTx) find(tenant, id string) (scanned, error) {
	first, second := findAction, findByApproval
	if strings.HasPrefix(id, "apr_") {
		first, second = second, first
	}
	row, err := t.load(first, tenant, id)
	if err == gatehouse.ErrNotFound { //nolint:errorlint // load does not wrap it
		row, err = t.load(second, tenant, id)
	}
	return t.orArchived(shared.ArchivedByID, tenant, id, row, err)
}

// FindActionByKey finds an action by its idempotency key.
func (t *readTx) FindActionByKey(key string) (*gatehouse.Action, error) {
	row, err := t.load(findActionByKey, t.tenant, key)
	row, err = t.orArchived(archivedByKey, t.tenant, key, row, err)
	return row.action, err
}

func (t *readTx) load(sql, tenant, key string) (row scanned, err error) {
	err = t.one(sql, func(r *stmt) (err error) { row, err = t.scanAction(r); return err }, tenant, key)
	if err != nil {
		return scanned{}, err
	}
	a := row.action
	if a.Approval != nil {
		if a.Approval.Votes, err = t.votes(row.seq); err != nil {
			return scanned{}, err
		}
		t.applyExpiry(a)
	}
	if a.Status == gatehouse.StatusPending {
		return row, nil // a pending action has no push yet
	}
	if err := t.attachPush(row); err != nil {
		return scanned{}, err
	}
	return row, nil
}

// ExpiredActions lists the overdue pending actions of all tenants.
func (t *readTx) ExpiredActions(limit int) ([]gatehouse.ActionRef, error) {
	return t.actionRefs(`SELECT tenant, id FROM action WHERE status = 'pending' AND expires_at <= ?
ORDER BY expires_at LIMIT ?`, limit)
}

// ActionsWithDueMoments lists the actions of all tenants whose question has reached a stage, reminder or
// extension that is not in the log yet.
func (t *readTx) ActionsWithDueMoments(limit int) ([]gatehouse.ActionRef, error) {
	return t.actionRefs(`SELECT a.tenant, a.id FROM approval o INDEXED BY approval_next JOIN action a ON a.seq = o.seq
WHERE o.next_at IS NOT NULL AND o.status = 'requested' AND o.next_at <= ? ORDER BY o.next_at LIMIT ?`, limit)
}

// HeldRejections lists the actions of all tenants whose held rejection is due.
func (t *readTx) HeldRejections(limit int) ([]gatehouse.ActionRef, error) {
	return t.actionRefs(`SELECT a.tenant, a.id FROM approval o INDEXED BY approval_rejects JOIN action a ON a.seq = o.seq
WHERE o.rejects_at IS NOT NULL AND o.status = 'requested' AND o.rejects_at <= ? ORDER BY o.rejects_at LIMIT ?`, limit)
}

// actionRefs runs a query for up to limit actions that are due now.
func (t *readTx) actionRefs(sql string, limit int) (refs []gatehouse.ActionRef, err error) {
	err = t.each(sql,
		func(r *stmt) error {
			refs = append(refs, gatehouse.ActionRef{Tenant: r.Text(), ID: r.Text()})
			return nil
		}, t.at, limit)
	return refs, err
}

const openOnTarget = `SELECT a.id FROM action a JOIN proposal p ON p.seq = a.seq JOIN approval o ON o.seq = a.seq
WHERE a.tenant = ?1 AND a.status = 'pending' AND a.expires_at > ?2 AND o.status = 'requested'
AND (p.connector = ?3 AND p.entity_type = ?4 AND (p.entity_ref = ?5 OR instr(p.entity_refs, ?8) > 0)
    AND (?6 = '' OR p.target_version <> ?6)
  OR instr(o.about, ?9) = 1 AND (?6 = '' OR instr(o.about, ?10) = 0))
AND (o.changed_at IS NULL OR o.changed_version <> ?6) ORDER BY a.id LIMIT ?7`

// OpenOnTarget finds the open actions that a change of a target affects, by a scan of all pending actions of the
// tenant. The entities of a target are stored as the text of a list: each is quoted, and quotes inside it are escaped.
func (t *readTx) OpenOnTarget(c gatehouse.TargetChange, limit int) (ids []string, err error) {
	err = t.each(openOnTarget, func(r *stmt) error { ids = append(ids, r.Text()); return nil },
		t.tenant, t.at, c.Connector, c.EntityType, c.EntityRef, c.Version, limit,
		string(shared.AppendQuoted(nil, c.EntityRef)),
		shared.AboutEntity(&c), shared.AboutVersion(&c))
	return ids, err
}

// OpenReversal finds the reversal of an action, if the reversal is in progress or applied.
func (t *readTx) OpenReversal(actionID string) (id string, err error) {
	err = t.each(`SELECT id FROM action WHERE tenant = ? AND reverses = ?
AND status NOT IN ('rejected', 'denied', 'expired', 'canceled', 'superseded', 'failed')
AND NOT (status = 'pending' AND expires_at <= ?) ORDER BY id DESC LIMIT 1`,
		func(r *stmt) error { id = r.Text(); return nil }, t.tenant, actionID, t.at)
	return id, err
}

// InsertAction stores a proposed action and its approval.
func (t *tx) InsertAction(a *gatehouse.Action) error {
	if err := t.Owns(a.Tenant); err != nil {
		return err
	}
	if !gatehouse.Status("").CanMove(a.Status) {
		return gatehouse.ErrConflict
	}
	if err := t.keyIsFree(a); err != nil {
		return err
	}
	var expires *time.Time
	if a.Approval != nil {
		end := a.Approval.End()
		expires = &end
	}
	code, detail := shared.FailureArgs(a.Failure)
	_, err := t.exec(
		`INSERT INTO action (tenant, id, status, action_type, risk, proposer_id, idempotency_key, proposed_at, expires_at,
decided_by, decided_via, decided_at, finished_at, failure_code, failure_detail, supersedes, superseded_by, reverses,
  reversed_by)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		a.Tenant, a.ID, string(a.Status), a.ActionType, int(a.RiskLevel), a.ProposerID, shared.OrNull(a.IdempotencyKey),
		a.ProposedAt, expires,
		a.DecidedBy, string(a.DecidedVia), a.DecidedAt, a.FinishedAt, code, detail,
		shared.OrNull(a.Supersedes), shared.OrNull(a.Superseded), shared.OrNull(a.Reverses),
		shared.OrNull(a.ReversedBy))
	if err != nil {
		return err
	}
	seq := t.c.lastRow()
	t.remember(seq, a)
	if err := t.insertProposal(seq, a); err != nil {
		return err
	}
	if a.Approval != nil {
		return t.insertApproval(seq, a)
	}
	return nil
}

func (t *tx) insertProposal(seq int64, a *gatehouse.Action) error {
	extra, err := shared.EncodeExtra(a)
	if err != nil {
		return err
	}
	var amount, currency any
	if a.Magnitude != nil {
		amount, currency = string(a.Magnitude.Amount), a.Magnitude.Currency
	}
	_, err = t.exec(
		`INSERT INTO proposal (seq, tenant, revision, connector, operation, entity_type, entity_ref, entity_refs,
target_version, claimed_risk, amount, currency, on_behalf_of, expires_in, hold, digest, fingerprint, content_hash,
policy_outcome, policy_version, policy_rules, policy_reasons, proposed_by, rationale,
proposed_change, current_state, context, metadata, extra)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		seq, a.Tenant, a.Revision, a.Connector, a.Operation, a.Target.EntityType, a.Target.EntityRef,
		shared.EncodeList(a.Target.EntityRefs),
		a.Target.Version, int(a.ClaimedRisk), amount, currency, a.OnBehalfOf, int64(a.ExpiresIn), int64(a.HoldFor),
		string(a.Digest), a.Fingerprint, a.ContentHash[:],
		string(a.Policy.Outcome), a.Policy.Version, shared.EncodeList(a.Policy.Rules),
		shared.EncodeList(a.Policy.Reasons),
		a.ProposedBy, a.Rationale, a.ProposedChange, a.CurrentState, a.Context, a.Metadata, extra)
	return err
}

// decideKnown applies a decision to a pending action whose row number is known; see knownAction.
const decideKnown = `UPDATE OR ROLLBACK action
SET status = ?, decided_by = ?, decided_via = ?, decided_at = ?, finished_at = ?
WHERE seq = ? AND status = 'pending'`

// Only moveReversed writes the column reversed_by, and so checks its foreign key.
const (
	moveReversed = `UPDATE OR ROLLBACK action SET status = ?1,
  decided_by = CASE WHEN ?2 = '' THEN decided_by ELSE ?2 END,
  decided_via = CASE WHEN ?3 = '' THEN decided_via ELSE ?3 END,
  decided_at = coalesce(?4, decided_at),
  finished_at = CASE WHEN ?1 IN ('approved', 'pushing') THEN NULL ELSE coalesce(?5, finished_at) END,
  failure_code = CASE WHEN ?6 IS NOT NULL THEN ?6 WHEN status = 'failed' THEN NULL ELSE failure_code END,
  failure_detail = CASE WHEN ?6 IS NOT NULL THEN ?7 WHEN status = 'failed' THEN NULL ELSE failure_detail END,
  reversed_by = ?10
WHERE seq = ?8 AND status = ?9`
	moveOther = `UPDATE OR ROLLBACK action SET status = ?1,
  decided_by = CASE WHEN ?2 = '' THEN decided_by ELSE ?2 END,
  decided_via = CASE WHEN ?3 = '' THEN decided_via ELSE ?3 END,
  decided_at = coalesce(?4, decided_at),
  finished_at = CASE WHEN ?1 IN ('approved', 'pushing') THEN NULL ELSE coalesce(?5, finished_at) END,
  failure_code = CASE WHEN ?6 IS NOT NULL THEN ?6 WHEN status = 'failed' THEN NULL ELSE failure_code END,
  failure_detail = CASE WHEN ?6 IS NOT NULL THEN ?7 WHEN status = 'failed' THEN NULL ELSE failure_detail END
WHERE seq = ?8 AND status = ?9`
	// moveOn is moveOther for a move that writes only the status and finished_at.
	moveOn = `UPDATE OR ROLLBACK action SET status = ?1,
  finished_at = CASE WHEN ?1 IN ('approved', 'pushing') THEN NULL ELSE coalesce(?2, finished_at) END
WHERE seq = ?3 AND status = ?4`
)

// MoveAction makes one guarded transition. A replay makes a finished action
// active again and clears its finish time.
func (t *tx) MoveAction(m gatehouse.ActionMove) (err error) {
	if !m.From.CanMove(m.To) {
		return gatehouse.ErrConflict
	}
	var decided, finished *time.Time
	if m.Decided {
		decided = &t.at
		if !m.DecidedAt.IsZero() {
			decided = &m.DecidedAt
		}
	}
	if m.Finished {
		finished = &t.at
	}
	seq, err := t.rowOf(t.tenant, m.ID)
	if err != nil {
		return err
	}
	// The status is unknown until the statement has succeeded.
	t.known.status = ""
	defer func() {
		if err == nil {
			t.known.status = m.To
		}
	}()
	if shared.HasEnded(m.To) {
		defer func() { err = t.wakeAfter(err, m) }()
	}
	if m.From == gatehouse.StatusPending && m.Decided && m.DecidedBy != "" && m.DecidedVia != "" && m.Failure == nil &&
		m.ReversedBy == "" {
		return t.guarded(decideKnown, string(m.To), m.DecidedBy, string(m.DecidedVia), decided, finished, seq)
	}
	if plain := (gatehouse.ActionMove{ID: m.ID, From: m.From, To: m.To, Finished: m.Finished}); m == plain &&
		m.From != gatehouse.StatusFailed {
		return t.guarded(moveOn, string(m.To), finished, seq, string(m.From))
	}
	code, detail := shared.FailureArgs(m.Failure)
	args := []any{string(m.To), m.DecidedBy, string(m.DecidedVia), decided, finished, code, detail, seq, string(m.From)}
	if m.ReversedBy != "" {
		return t.guarded(moveReversed, append(args, m.ReversedBy)...)
	}
	return t.guarded(moveOther, args...)
}

// guarded runs a statement, and returns ErrConflict if it changes no row.
func (t *readTx) guarded(sql string, args ...any) error {
	n, err := t.exec(sql, args...)
	if err == nil && n == 0 {
		return gatehouse.ErrConflict
	}
	return err
}

// execOrNotFound runs a statement, and returns ErrNotFound if it changes no row.
func (t *readTx) execOrNotFound(sql string, args ...any) error {
	n, err := t.exec(sql, args...)
	if err == nil && n == 0 {
		return gatehouse.ErrNotFound
	}
	return err
}

// LinkSuperseded records which revision replaced an action.
func (t *tx) LinkSuperseded(oldID, newID string) error {
	return t.execOrNotFound(`UPDATE action SET superseded_by = ? WHERE tenant = ? AND id = ?`, newID, t.tenant, oldID)
}
