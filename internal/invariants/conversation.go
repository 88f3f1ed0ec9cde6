package invariants

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/gatehouse-dev/gatehouse"
)

// comment is a comment as the table, or the log, has it.
type comment struct {
	tenant  string
	Number  int                   `json:"number"`
	Kind    gatehouse.CommentKind `json:"kind"`
	Answers int                   `json:"answers"`
	Digest  gatehouse.Digest      `json:"text_digest"`
	author  string
}

func loadComments(ctx context.Context, tx *sql.Tx, actions map[int64]*actionRows, within func(string) string) error {
	err := each(ctx, tx, `SELECT seq, tenant, number, kind, answers, author_id, text FROM comment WHERE `+
		within("seq")+` ORDER BY seq, number`, func(rows *sql.Rows) error {
		var seq int64
		var c comment
		var text string
		err := rows.Scan(&seq, &c.tenant, &c.Number, &c.Kind, &c.Answers, &c.author, &text)
		c.Digest = (&gatehouse.Comment{Text: text}).Digest()
		if f := actions[seq]; f != nil {
			f.comments = append(f.comments, c)
		}
		return err
	})
	if err != nil {
		return err
	}
	return each(ctx, tx, `SELECT seq, comments, asked, answered, assignee_id FROM approval WHERE `+within("seq"),
		func(rows *sql.Rows) error {
			var seq int64
			var counts gatehouse.Conversation
			var assignee string
			err := rows.Scan(&seq, &counts.Comments, &counts.Asked, &counts.Answered, &assignee)
			if f := actions[seq]; f != nil {
				f.counts, f.assignee = counts, assignee
			}
			return err
		})
}

// archivedConversation reads the conversation of an archived action.
func (f *actionRows) archivedConversation(a *gatehouse.Action) {
	f.counts = a.Approval.Conversation
	if a.Approval.Assignee != nil {
		f.assignee = a.Approval.Assignee.ID
	}
	for i := range a.Comments {
		c := &a.Comments[i]
		f.comments = append(f.comments, comment{a.Tenant, c.Number, c.Kind, c.Answers, c.Digest(), c.AuthorID})
	}
}

// checkConversation checks rule 14: the comments, their counts and the assignee are those of
// the log.
func (f *actionRows) checkConversation(say sayer) {
	var logged []comment
	assignee := ""
	for _, l := range f.leaves {
		switch l.Type {
		case gatehouse.EventCommented:
			c := comment{author: l.Actor}
			if json.Unmarshal([]byte(l.Data), &c) != nil {
				say(14, "the entry %s cannot be read", l.Type)
			}
			logged = append(logged, c)
		case gatehouse.EventAssigned:
			var d struct {
				ID string `json:"assignee_id"`
			}
			if json.Unmarshal([]byte(l.Data), &d) != nil {
				say(14, "the entry %s cannot be read", l.Type)
			}
			assignee = d.ID
		}
	}
	if assignee != f.assignee {
		say(14, "the action is assigned to %q, the log says %q", f.assignee, assignee)
	}
	if len(logged) != len(f.comments) {
		say(14, "the action has %d comments, the log has %d", len(f.comments), len(logged))
		return
	}
	var counts gatehouse.Conversation
	answered := map[int]bool{}
	for i, c := range f.comments {
		if logged[i].tenant = c.tenant; c != logged[i] {
			say(14, "comment %d is not what the log says", c.Number)
		}
		counts.Comments++
		switch {
		case c.Kind == gatehouse.CommentQuestion:
			counts.Asked++
		case c.Kind == gatehouse.CommentAnswer && !answered[c.Answers]:
			answered[c.Answers] = true
			counts.Asked--
			counts.Answered++
		}
	}
	if counts != f.counts {
		say(14, "the counts of the conversation are %+v, and must be %+v", f.counts, counts)
	}
}
