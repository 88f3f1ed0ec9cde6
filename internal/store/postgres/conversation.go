package postgres

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

const selectComments = `SELECT ` + shared.CommentColumns + ` FROM comment
WHERE seq = (SELECT seq FROM action WHERE tenant = $1 AND id = $2) ORDER BY number`

// ListComments lists the comments on an action.
func (t *readTx) ListComments(actionID string) (list []gatehouse.Comment, err error) {
	err = t.each(selectComments, func(r *row) error {
		list = append(list, shared.ScanComment(r))
		return nil
	}, t.tenant, actionID)
	return list, err
}

const countComment = `
WITH w AS (
  UPDATE approval SET comments = $1, asked = $2, answered = $3
  WHERE tenant = $4 AND id = $5 AND status = 'requested' AND comments = $6
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH001') END`

const insertComment = `
WITH w AS (
  INSERT INTO comment (seq, tenant, number, kind, answers, text, author, author_id, at)
  SELECT seq, tenant, $3, $4, $5, $6, $7, $8, $9 FROM approval WHERE tenant = $1 AND id = $2
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH002') END`

const setAssignee = `
WITH w AS (
  UPDATE approval SET assignee_id = $1, assignee = $2
  WHERE tenant = $3 AND id = $4 AND status = 'requested'
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH001') END`

// InsertComment stores a comment, and the counts on the approval.
func (t *tx) InsertComment(approvalID string, c *gatehouse.Comment, after gatehouse.Conversation) error {
	err := t.write(countComment, after.Comments, after.Asked, after.Answered, t.tenant, approvalID, c.Number-1)
	if err != nil {
		return err
	}
	return t.write(insertComment, t.tenant, approvalID, c.Number, string(c.Kind), c.Answers, c.Text, c.Author,
		c.AuthorID, c.At)
}

// SetAssignee stores who an open approval is assigned to.
func (t *tx) SetAssignee(approvalID string, to *gatehouse.Assignee) error {
	if to == nil {
		to = new(gatehouse.Assignee)
	}
	return t.write(setAssignee, to.ID, to.Name, t.tenant, approvalID)
}

// ListSnoozes lists a person's snoozes.
func (t *readTx) ListSnoozes(principalID string) (list []gatehouse.Snooze, err error) {
	err = t.each(`SELECT a.id, z.until FROM snooze z JOIN action a ON a.seq = z.seq
WHERE z.tenant = $1 AND z.principal_id = $2 AND z.until > $3 AND a.status = 'pending' ORDER BY z.until, a.id`,
		func(r *row) error {
			list = append(list, gatehouse.Snooze{ActionID: r.Text(), Until: r.Time()})
			return nil
		}, t.tenant, principalID, t.Now())
	return list, err
}

const putSnooze = `
WITH w AS (
  INSERT INTO snooze (tenant, principal_id, seq, until)
  SELECT tenant, $3, seq, $4 FROM approval WHERE tenant = $1 AND id = $2 AND status = 'requested'
  ON CONFLICT (tenant, principal_id, seq) DO UPDATE SET until = excluded.until
  RETURNING 1
)
SELECT CASE WHEN EXISTS (SELECT 1 FROM w) THEN 0 ELSE gatehouse_refuse('GH001') END`

// PutSnooze stores a snooze, and deletes expired ones.
func (t *tx) PutSnooze(principalID, approvalID string, until time.Time) error {
	err := t.write(`DELETE FROM snooze WHERE tenant = $1 AND principal_id = $2 AND until <= $3`,
		t.tenant, principalID, t.Now())
	if err != nil {
		return err
	}
	return t.write(putSnooze, t.tenant, approvalID, principalID, until)
}

// EndSnoozes deletes the snoozes of an action.
func (t *tx) EndSnoozes(principalID, approvalID string) error {
	return t.write(`DELETE FROM snooze WHERE tenant = $1 AND ($3 = '' OR principal_id = $3)
AND seq = (SELECT seq FROM approval WHERE tenant = $1 AND id = $2)`, t.tenant, approvalID, principalID)
}
