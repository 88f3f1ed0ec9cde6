package postgres

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// findVotes finds the votes on an action, by its id, its approval's id, or its key.
var findVotes = reads[actionName](`
SELECT r.n, v.person, v.principal_id, v.name, v.decision, v.notes, v.via, v.digest, v.at,
  v.for_id, v.for_name, v.grant_id
FROM (
  SELECT tenant, ($2::text[])[n] AS id, ($3::text[])[n] AS key, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $4
) r
CROSS JOIN LATERAL (
  SELECT * FROM vote
  WHERE seq = (
    SELECT seq FROM action WHERE tenant = r.tenant AND id = r.id
    UNION ALL SELECT seq FROM approval WHERE tenant = r.tenant AND id = r.id
    UNION ALL SELECT seq FROM action WHERE tenant = r.tenant AND idempotency_key = r.key LIMIT 1)
  ORDER BY at, person OFFSET 0
) v`)

// voteRow is a vote on an approval.
type voteRow struct {
	Tenant, ApprovalID string
	gatehouse.Vote
}

// putVotes stores votes on open approvals, each in place of an earlier one of the person.
var putVotes = writes[voteRow](rankVote, "ApprovalID", `
WITH r AS (
  SELECT tenant, ($2::text[])[n] AS approval_id, ($3::text[])[n] AS person, ($4::text[])[n] AS principal_id,
    ($5::text[])[n] AS name, ($6::text[])[n] AS decision, ($7::text[])[n] AS notes, ($8::text[])[n] AS via,
    ($9::text[])[n] AS digest, ($10::bigint[])[n] AS at, ($11::text[])[n] AS "for",
    ($12::text[])[n] AS for_name, ($13::text[])[n] AS "grant", n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $14
),
w AS (
  INSERT INTO vote (seq, tenant, person, principal_id, name, decision, notes, via, digest, at,
    for_id, for_name, grant_id)
  SELECT o.seq, o.tenant, r.person, r.principal_id, r.name, r.decision, r.notes, r.via, r.digest, r.at,
    r."for", r.for_name, r."grant"
  FROM r CROSS JOIN LATERAL (
    SELECT * FROM approval WHERE tenant = r.tenant AND id = r.approval_id AND status = 'requested'
    FOR NO KEY UPDATE
  ) o
  ON CONFLICT (seq, person) DO UPDATE SET principal_id = excluded.principal_id, name = excluded.name,
    decision = excluded.decision, notes = excluded.notes, via = excluded.via, digest = excluded.digest,
    at = excluded.at, for_id = excluded.for_id, for_name = excluded.for_name, grant_id = excluded.grant_id
  RETURNING 1
)
SELECT CASE
  WHEN (SELECT count(*) FROM w) = $14 THEN 0
  WHEN EXISTS (
    SELECT 1 FROM r CROSS JOIN LATERAL (
      SELECT 1 FROM approval WHERE tenant = r.tenant AND id = r.approval_id OFFSET 0) o
  ) THEN gatehouse_refuse('GH001')
  ELSE gatehouse_refuse('GH002')
END`)

// PutVote stores a person's vote and replaces an earlier one. An approval that is decided takes
// no votes.
func (t *tx) PutVote(approvalID string, v gatehouse.Vote) error {
	return putVotes.write(t, voteRow{t.tenant, approvalID, v})
}

// approvalMove moves a requested approval to a final status.
type approvalMove struct {
	Tenant string
	ID     string
	Status gatehouse.ApprovalStatus
}

var moveApprovals = writes[approvalMove](rankApproval, "ID", `
WITH r AS (
  SELECT tenant, ($2::text[])[n] AS id, ($3::text[])[n] AS status, n
  FROM unnest($1::text[]) WITH ORDINALITY AS r(tenant, n) LIMIT $4
),
w AS (
  UPDATE approval SET status = r.status FROM r
  WHERE approval.tenant = r.tenant AND approval.id = r.id AND approval.status = 'requested'
  RETURNING 1
)
SELECT CASE WHEN (SELECT count(*) FROM w) = $4 THEN 0 ELSE gatehouse_refuse('GH001') END`)

// MoveApproval moves a requested approval to a final status.
func (t *tx) MoveApproval(approvalID string, to gatehouse.ApprovalStatus) error {
	if !gatehouse.ApprovalRequested.CanMove(to) {
		return gatehouse.ErrConflict
	}
	return moveApprovals.write(t, approvalMove{t.tenant, approvalID, to})
}

// settleRow is the vote that decides an approval, in a transaction that runs alone, with the stored answer and
// the commit mark. Status is the new status of both the action and its approval.
type settleRow struct {
	Tenant, ActionID, ApprovalID string
	Status                       gatehouse.Status
	FinishedAt                   *time.Time
	gatehouse.Vote
	Push     *newPush
	LeafBody string
	Answer   *idempotencyRow
	Mark     *markRow
}

// newPush is a push that has not begun, with its first attempt at NotBefore.
type newPush struct {
	ID, Connector, IdempotencyKey string
	Digest                        gatehouse.Digest
	NotBefore, CreatedAt          time.Time
	Lane                          string
}

// markRow is the commit mark of a transaction: its number among the transactions of its session.
type markRow struct{ Session, Last int64 }

// settleDecision writes a decision. Its parts use each other's results, because the parts of a
// statement do not see each other's changes: the approval moves, then its action by the same seq,
// then the push. The condition on id and status of the action is written so that no index can answer it, and the
// planner finds the action by seq.
var settleDecision = single[settleRow](`
WITH r AS (
  SELECT $1::text AS tenant, $2::text AS action_id, $3::text AS approval_id, $4::text AS status,
    $5::bigint AS finished_at, $6::text AS person, $7::text AS principal_id, $8::text AS name,
    $9::text AS decision, $10::text AS notes, $11::text AS via, $12::text AS digest, $13::bigint AS at,
    $14::text AS "for", $15::text AS for_name, $16::text AS "grant", $17::text AS push_id,
    $18::text AS push_connector, $19::text AS push_idempotency_key, $20::text AS push_digest,
    $21::bigint AS push_not_before, $22::bigint AS push_created_at, $23::text AS push_lane,
    $24::text AS leaf_body, $25::text AS answer_tenant, $26::text AS answer_principal_id,
    $27::text AS answer_route, $28::text AS answer_key, $29::bytea AS answer_body_hash,
    $30::bytea AS answer_body, $31::bigint AS answer_created_at, $32::bigint AS answer_window_start,
    $33::bigint AS mark_session, $34::bigint AS mark_last
),
approval AS (
  UPDATE approval SET status = r.status FROM r
  WHERE approval.tenant = r.tenant AND approval.id = r.approval_id AND approval.status = 'requested'
  RETURNING approval.seq
),
vote AS (
  INSERT INTO vote (seq, tenant, person, principal_id, name, decision, notes, via, digest, at,
    for_id, for_name, grant_id)
  SELECT seq, tenant, person, principal_id, name, decision, notes, via, digest, at, "for", for_name, "grant"
  FROM approval CROSS JOIN r
  ON CONFLICT (seq, person) DO UPDATE SET principal_id = excluded.principal_id, name = excluded.name,
    decision = excluded.decision, notes = excluded.notes, via = excluded.via, digest = excluded.digest,
    at = excluded.at, for_id = excluded.for_id, for_name = excluded.for_name, grant_id = excluded.grant_id
  RETURNING 1
),
action AS (
  UPDATE action SET status = r.status, decided_by = r.name, decided_via = r.via, decided_at = r.at,
    finished_at = r.finished_at
  FROM approval o CROSS JOIN r
  WHERE action.seq = o.seq AND (action.id, action.status) IS NOT DISTINCT FROM (r.action_id, 'pending')
  RETURNING action.seq
),
push AS (
  INSERT INTO push (tenant, id, action_seq, action_id, connector, idempotency_key, digest, status,
    attempts, attempt_base, last_error, error_code, not_before, created_at, next_attempt,
    generation, lease_owner, replays, lane)
  SELECT tenant, push_id, seq, action_id, push_connector, push_idempotency_key, push_digest, 'queued',
    0, 0, '', '', push_not_before, push_created_at, push_not_before, 0, '', 0, push_lane
  FROM action CROSS JOIN r WHERE r.status = 'approved'
  RETURNING 1
),
leaf AS (
  INSERT INTO audit_leaf (seq, tenant, action_id, body)
  SELECT nextval('audit_leaf_row'), tenant, action_id, leaf_body FROM r
  RETURNING seq, tenant
),
waiting AS (
  INSERT INTO audit_waiting (first, tenant, leaves) SELECT seq, tenant, ARRAY[seq] FROM leaf
),
answer AS (
  INSERT INTO idempotency (tenant, principal_id, route, key, body_hash, created_at, body)
  SELECT answer_tenant, answer_principal_id, answer_route, answer_key, answer_body_hash, answer_created_at,
    answer_body
  FROM r WHERE answer_key IS NOT NULL
  ON CONFLICT (tenant, principal_id, route, key) DO UPDATE
  SET body_hash = excluded.body_hash, created_at = excluded.created_at, body = excluded.body
  WHERE idempotency.created_at <= $32
  RETURNING 1
),
mark AS (
  UPDATE gatehouse_session SET last = r.mark_last FROM r
  WHERE gatehouse_session.seq = r.mark_session AND gatehouse_session.last = r.mark_last - 1
  RETURNING 1
)
SELECT CASE
  WHEN (
    SELECT count(*) FROM (
      SELECT 1 FROM vote UNION ALL SELECT 1 FROM action UNION ALL SELECT 1 FROM push
      UNION ALL SELECT 1 FROM answer UNION ALL SELECT 1 FROM mark
    ) x
  ) = (SELECT 2 + num_nonnulls(push_id, answer_key, mark_session) FROM r)
  THEN 0 ELSE gatehouse_refuse('GH001')
END`)

// SettleDecision writes a decision as one statement, or, in a group, as the statements for its parts. The
// action is locked, so no row is missing: a failure is a conflict.
func (t *tx) SettleDecision(d *gatehouse.Settlement) error {
	if err := shared.CheckSettlement(t.tenant, d); err != nil {
		return err
	}
	if t.member != nil {
		return shared.SettleByParts(t, d)
	}
	leaf, err := t.leaf(d.Leaf)
	if err != nil {
		return err
	}
	r := settleRow{
		Tenant: t.tenant, ActionID: d.ActionID, ApprovalID: d.ApprovalID, Status: d.To, Vote: d.Vote,
		LeafBody: leaf.Body,
	}
	if d.To.Finished() {
		r.FinishedAt = new(t.Now())
	}
	if p := d.Push; p != nil {
		r.Push = &newPush{p.ID, p.Connector, p.IdempotencyKey, p.Digest, p.NotBefore, p.CreatedAt, p.Lane}
	}
	if err := settleDecision.write(t, r); err != nil || d.To == gatehouse.StatusApproved {
		return err
	}
	return wakeActionSteps.write(t, idRow{t.tenant, d.ActionID})
}

// withMark ends the writes of a transaction with its commit mark. If the last write is one decision, or
// one decision and one stored answer, answer and mark become parts of the decision's statement.
func withMark(batch []query, mark markRow) []query {
	last := len(batch) - 1
	is := func(s *arrayStatement) bool { return last >= 0 && batch[last].statement == s }
	var answer *idempotencyRow
	if is(insertAnswers.arrayStatement) {
		r := batch[last].rows[0].(idempotencyRow)
		answer, last = &r, last-1
	}
	if !is(settleDecision.arrayStatement) {
		return append(batch, ask(markSession, nil, mark.Session, mark.Last))
	}
	r := batch[last].rows[0].(settleRow)
	r.Answer, r.Mark = answer, &mark
	return append(batch[:last], query{statement: settleDecision.arrayStatement, rows: []any{r}})
}
