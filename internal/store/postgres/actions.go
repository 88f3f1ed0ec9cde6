package postgres

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// actionName names an action: by its id or its approval's id in ID, or by its idempotency key in Key. The other
// field is "", which no row has.
type actionName struct{ Tenant, ID, Key string }

// findActions finds actions, each as one row with its proposal, its approval, its push, and its latest
// receipt that is not late.
var findActions = reads[actionName](`
SELECT r.n, a.tenant, a.id, a.status, a.action_type, a.risk, a.proposer_id, coalesce(a.idempotency_key, ''),
  a.proposed_at, a.decided_by, a.decided_via, a.decided_at, a.finished_at, a.failure_code, a.failure_detail,
  coalesce(a.supersedes, ''), coalesce(a.superseded_by, ''), coalesce(a.reverses, ''), coalesce(a.reversed_by, ''),
  p.revision, p.connector, p.operation, p.entity_type, p.entity_ref, p.entity_refs, p.target_version,
  p.claimed_risk, p.amount, p.currency, p.on_behalf_of, p.expires_in, p.hold, p.digest, p.fingerprint,
  p.content_hash, p.policy_outcome, p.policy_version, p.policy_rules, p.policy_reasons, p.proposed_by,
  p.rationale, p.proposed_change, p.current_state, p.context, p.metadata, p.extra,
  o.id, o.status, o.required, o.roles, o.people, o.excluded, o.expires_at, o.created_at,
  o.confirm_prompt, o.confirm_value, o.groups, o.timing, o.told, o.changed_at, o.changed_version, o.changed_by,
  o.about, o.comments, o.asked, o.answered, o.assignee_id, o.assignee, o.evaluated,
  h.tenant, h.id, h.action_id, h.connector, h.idempotency_key, h.digest, h.status, h.attempts, h.attempt_base,
  h.last_error, h.error_code, h.not_before, h.created_at, h.next_attempt, h.picked_at, h.sent_at, h.applied_at,
  h.finished_at, h.generation, h.lease_owner, h.lease_until, h.replays, h.lane, h.target_says, h.closed_at,
  h.closed_by, h.closed_reason, h.put_back,
  c.tenant, c.id, c.action_id, c.push_id, c.idempotency_key, c.attempt, c.generation, c.outcome, c.error_code,
  c.error, c.external_id, c.reversible, c.late, c.source, c.at, c.request_metadata, c.response_metadata, c.reversal
FROM (
  SELECT tenant, ($2::text[])[n] AS id, ($3::text[])[n] AS key, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $4
) r
CROSS JOIN LATERAL (
  SELECT * FROM action
  WHERE action.seq = (
    SELECT seq FROM action WHERE tenant = r.tenant AND id = r.id
    UNION ALL SELECT seq FROM approval WHERE tenant = r.tenant AND id = r.id
    UNION ALL SELECT seq FROM action WHERE tenant = r.tenant AND idempotency_key = r.key LIMIT 1)
  OFFSET 0
) a
CROSS JOIN LATERAL (SELECT * FROM proposal WHERE proposal.seq = a.seq OFFSET 0) p
LEFT JOIN LATERAL (SELECT * FROM approval WHERE approval.seq = a.seq OFFSET 0) o ON true
LEFT JOIN LATERAL (SELECT * FROM push WHERE push.action_seq = a.seq OFFSET 0) h ON true
LEFT JOIN LATERAL (
  SELECT * FROM receipt WHERE receipt.action_seq = h.action_seq AND NOT late ORDER BY seq DESC LIMIT 1
) c ON true`)

// lockActions locks the approvals of actions, by the id of the action or of its approval. An
// action without an approval is locked itself.
var lockActions = locks[idRow](`
SELECT r.n
FROM (
  SELECT tenant, ($2::text[])[n] AS id, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $3
) r
CROSS JOIN LATERAL (
  SELECT seq FROM action WHERE tenant = r.tenant AND id = r.id
  UNION ALL SELECT seq FROM approval WHERE tenant = r.tenant AND id = r.id LIMIT 1
) s
CROSS JOIN LATERAL (
  SELECT 1 FROM (SELECT 1 FROM approval WHERE approval.seq = s.seq FOR NO KEY UPDATE /* SKIP LOCKED */) o
  UNION ALL SELECT 1 FROM (
    SELECT 1 FROM action WHERE action.seq = s.seq
      AND NOT EXISTS (SELECT 1 FROM approval WHERE approval.seq = action.seq) FOR NO KEY UPDATE /* SKIP LOCKED */
  ) a
) l`)

// openActions locks the approvals of actions and reads both, for actions that are still open: they have no
// push. After a wait for the lock, the approval is current, and the other rows are from the start of the
// statement.
var openActions = reads[idRow](`
SELECT r.n, a.tenant, a.id, a.status, a.action_type, a.risk, a.proposer_id, coalesce(a.idempotency_key, ''),
  a.proposed_at, a.decided_by, a.decided_via, a.decided_at, a.finished_at, a.failure_code, a.failure_detail,
  coalesce(a.supersedes, ''), coalesce(a.superseded_by, ''), coalesce(a.reverses, ''), coalesce(a.reversed_by, ''),
  p.revision, p.connector, p.operation, p.entity_type, p.entity_ref, p.entity_refs, p.target_version,
  p.claimed_risk, p.amount, p.currency, p.on_behalf_of, p.expires_in, p.hold, p.digest, p.fingerprint,
  p.content_hash, p.policy_outcome, p.policy_version, p.policy_rules, p.policy_reasons, p.proposed_by,
  p.rationale, p.proposed_change, p.current_state, p.context, p.metadata, p.extra,
  o.id, o.status, o.required, o.roles, o.people, o.excluded, o.expires_at, o.created_at,
  o.confirm_prompt, o.confirm_value, o.groups, o.timing, o.told, o.changed_at, o.changed_version, o.changed_by,
  o.about, o.comments, o.asked, o.answered, o.assignee_id, o.assignee, o.evaluated, NULL::text
FROM (
  SELECT tenant, ($2::text[])[n] AS id, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $3
) r
CROSS JOIN LATERAL (
  SELECT * FROM approval
  WHERE approval.seq = (
    SELECT seq FROM action WHERE tenant = r.tenant AND id = r.id
    UNION ALL SELECT seq FROM approval WHERE tenant = r.tenant AND id = r.id LIMIT 1)
  FOR NO KEY UPDATE /* SKIP LOCKED */
) o
CROSS JOIN LATERAL (SELECT * FROM action WHERE action.seq = o.seq OFFSET 0) a
CROSS JOIN LATERAL (SELECT * FROM proposal WHERE proposal.seq = a.seq OFFSET 0) p`)

// scanAction reads a row of findActions or openActions.
func scanAction(r *row) (a *gatehouse.Action, err error) {
	a, err = shared.ScanAction(r)
	if r.Null() {
		return a, err // there is no push
	}
	a.SetPush(shared.ScanPush(r))
	if !r.Null() {
		a.Receipt = shared.ScanReceipt(r, &err)
	}
	return a, err
}

// applyExpiry sets the fields of an action that depend on the clock; see [gatehouse.Action.See].
func (t *readTx) applyExpiry(a *gatehouse.Action) { a.See(t.Now()) }

// refreshApproval sets the clock-dependent fields of a stored approval.
func (t *readTx) refreshApproval(a *gatehouse.Action) {
	if a.Approval != nil {
		a.Approval.See(t.Now())
	}
}

// loadQueries returns the queries that load an action as stored.
func loadQueries(a **gatehouse.Action, name actionName) []query {
	return []query{
		findActions.ask(func(r *row) (err error) { *a, err = scanAction(r); return err }, name),
		findVotes.ask(func(r *row) error {
			(*a).Approval.Votes = append((*a).Approval.Votes, shared.ScanVote(r))
			return nil
		}, name),
	}
}

// loadAction loads an action as stored, after the locks.
func (t *readTx) loadAction(locks []query, id string) (a *gatehouse.Action, err error) {
	err = t.lockAndRead(locks, loadQueries(&a, actionName{Tenant: t.tenant, ID: id})...)
	if err == nil && a == nil {
		return nil, gatehouse.ErrNotFound
	}
	return a, err
}

// FindAction finds an action by its id or its approval's id.
func (t *readTx) FindAction(id string) (*gatehouse.Action, error) {
	a, err := t.withExpiry(t.loadAction(nil, id))
	return t.orArchived(id, a, t.tenant, err)
}

// FindActions finds actions in one round trip, and the archived ones in another.
func (t *readTx) FindActions(ids []string) (map[string]*gatehouse.Action, error) {
	found := make(map[string]*gatehouse.Action, len(ids))
	if len(ids) == 0 {
		return found, nil
	}
	list, queries := make([]*gatehouse.Action, len(ids)), make([]query, 0, 2*len(ids))
	for i, id := range ids {
		queries = append(queries, loadQueries(&list[i], actionName{Tenant: t.tenant, ID: id})...)
	}
	if err := t.read(queries...); err != nil {
		return nil, err
	}
	var missing []string
	for i, a := range list {
		if a == nil {
			missing = append(missing, ids[i])
			continue
		}
		t.applyExpiry(a)
		found[ids[i]] = a
	}
	return found, t.addArchived(found, missing)
}

// byKey is the action, or the archived action, with an idempotency key. One round trip looks in
// both places, since usually neither has the key.
type byKey struct {
	action   *gatehouse.Action
	archived *gatehouse.Archived
}

func (k *byKey) queries(tenant, key string) []query {
	return append(loadQueries(&k.action, actionName{Tenant: tenant, Key: key}),
		findArchivedByKey.ask(func(r *row) (err error) { k.archived, err = shared.ScanArchived(r); return err },
			keyRow{tenant, key}))
}

// FindActionByKey finds an action by its idempotency key.
func (t *readTx) FindActionByKey(key string) (*gatehouse.Action, error) {
	var k byKey
	if err := t.read(k.queries(t.tenant, key)...); err != nil {
		return nil, err
	}
	return t.sameKey(key, &k)
}

// sameKey returns the action that the queries of a key have found.
func (t *readTx) sameKey(key string, k *byKey) (*gatehouse.Action, error) {
	switch {
	case k.action != nil:
		return t.withExpiry(k.action, nil)
	case k.archived != nil:
		return actionOf(k.archived, nil)
	}
	t.freeKey = keyRow{t.tenant, key}
	return nil, gatehouse.ErrNotFound
}

func (t *readTx) withExpiry(a *gatehouse.Action, err error) (*gatehouse.Action, error) {
	if err == nil {
		t.applyExpiry(a)
	}
	return a, err
}

// LockAction is FindAction with a lock and the stored status: a pending action past its expiry is still pending
// here, as the guard of MoveAction sees it.
func (t *tx) LockAction(id string) (*gatehouse.Action, error) {
	if t.opening.likelyOpen && !t.begun {
		if a, err := t.lockOpen(id); a != nil || err != nil {
			return a, err
		}
	}
	a, err := t.loadAction([]query{lockActions.ask(nil, idRow{t.tenant, id})}, id)
	if err != nil {
		return t.orArchived(id, nil, t.tenant, err)
	}
	t.refreshApproval(a)
	return a, t.claimLocked(a)
}

// lockOpen is LockAction for an action that is still open, in fewer statements. While an approval is
// requested, only its votes can have changed during a wait for the lock, and they are read after it. It
// returns nil if the action is not open.
func (t *tx) lockOpen(id string) (a *gatehouse.Action, err error) {
	var votes []gatehouse.Vote
	err = t.lockAndRead(
		[]query{openActions.ask(func(r *row) (err error) { a, err = scanAction(r); return err }, idRow{t.tenant, id})},
		findVotes.ask(func(r *row) error { votes = append(votes, shared.ScanVote(r)); return nil },
			actionName{Tenant: t.tenant, ID: id}))
	if err != nil || a == nil || a.Status != gatehouse.StatusPending ||
		a.Approval.Status != gatehouse.ApprovalRequested {
		return nil, err
	}
	a.Approval.Votes = votes
	t.refreshApproval(a)
	return a, t.claimLocked(a)
}

// expiryMark reads the low mark of expiryScan (see scanStart): the first expiry of a pending action. An
// action expires no earlier than the start of the transaction that proposes it.
const expiryMark = `SELECT (SELECT expires_at FROM action WHERE status = 'pending' ORDER BY expires_at LIMIT 1)`

func (t *readTx) expired(sql string, limit int) (refs []gatehouse.ActionRef, err error) {
	from, err := t.scanFrom(&t.s.expiryScan)
	if err != nil {
		return nil, err
	}
	err = t.scanRead(&t.s.expiryScan, ask(sql, func(r *row) error {
		refs = append(refs, gatehouse.ActionRef{Tenant: r.Text(), ID: r.Text()})
		return nil
	}, t.Now(), limit, from[0]))
	return refs, err
}

// ExpiredActions lists the actions, of all tenants, that the sweeper has to expire.
func (t *readTx) ExpiredActions(limit int) ([]gatehouse.ActionRef, error) {
	defer t.AllTenants()()
	return t.expired(`SELECT tenant, id FROM action WHERE status = 'pending' AND expires_at <= $1 AND expires_at >= $3
ORDER BY expires_at LIMIT $2`, limit)
}

// ExpiredActions in a writing transaction locks the approvals that it lists. It skips those
// that are locked by another sweeper or by a decision under way.
func (t *tx) ExpiredActions(limit int) ([]gatehouse.ActionRef, error) {
	defer t.AllTenants()()
	return t.expired(`SELECT a.tenant, a.id FROM action a JOIN approval o ON o.seq = a.seq
WHERE a.status = 'pending' AND a.expires_at <= $1 AND a.expires_at >= $3 AND o.status = 'requested'
ORDER BY a.expires_at LIMIT $2 FOR NO KEY UPDATE OF o SKIP LOCKED`, limit)
}

func (t *readTx) actionRefs(sql string, limit int) (refs []gatehouse.ActionRef, err error) {
	err = t.each(sql, func(r *row) error {
		refs = append(refs, gatehouse.ActionRef{Tenant: r.Text(), ID: r.Text()})
		return nil
	}, t.Now(), limit)
	return refs, err
}

// ActionsWithDueMoments lists the actions, of all tenants, whose approval has begun a stage, reminder or
// extension that is not in the log yet.
func (t *readTx) ActionsWithDueMoments(limit int) ([]gatehouse.ActionRef, error) {
	defer t.AllTenants()()
	return t.actionRefs(`SELECT a.tenant, a.id FROM approval o JOIN action a ON a.seq = o.seq
WHERE o.next_at IS NOT NULL AND o.status = 'requested' AND o.next_at <= $1 ORDER BY o.next_at LIMIT $2`, limit)
}

// ActionsWithDueMoments in a writing transaction locks the approvals that it lists, and skips locked
// ones.
func (t *tx) ActionsWithDueMoments(limit int) ([]gatehouse.ActionRef, error) {
	defer t.AllTenants()()
	return t.actionRefs(`SELECT a.tenant, a.id FROM approval o JOIN action a ON a.seq = o.seq
WHERE o.next_at IS NOT NULL AND o.status = 'requested' AND o.next_at <= $1 ORDER BY o.next_at LIMIT $2
FOR NO KEY UPDATE OF o SKIP LOCKED`, limit)
}

// HeldRejections lists the actions, of all tenants, whose held rejection is due.
func (t *readTx) HeldRejections(limit int) ([]gatehouse.ActionRef, error) {
	defer t.AllTenants()()
	return t.actionRefs(`SELECT a.tenant, a.id FROM approval o JOIN action a ON a.seq = o.seq
WHERE o.rejects_at IS NOT NULL AND o.status = 'requested' AND o.rejects_at <= $1 ORDER BY o.rejects_at LIMIT $2`, limit)
}

// HeldRejections in a writing transaction locks the approvals that it lists, and skips locked
// ones.
func (t *tx) HeldRejections(limit int) ([]gatehouse.ActionRef, error) {
	defer t.AllTenants()()
	return t.actionRefs(`SELECT a.tenant, a.id FROM approval o JOIN action a ON a.seq = o.seq
WHERE o.rejects_at IS NOT NULL AND o.status = 'requested' AND o.rejects_at <= $1 ORDER BY o.rejects_at LIMIT $2
FOR NO KEY UPDATE OF o SKIP LOCKED`, limit)
}

const openOnTarget = `SELECT a.id FROM action a JOIN proposal p ON p.seq = a.seq JOIN approval o ON o.seq = a.seq
WHERE a.tenant = $1 AND a.status = 'pending' AND a.expires_at > $2 AND o.status = 'requested'
AND (p.connector = $3 AND p.entity_type = $4 AND (p.entity_ref = $5 OR strpos(p.entity_refs, $8) > 0)
    AND ($6 = '' OR p.target_version <> $6)
  OR starts_with(o.about, $9) AND ($6 = '' OR strpos(o.about, $10) = 0))
AND (o.changed_at IS NULL OR o.changed_version <> $6) ORDER BY a.id LIMIT $7`

// OpenOnTarget examines all pending actions of the tenant. entity_refs is a JSON list as text:
// each key is quoted, and quotes within a key are escaped.
func (t *readTx) OpenOnTarget(c gatehouse.TargetChange, limit int) (ids []string, err error) {
	err = t.each(openOnTarget, func(r *row) error { ids = append(ids, r.Text()); return nil },
		t.tenant, t.Now(), c.Connector, c.EntityType, c.EntityRef, c.Version, limit,
		string(shared.AppendQuoted(nil, c.EntityRef)),
		shared.AboutEntity(&c), shared.AboutVersion(&c))
	return ids, err
}

// OpenReversal finds a reversal, under way or done, of an action.
func (t *readTx) OpenReversal(actionID string) (id string, err error) {
	err = t.each(`SELECT id FROM action WHERE tenant = $1 AND reverses = $2
AND status NOT IN ('rejected', 'denied', 'expired', 'canceled', 'superseded', 'failed')
AND NOT (status = 'pending' AND expires_at <= $3) ORDER BY id DESC LIMIT 1`,
		func(r *row) error { id = r.Text(); return nil }, t.tenant, actionID, t.Now())
	return id, err
}

// moveRow is a guarded move of an action.
type moveRow struct {
	Tenant                string
	ID                    string
	From, To              gatehouse.Status
	DecidedBy             string
	DecidedVia            gatehouse.Channel
	DecidedAt, FinishedAt *time.Time
	Failure               *failure
}

var moveActions = writes[moveRow](rankMove, "ID", `
WITH r AS (
  SELECT tenant, ($2::text[])[n] AS id, ($3::text[])[n] AS "from", ($4::text[])[n] AS "to",
    ($5::text[])[n] AS decided_by, ($6::text[])[n] AS decided_via, ($7::bigint[])[n] AS decided_at,
    ($8::bigint[])[n] AS finished_at, ($9::text[])[n] AS failure_code, ($10::text[])[n] AS failure_detail, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $11
),
w AS (
  UPDATE action SET status = r."to",
    decided_by = CASE WHEN r.decided_by = '' THEN action.decided_by ELSE r.decided_by END,
    decided_via = CASE WHEN r.decided_via = '' THEN action.decided_via ELSE r.decided_via END,
    decided_at = coalesce(r.decided_at, action.decided_at),
    finished_at = CASE
      WHEN r."to" IN ('approved', 'pushing') THEN NULL
      ELSE coalesce(r.finished_at, action.finished_at)
    END,
    failure_code = CASE
      WHEN r.failure_code IS NOT NULL THEN r.failure_code
      WHEN action.status <> 'failed' THEN action.failure_code
    END,
    failure_detail = CASE
      WHEN r.failure_code IS NOT NULL THEN r.failure_detail
      WHEN action.status <> 'failed' THEN action.failure_detail
    END
  FROM r WHERE action.tenant = r.tenant AND action.id = r.id AND action.status = r."from"
  RETURNING 1
)
SELECT CASE WHEN (SELECT count(*) FROM w) = $11 THEN 0 ELSE gatehouse_refuse('GH001') END`)

// reversalRow is the move of an action that another action reverses.
type reversalRow struct {
	moveRow
	ReversedBy string
}

// moveReversals is moveActions with reversed_by. Writing that column checks its foreign key, so other moves
// do not write it.
var moveReversals = writes[reversalRow](rankMove, "ID", `
WITH r AS (
  SELECT tenant, ($2::text[])[n] AS id, ($3::text[])[n] AS "from", ($4::text[])[n] AS "to",
    ($5::text[])[n] AS decided_by, ($6::text[])[n] AS decided_via, ($7::bigint[])[n] AS decided_at,
    ($8::bigint[])[n] AS finished_at, ($9::text[])[n] AS failure_code, ($10::text[])[n] AS failure_detail,
    ($11::text[])[n] AS reversed_by, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $12
),
w AS (
  UPDATE action SET status = r."to", reversed_by = r.reversed_by,
    decided_by = CASE WHEN r.decided_by = '' THEN action.decided_by ELSE r.decided_by END,
    decided_via = CASE WHEN r.decided_via = '' THEN action.decided_via ELSE r.decided_via END,
    decided_at = coalesce(r.decided_at, action.decided_at),
    finished_at = CASE
      WHEN r."to" IN ('approved', 'pushing') THEN NULL
      ELSE coalesce(r.finished_at, action.finished_at)
    END,
    failure_code = CASE
      WHEN r.failure_code IS NOT NULL THEN r.failure_code
      WHEN action.status <> 'failed' THEN action.failure_code
    END,
    failure_detail = CASE
      WHEN r.failure_code IS NOT NULL THEN r.failure_detail
      WHEN action.status <> 'failed' THEN action.failure_detail
    END
  FROM r WHERE action.tenant = r.tenant AND action.id = r.id AND action.status = r."from"
  RETURNING 1
)
SELECT CASE WHEN (SELECT count(*) FROM w) = $12 THEN 0 ELSE gatehouse_refuse('GH001') END`)

// MoveAction is one guarded transition. A move to approved or pushing, as in a replay, clears
// the finish time.
func (t *tx) MoveAction(m gatehouse.ActionMove) error {
	if !m.From.CanMove(m.To) {
		return gatehouse.ErrConflict
	}
	var decided, finished *time.Time
	if m.Decided {
		decided = new(t.Now())
		if !m.DecidedAt.IsZero() {
			decided = &m.DecidedAt
		}
	}
	if m.Finished {
		finished = new(t.Now())
	}
	r := moveRow{
		t.tenant, m.ID, m.From, m.To, m.DecidedBy, m.DecidedVia, decided, finished, failureOf(m.Failure),
	}
	var err error
	if m.ReversedBy == "" {
		err = moveActions.write(t, r)
	} else {
		err = moveReversals.write(t, reversalRow{r, m.ReversedBy})
	}
	if err == nil && shared.HasEnded(m.To) {
		err = wakeActionSteps.write(t, idRow{t.tenant, m.ID})
	}
	return err
}

// wakeActionSteps wakes the steps that wait for actions, by the actions' ids.
var wakeActionSteps = writes[idRow](rankWake, "", `
WITH r AS (
  SELECT tenant, ($2::text[])[n] AS id, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $3
)
INSERT INTO step_wake (step_seq, tenant, run_id, step_id)
SELECT s.seq, s.tenant, s.run_id, s.id
FROM r CROSS JOIN LATERAL (
  SELECT * FROM step
  WHERE tenant = r.tenant AND action_id = r.id AND action_id IS NOT NULL AND status = 'waiting_approval' OFFSET 0
) s
ON CONFLICT DO NOTHING`)

// LinkSuperseded stores the revision that replaced an action.
func (t *tx) LinkSuperseded(oldID, newID string) error {
	return t.Write(`WITH w AS (
  UPDATE action SET superseded_by = $1 WHERE tenant = $2 AND id = $3 RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH002') END`, newID, t.tenant, oldID)
}
