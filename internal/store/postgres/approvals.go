package postgres

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
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

func sortVotes(votes []gatehouse.Vote) {
	slices.SortFunc(votes, func(a, b gatehouse.Vote) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Person, b.Person))
	})
}

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
