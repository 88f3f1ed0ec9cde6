package shared

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// ScanComment reads a comment.
func ScanComment(r Row) (gatehouse.Comment, error) {
	return gatehouse.Comment{
		Number: int(r.Int()), Kind: gatehouse.CommentKind(r.Text()), Answers: int(r.Int()), Text: r.Text(),
		Author: r.Text(), AuthorID: r.Text(), At: r.Time(),
	}, nil
}

// ListComments lists the comments on an action.
func (t Reads) ListComments(actionID string) ([]gatehouse.Comment, error) {
	return list(t, ScanComment, `
SELECT number, kind, answers, text, author, author_id, at FROM comment
WHERE tenant = $1 AND seq = (SELECT seq FROM action WHERE tenant = $1 AND id = $2) ORDER BY number`,
		t.Tenant(), actionID)
}

// InsertComment stores a comment, and the counts on the approval.
func (t Writes) InsertComment(approvalID string, c *gatehouse.Comment, after gatehouse.Conversation) error {
	err := t.WriteOrFail(gatehouse.ErrConflict, `
UPDATE approval SET comments = $1, asked = $2, answered = $3
WHERE tenant = $4 AND id = $5 AND status = 'requested' AND comments = $6`,
		after.Comments, after.Asked, after.Answered, t.Tenant(), approvalID, c.Number-1)
	if err != nil {
		return err
	}
	return t.Write(`
INSERT INTO comment (seq, tenant, number, kind, answers, text, author, author_id, at)
SELECT seq, tenant, $3, $4, $5, $6, $7, $8, $9 FROM approval WHERE tenant = $1 AND id = $2`,
		t.Tenant(), approvalID, c.Number, string(c.Kind), c.Answers, c.Text, c.Author, c.AuthorID, c.At)
}

// SetAssignee stores who an open approval is assigned to.
func (t Writes) SetAssignee(approvalID string, to *gatehouse.Assignee) error {
	if to == nil {
		to = new(gatehouse.Assignee)
	}
	return t.WriteOrFail(gatehouse.ErrConflict, `
UPDATE approval SET assignee_id = $1, assignee = $2 WHERE tenant = $3 AND id = $4 AND status = 'requested'`,
		to.ID, to.Name, t.Tenant(), approvalID)
}

// SetMomentsDone stores how many moments (see [gatehouse.Moment]) of an open approval are in the log, and the time of
// the next moment; ErrConflict unless the stored number is from.
func (t Writes) SetMomentsDone(approvalID string, from, done int, next *time.Time) error {
	return t.WriteOrFail(gatehouse.ErrConflict, `
UPDATE approval SET told = $1, next_at = $2 WHERE tenant = $3 AND id = $4 AND status = 'requested' AND told = $5`,
		done, next, t.Tenant(), approvalID, from)
}

// HoldRejection stores when a rejection of an open approval takes effect.
func (t Writes) HoldRejection(approvalID string, at time.Time) error {
	return t.WriteOrFail(gatehouse.ErrConflict, `
UPDATE approval SET rejects_at = $1, next_at = NULL WHERE tenant = $2 AND id = $3 AND status = 'requested'`,
		at, t.Tenant(), approvalID)
}

// MarkTarget stores that the target changed after the proposal.
func (t Writes) MarkTarget(approvalID string, m gatehouse.TargetMark) error {
	return t.WriteOrFail(gatehouse.ErrConflict, `
UPDATE approval SET changed_at = $1, changed_version = $2, changed_by = $3
WHERE tenant = $4 AND id = $5 AND status = 'requested'`, m.At, m.Version, m.By, t.Tenant(), approvalID)
}

// SetEvaluated stores the evaluations of an open approval.
func (t Writes) SetEvaluated(approvalID string, all []gatehouse.Evaluated) error {
	text, err := EncodeJSON(&all)
	if err != nil {
		return err
	}
	return t.WriteOrFail(gatehouse.ErrConflict, `
UPDATE approval SET evaluated = $1 WHERE tenant = $2 AND id = $3 AND status = 'requested'`,
		text, t.Tenant(), approvalID)
}

// ListSnoozes lists a person's snoozes that have not ended, of pending actions.
func (t Reads) ListSnoozes(principalID string) ([]gatehouse.Snooze, error) {
	return list(t, func(r Row) (gatehouse.Snooze, error) {
		return gatehouse.Snooze{ActionID: r.Text(), Until: r.Time()}, nil
	}, `
SELECT a.id, z.until FROM snooze z JOIN action a ON a.seq = z.seq
WHERE z.tenant = $1 AND z.principal_id = $2 AND z.until > $3 AND a.status = 'pending' ORDER BY z.until, a.id`,
		t.Tenant(), principalID, t.Now())
}

// PutSnooze stores a snooze, and deletes expired ones.
func (t Writes) PutSnooze(principalID, approvalID string, until time.Time) error {
	err := t.Write(`DELETE FROM snooze WHERE tenant = $1 AND principal_id = $2 AND until <= $3`,
		t.Tenant(), principalID, t.Now())
	if err != nil {
		return err
	}
	return t.WriteOrFail(gatehouse.ErrConflict, `
INSERT INTO snooze (tenant, principal_id, seq, until)
SELECT tenant, $3, seq, $4 FROM approval WHERE tenant = $1 AND id = $2 AND status = 'requested'
ON CONFLICT (tenant, principal_id, seq) DO UPDATE SET until = excluded.until`,
		t.Tenant(), approvalID, principalID, until)
}

// EndSnoozes deletes the snoozes of an action: those of a principal, or of all if principalID is "".
func (t Writes) EndSnoozes(principalID, approvalID string) error {
	return t.Write(`
DELETE FROM snooze WHERE tenant = $1 AND ($3 = '' OR principal_id = $3)
  AND seq = (SELECT seq FROM approval WHERE tenant = $1 AND id = $2)`, t.Tenant(), approvalID, principalID)
}
