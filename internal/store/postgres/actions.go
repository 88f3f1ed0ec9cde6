package postgres

import (
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// An action is read as one row, with its proposal, its approval, its push, and its latest
// receipt that is not late.
const (
	actionColumns = `a.tenant, a.id, a.status, a.action_type, a.risk, a.proposer_id, coalesce(a.idempotency_key, ''), a.proposed_at,
  a.decided_by, a.decided_via, a.decided_at, a.finished_at, a.failure_code, a.failure_detail,
  coalesce(a.supersedes, ''), coalesce(a.superseded_by, ''), coalesce(a.reverses, ''), coalesce(a.reversed_by, ''),
  p.revision, p.connector, p.operation, p.entity_type, p.entity_ref, p.entity_refs, p.target_version, p.claimed_risk,
  p.amount, p.currency, p.on_behalf_of, p.expires_in, p.hold, p.digest, p.fingerprint, p.content_hash,
  p.policy_outcome, p.policy_version, p.policy_rules, p.policy_reasons, p.proposed_by, p.rationale,
  p.proposed_change, p.current_state, p.context, p.metadata, p.extra,
  o.id, o.status, o.required, o.roles, o.people, o.excluded, o.expires_at, o.created_at, o.confirm_prompt, o.confirm_value, o.groups,
  o.timing, o.told, o.changed_at, o.changed_version, o.changed_by, o.about, o.evaluated`

	selectAction = `SELECT ` + actionColumns + `, ` + pushColumns + `, ` + receiptColumns + ` FROM action a
JOIN proposal p ON p.seq = a.seq
LEFT JOIN approval o ON o.seq = a.seq
LEFT JOIN push h ON h.action_seq = a.seq
LEFT JOIN LATERAL (SELECT * FROM receipt l WHERE l.action_seq = h.action_seq AND NOT l.late ORDER BY l.seq DESC LIMIT 1) r ON true
WHERE a.seq = `

	// The seq of an action, by its own id or its approval's, and by its idempotency key.
	seqByID = `(SELECT seq FROM action WHERE tenant = $1 AND id = $2
  UNION ALL SELECT seq FROM approval WHERE tenant = $1 AND id = $2 LIMIT 1)`
	seqByKey = `(SELECT seq FROM action WHERE tenant = $1 AND idempotency_key = $2)`

	// The same, for an id whose type is known.
	seqOfAction   = `(SELECT seq FROM action WHERE tenant = $1 AND id = $2)`
	seqOfApproval = `(SELECT seq FROM approval WHERE tenant = $1 AND id = $2)`

	// An action, and an approval with its action, by the id of either. Each joined row is looked
	// up by the row before it. Otherwise, if the tables were nearly empty when the planner ran,
	// it would join them in any order and read whole tables.
	theAction   = `(SELECT * FROM action WHERE tenant = $1 AND id = $2` + lateralEnd + ` a`
	itsAction   = ` CROSS JOIN LATERAL (SELECT * FROM action WHERE action.seq = o.seq` + lateralEnd + ` a`
	theApproval = `(SELECT * FROM approval WHERE tenant = $1 AND id = $2`
	itsApproval = ` CROSS JOIN LATERAL (SELECT * FROM approval WHERE approval.seq = a.seq`
	itsProposal = ` CROSS JOIN LATERAL (SELECT * FROM proposal WHERE proposal.seq = a.seq` + lateralEnd + ` p`
	lateralEnd  = ` OFFSET 0)`

	// An open action, with a lock on its approval. After a wait for the lock, the approval row
	// is current but the joined rows are from the start of the statement: see lockOpen.
	selectOpen       = `SELECT ` + actionColumns + `, NULL::text FROM `
	lockOpenApproval = ` FOR NO KEY UPDATE`
	skipLocked       = ` SKIP LOCKED`

	openByAction             = selectOpen + theAction + itsApproval + lockOpenApproval + `) o` + itsProposal
	openByApproval           = selectOpen + theApproval + lockOpenApproval + `) o` + itsAction + itsProposal
	openByActionSkipLocked   = selectOpen + theAction + itsApproval + lockOpenApproval + skipLocked + `) o` + itsProposal
	openByApprovalSkipLocked = selectOpen + theApproval + lockOpenApproval + skipLocked + `) o` + itsAction + itsProposal

	lockApproval   = `SELECT 1 FROM approval WHERE seq = ` + seqByID + ` FOR NO KEY UPDATE`
	lockActionOnly = `SELECT 1 FROM action a WHERE seq = ` + seqByID + `
AND NOT EXISTS (SELECT 1 FROM approval WHERE approval.seq = a.seq) FOR NO KEY UPDATE`
)

// scanAction reads a row of selectAction.
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

// show makes an approval that has run out appear as expired.
func (t *readTx) show(a *gatehouse.Action) { a.See(t.Now()) }

// see sets the clock-dependent fields of a stored approval.
func (t *readTx) see(a *gatehouse.Action) {
	if a.Approval != nil {
		a.Approval.See(t.Now())
	}
}

// loadQueries load an action as stored.
func loadQueries(a **gatehouse.Action, seq, tenant, key string) []query {
	return []query{
		ask(selectAction+seq, func(r *row) (err error) { *a, err = scanAction(r); return err }, tenant, key),
		ask(selectVotes+`= `+seq+orderVotes, func(r *row) error {
			(*a).Approval.Votes = append((*a).Approval.Votes, shared.ScanVote(r))
			return nil
		}, tenant, key),
	}
}

// loadAction loads an action as stored, after the locks.
func (t *readTx) loadAction(locks []query, seq, tenant, key string) (a *gatehouse.Action, err error) {
	err = t.lockAndRead(locks, loadQueries(&a, seq, tenant, key)...)
	if err == nil && a == nil {
		return nil, gatehouse.ErrNotFound
	}
	return a, err
}

// FindAction finds an action by its id or its approval's id.
func (t *readTx) FindAction(id string) (*gatehouse.Action, error) {
	a, err := t.shown(t.loadAction(nil, seqByID, t.tenant, id))
	return t.orArchived(id, a, t.tenant, err)
}

// byKey is the action, or the archived action, with an idempotency key. One round trip looks in
// both places, since usually neither has the key.
type byKey struct {
	action   *gatehouse.Action
	archived *gatehouse.Archived
}

func (k *byKey) queries(tenant, key string) []query {
	return append(loadQueries(&k.action, seqByKey, tenant, key),
		ask(archivedByKey, func(r *row) (err error) { k.archived, err = shared.ScanArchived(r); return err }, tenant,
			key))
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
		return t.shown(k.action, nil)
	case k.archived != nil:
		return actionOf(k.archived, nil)
	}
	t.freeKey = keyOf{t.tenant, key}
	return nil, gatehouse.ErrNotFound
}

func (t *readTx) shown(a *gatehouse.Action, err error) (*gatehouse.Action, error) {
	if err == nil {
		t.show(a)
	}
	return a, err
}

// LockAction is FindAction with the stored status: a pending action past its expiry is still
// pending here, as the guard of MoveAction sees it.
func (t *tx) LockAction(id string) (*gatehouse.Action, error) {
	if t.opening.likelyOpen && !t.begun {
		if a, err := t.lockOpen(t.tenant, id); a != nil || err != nil {
			return a, err
		}
	}
	a, err := t.loadAction([]query{ask(lockApproval, nil, t.tenant, id), ask(lockActionOnly, nil, t.tenant, id)}, seqByID, t.tenant, id)
	if err != nil {
		return t.orArchived(id, nil, t.tenant, err)
	}
	t.see(a)
	return a, t.claimLocked(a)
}

// isApproval reports whether an id has the form of an approval's id.
func isApproval(id string) bool { return strings.HasPrefix(id, "apr_") }

// lockOpen is LockAction for an action that is still open, in fewer statements. While an
// approval is requested, only its votes can have changed since the start of the statement that
// waited for the lock. It returns nil if the action is not open, or if the id has the form of
// another type.
func (t *tx) lockOpen(tenant, id string) (a *gatehouse.Action, err error) {
	asked, seq := openByAction, seqOfAction
	if isApproval(id) {
		asked, seq = openByApproval, seqOfApproval
	}
	c, alone := t.opening.tally, []query(nil)
	if c == nil || c.tenant != tenant || c.id != id {
		c = &voteTally{seen: true}
		alone = append(alone, ask(selectVotes+`= `+seq+orderVotes, c.vote, tenant, id))
	}
	err = t.lockAndRead(
		[]query{ask(asked, func(r *row) (err error) { a, err = scanAction(r); return err }, tenant, id)},
		alone...)
	if err != nil || a == nil || !c.seen || a.Status != gatehouse.StatusPending ||
		a.Approval.Status != gatehouse.ApprovalRequested {
		return nil, err
	}
	a.Approval.Votes = append(a.Approval.Votes, c.inOrder()...)
	t.openAction = openAction{tenant, a.Approval.ID, a.ID}
	t.see(a)
	return a, t.claimLocked(a)
}

// expiryMark is the first expiry of a pending action. An action expires no earlier than the
// start of the transaction that proposes it.
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
	defer t.useAllTenants()()
	return t.expired(`SELECT tenant, id FROM action WHERE status = 'pending' AND expires_at <= $1 AND expires_at >= $3
ORDER BY expires_at LIMIT $2`, limit)
}

// ExpiredActions in a writing transaction locks the approvals that it lists. It skips those
// that are locked by another sweeper or by a decision under way.
func (t *tx) ExpiredActions(limit int) ([]gatehouse.ActionRef, error) {
	defer t.useAllTenants()()
	return t.expired(`SELECT a.tenant, a.id FROM action a JOIN approval o ON o.seq = a.seq
WHERE a.status = 'pending' AND a.expires_at <= $1 AND a.expires_at >= $3 AND o.status = 'requested'
ORDER BY a.expires_at LIMIT $2 FOR NO KEY UPDATE OF o SKIP LOCKED`, limit)
}

const timely = `SELECT a.tenant, a.id FROM approval o JOIN action a ON a.seq = o.seq
WHERE o.next_at IS NOT NULL AND o.status = 'requested' AND o.next_at <= $1 ORDER BY o.next_at LIMIT $2`

func (t *readTx) timely(sql string, limit int) (refs []gatehouse.ActionRef, err error) {
	err = t.each(sql, func(r *row) error {
		refs = append(refs, gatehouse.ActionRef{Tenant: r.Text(), ID: r.Text()})
		return nil
	}, t.Now(), limit)
	return refs, err
}

// TimelyActions lists the actions, of all tenants, whose approval has reached a moment that is
// not in the log yet.
func (t *readTx) TimelyActions(limit int) ([]gatehouse.ActionRef, error) {
	defer t.useAllTenants()()
	return t.timely(timely, limit)
}

// TimelyActions in a writing transaction locks the approvals that it lists, and skips locked
// ones.
func (t *tx) TimelyActions(limit int) ([]gatehouse.ActionRef, error) {
	defer t.useAllTenants()()
	return t.timely(timely+` FOR NO KEY UPDATE OF o SKIP LOCKED`, limit)
}

const openOnTarget = `SELECT a.id FROM action a JOIN proposal p ON p.seq = a.seq JOIN approval o ON o.seq = a.seq
WHERE a.tenant = $1 AND a.status = 'pending' AND a.expires_at > $2 AND o.status = 'requested'
AND (p.connector = $3 AND p.entity_type = $4 AND (p.entity_ref = $5 OR strpos(p.entity_refs, $8) > 0)
    AND ($6 = '' OR p.target_version <> $6)
  OR starts_with(o.about, $9) AND ($6 = '' OR strpos(o.about, $10) = 0))
AND (o.changed_at IS NULL OR o.changed_version <> $6) ORDER BY a.id LIMIT $7`

// OpenOnTarget examines all pending actions of the tenant. entity_refs is a JSON list as text:
// each key stands in quotes, and quotes within a key are escaped.
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

// InsertAction stores a proposed action and its approval.
func (t *tx) InsertAction(a *gatehouse.Action) error {
	if err := t.checkTenant(a.Tenant); err != nil {
		return err
	}
	if !gatehouse.Status("").CanMove(a.Status) {
		return gatehouse.ErrConflict
	}
	if a.IdempotencyKey != "" && !shared.OwnKey(a) && t.freeKey != (keyOf{a.Tenant, a.IdempotencyKey}) {
		if err := t.write(keyIsFree, a.Tenant, a.IdempotencyKey); err != nil {
			return err
		}
	}
	var expires *time.Time
	if a.Approval != nil {
		end := a.Approval.End()
		expires = &end
	}
	var code, detail any
	if a.Failure != nil {
		code, detail = a.Failure.Code, a.Failure.Detail
	}
	rare, err := shared.EncodeExtra(a)
	if err != nil {
		return err
	}
	var amount, currency any
	if a.Magnitude != nil {
		amount, currency = string(a.Magnitude.Amount), a.Magnitude.Currency
	}
	args := []any{
		a.Tenant, a.ID, string(a.Status), a.ActionType, int(a.RiskLevel), a.ProposerID, shared.OrNull(a.IdempotencyKey),
		a.ProposedAt, expires,
		a.DecidedBy, string(a.DecidedVia), a.DecidedAt, a.FinishedAt, code, detail,
		shared.OrNull(a.Supersedes), shared.OrNull(a.Superseded), shared.OrNull(a.Reverses),
		shared.OrNull(a.ReversedBy),
		a.Revision, a.Connector, a.Operation, a.Target.EntityType, a.Target.EntityRef, shared.EncodeList(a.Target.EntityRefs),
		a.Target.Version, int(a.ClaimedRisk), amount, currency, a.OnBehalfOf, int64(a.ExpiresIn), int64(a.HoldFor),
		string(a.Digest), a.Fingerprint, a.ContentHash[:],
		string(a.Policy.Outcome), a.Policy.Version, shared.EncodeList(a.Policy.Rules), shared.EncodeList(a.Policy.Reasons),
		a.ProposedBy, a.Rationale, a.ProposedChange, a.CurrentState, a.Context, a.Metadata, rare,
	}
	if a.Approval == nil {
		return t.write(insertAction+insertProposal, args...)
	}
	return t.insertWithApproval(a, args)
}

// insertAction and insertProposal form one statement; insertApproval can stand between them.
//
// A set first takes the seq of each action from the sequence.
const (
	actionNames = `tenant, id, status, action_type, risk, proposer_id, idempotency_key, proposed_at, expires_at,
decided_by, decided_via, decided_at, finished_at, failure_code, failure_detail, supersedes, superseded_by, reverses, reversed_by`
	actionValues = `$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19`
	insertAction = `WITH a AS (INSERT INTO action (` + actionNames + `)
VALUES (` + actionValues + `) RETURNING seq)
`
	insertActions = `, s AS (SELECT nextval('action_seq_seq') AS seq, u.* FROM u), a AS (INSERT INTO action (seq, ` + actionNames + `)
SELECT seq, ` + actionValues + ` FROM s u)
`
	insertProposal  = insertProposalOf + `a`
	insertProposals = insertProposalOf + `s u`
	actionKinds     = "tttt i tt ii tt ii tt tttt  i tttttt i ttt ii tt b t i ttttttttt"

	insertProposalOf = `INSERT INTO proposal (seq, tenant, revision, connector, operation, entity_type, entity_ref, entity_refs,
target_version, claimed_risk, amount, currency, on_behalf_of, expires_in, hold, digest, fingerprint, content_hash,
policy_outcome, policy_version, policy_rules, policy_reasons, proposed_by, rationale,
proposed_change, current_state, context, metadata, extra)
SELECT seq, $1, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42,
  $43, $44, $45, $46 FROM `
)

const moveAction = `UPDATE action SET status = $1::text,
  decided_by = CASE WHEN $2::text = '' THEN decided_by ELSE $2 END,
  decided_via = CASE WHEN $3::text = '' THEN decided_via ELSE $3 END,
  decided_at = coalesce($4, decided_at),
  finished_at = CASE WHEN $1 IN ('approved', 'pushing') THEN NULL ELSE coalesce($5, finished_at) END,
  failure_code = CASE WHEN $6::text IS NOT NULL THEN $6 WHEN status = 'failed' THEN NULL ELSE failure_code END,
  failure_detail = CASE WHEN $6 IS NOT NULL THEN $7 WHEN status = 'failed' THEN NULL ELSE failure_detail END`

// Writing reversed_by checks its foreign key, so only moves that set the column write it.
const (
	moveGuard    = ` WHERE tenant = $8 AND id = $9 AND status = $10`
	moveReversed = guarded + moveAction + `, reversed_by = $11` + moveGuard + orConflict
	moveOther    = guarded + moveAction + moveGuard + orConflict
	moveActions  = moveAction + ` FROM u` + moveGuard
)

// MoveAction is one guarded transition. A move to approved or pushing, as in a replay, clears
// the finish time.
func (t *tx) MoveAction(m gatehouse.ActionMove) error {
	if !m.From.CanMove(m.To) {
		return gatehouse.ErrConflict
	}
	var decided, finished any
	if m.Decided {
		decided = t.Now()
	}
	if m.Finished {
		finished = t.Now()
	}
	var code, detail any
	if m.Failure != nil {
		code, detail = m.Failure.Code, m.Failure.Detail
	}
	args := []any{string(m.To), m.DecidedBy, string(m.DecidedVia), decided, finished, code, detail, t.tenant, m.ID, string(m.From)}
	move := moveOther
	if m.ReversedBy != "" {
		move, args = moveReversed, append(args, m.ReversedBy)
	}
	err := t.write(move, args...)
	if err == nil && shared.HasEnded(m.To) {
		err = t.write(wakeActionStep, t.tenant, m.ID)
	}
	return err
}

// LinkSuperseded stores the revision that replaced an action.
func (t *tx) LinkSuperseded(oldID, newID string) error {
	return t.write(guarded+`UPDATE action SET superseded_by = $1 WHERE tenant = $2 AND id = $3`+orMissing,
		newID, t.tenant, oldID)
}
