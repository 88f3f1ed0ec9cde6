package sqlite

import (
	"slices"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

func (t *tx) insertApproval(seq int64, a *gatehouse.Action) error {
	o := a.Approval
	if !gatehouse.ApprovalStatus("").CanMove(o.Status) {
		return gatehouse.ErrConflict
	}
	var prompt, value any
	if o.Confirm != nil {
		prompt, value = o.Confirm.Prompt, o.Confirm.Value
	}
	timing, err := shared.EncodeTiming(o)
	if err != nil {
		return err
	}
	_, err = t.exec(
		`INSERT INTO approval (seq, tenant, id, status, required, roles, people, excluded, expires_at, created_at,
confirm_prompt, confirm_value, groups, timing, told, next_at, about)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		seq, a.Tenant, o.ID, string(o.Status), o.Required, shared.EncodeList(o.Roles), shared.EncodeList(o.People),
		shared.EncodeList(o.Excluded),
		o.End(), o.CreatedAt, prompt, value, shared.EncodeList(o.Groups), timing, o.MomentsDone,
		o.NextMoment(o.MomentsDone),
		shared.EncodeAbout(o.About))
	if err != nil {
		return err
	}
	for _, v := range o.Votes {
		if err := t.PutVote(o.ID, v); err != nil {
			return err
		}
	}
	return nil
}

const voteColumns = `v.seq, v.person, v.principal_id, v.name, v.decision, v.notes, v.via, v.digest, v.at,
	v.for_id, v.for_name, v.grant_id`

// votes returns the votes of one approval, the oldest first.
func (t *readTx) votes(seq int64) ([]gatehouse.Vote, error) {
	votes := []gatehouse.Vote{}
	err := t.each(`SELECT `+voteColumns+` FROM vote v WHERE v.seq = ?`, func(r *stmt) error {
		r.Skip(1)
		v := shared.ScanVote(r)
		votes = append(votes, v)
		return nil
	}, seq)
	shared.SortVotes(votes)
	return votes, err
}

// MoveApproval moves a requested approval to a final status.
func (t *tx) MoveApproval(approvalID string, to gatehouse.ApprovalStatus) error {
	if !gatehouse.ApprovalRequested.CanMove(to) {
		return gatehouse.ErrConflict
	}
	known := t.knownByApproval(t.tenant, approvalID)
	if known == nil {
		return t.guarded(`UPDATE OR ROLLBACK approval SET status = ? WHERE tenant = ? AND id = ? AND status = 'requested'`,
			string(to), t.tenant, approvalID)
	}
	err := t.guarded(`UPDATE OR ROLLBACK approval SET status = ? WHERE seq = ? AND status = 'requested'`, string(to),
		known.seq)
	if err == nil {
		known.approvalStatus = to
	}
	return err
}

const insertVote = `INSERT INTO vote (seq, tenant, person, principal_id, name, decision, notes, via, digest,
	at, for_id, for_name, grant_id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// PutVote stores a person's vote and replaces that person's earlier vote. A
// decided approval accepts no votes.
func (t *tx) PutVote(approvalID string, v gatehouse.Vote) error {
	if known := t.knownByApproval(t.tenant, approvalID); known != nil {
		if known.approvalStatus != gatehouse.ApprovalRequested {
			return gatehouse.ErrConflict
		}
		// Without an earlier vote, a plain insert is enough.
		sql := insertVote
		if slices.Contains(known.voters, v.Person) {
			sql = `INSERT INTO vote (seq, tenant, person, principal_id, name, decision, notes, via, digest,
	at, for_id, for_name, grant_id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (seq, person) DO UPDATE
  SET principal_id = excluded.principal_id, name = excluded.name,
  decision = excluded.decision, notes = excluded.notes, via = excluded.via, digest = excluded.digest,
  at = excluded.at, for_id = excluded.for_id, for_name = excluded.for_name, grant_id = excluded.grant_id`
		}
		_, err := t.exec(sql, known.seq, t.tenant, v.Person, v.PrincipalID, v.Name, string(v.Decision), v.Notes,
			string(v.Via), string(v.Digest), v.At, v.For, v.ForName, v.Grant)
		if err == nil {
			known.voters = append(known.voters, v.Person)
		}
		return err
	}
	n, err := t.exec(`INSERT INTO vote (seq, tenant, person, principal_id, name, decision, notes, via, digest, at,
		for_id, for_name, grant_id)
SELECT seq, tenant, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
FROM approval WHERE tenant = ? AND id = ? AND status = 'requested'
ON CONFLICT (seq, person) DO UPDATE SET principal_id = excluded.principal_id, name = excluded.name,
  decision = excluded.decision, notes = excluded.notes, via = excluded.via, digest = excluded.digest,
  at = excluded.at, for_id = excluded.for_id, for_name = excluded.for_name, grant_id = excluded.grant_id`,
		v.Person, v.PrincipalID, v.Name, string(v.Decision), v.Notes, string(v.Via), string(v.Digest), v.At, v.For,
		v.ForName, v.Grant, t.tenant, approvalID)
	if err != nil || n > 0 {
		return err
	}
	return t.whyUnmatched(`SELECT 1 FROM approval WHERE tenant = ? AND id = ?`, t.tenant, approvalID)
}

// whyUnmatched explains why a guarded insert matched no row: the parent row is in
// another state, or does not exist.
func (t *readTx) whyUnmatched(sql string, args ...any) error {
	n, err := t.number(sql, args...)
	switch {
	case err != nil:
		return err
	case n == 0:
		return gatehouse.ErrNotFound
	}
	return gatehouse.ErrConflict
}
