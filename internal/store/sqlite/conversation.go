package sqlite

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const selectComments = `SELECT ` + shared.CommentColumns + ` FROM comment WHERE tenant = ?1
AND seq = (SELECT seq FROM action WHERE tenant = ?1 AND id = ?2) ORDER BY number`

// ListComments lists the comments on an action.
func (t *readTx) ListComments(actionID string) (list []gatehouse.Comment, err error) {
	err = t.each(selectComments, func(r *stmt) error {
		list = append(list, shared.ScanComment(r))
		return nil
	}, t.tenant, actionID)
	return list, err
}

// InsertComment stores a comment, and the counts on the approval.
func (t *tx) InsertComment(approvalID string, c *gatehouse.Comment, after gatehouse.Conversation) error {
	err := t.guarded(`UPDATE OR ROLLBACK approval SET comments = ?, asked = ?, answered = ?
WHERE tenant = ? AND id = ? AND status = 'requested' AND comments = ?`,
		after.Comments, after.Asked, after.Answered, t.tenant, approvalID, c.Number-1)
	if err != nil {
		return err
	}
	_, err = t.exec(`INSERT INTO comment (seq, tenant, `+shared.CommentColumns+`)
SELECT seq, tenant, ?3, ?4, ?5, ?6, ?7, ?8, ?9 FROM approval WHERE tenant = ?1 AND id = ?2`,
		t.tenant, approvalID, c.Number, string(c.Kind), c.Answers, c.Text, c.Author, c.AuthorID, c.At)
	return err
}

// SetAssignee stores who an open approval is assigned to.
func (t *tx) SetAssignee(approvalID string, to *gatehouse.Assignee) error {
	if to == nil {
		to = new(gatehouse.Assignee)
	}
	return t.guarded(`UPDATE OR ROLLBACK approval SET assignee_id = ?, assignee = ?
WHERE tenant = ? AND id = ? AND status = 'requested'`, to.ID, to.Name, t.tenant, approvalID)
}

// ListSnoozes lists a person's snoozes.
func (t *readTx) ListSnoozes(principalID string) (list []gatehouse.Snooze, err error) {
	err = t.each(`SELECT a.id, z.until FROM snooze z JOIN action a ON a.seq = z.seq
WHERE z.tenant = ?1 AND z.principal_id = ?2 AND z.until > ?3 AND a.status = 'pending' ORDER BY z.until, a.id`,
		func(r *stmt) error {
			list = append(list, gatehouse.Snooze{ActionID: r.Text(), Until: r.Time()})
			return nil
		}, t.tenant, principalID, t.at)
	return list, err
}

// PutSnooze stores a snooze, and deletes expired ones.
func (t *tx) PutSnooze(principalID, approvalID string, until time.Time) error {
	_, err := t.exec(`DELETE FROM snooze WHERE tenant = ? AND principal_id = ? AND until <= ?`,
		t.tenant, principalID, t.at)
	if err != nil {
		return err
	}
	return t.guarded(`INSERT INTO snooze (tenant, principal_id, seq, until)
SELECT tenant, ?3, seq, ?4 FROM approval WHERE tenant = ?1 AND id = ?2 AND status = 'requested'
ON CONFLICT (tenant, principal_id, seq) DO UPDATE SET until = excluded.until`,
		t.tenant, approvalID, principalID, until)
}

// EndSnoozes deletes the snoozes of an action.
func (t *tx) EndSnoozes(principalID, approvalID string) error {
	_, err := t.exec(`DELETE FROM snooze WHERE tenant = ?1 AND (?3 = '' OR principal_id = ?3)
AND seq = (SELECT seq FROM approval WHERE tenant = ?1 AND id = ?2)`, t.tenant, approvalID, principalID)
	return err
}
