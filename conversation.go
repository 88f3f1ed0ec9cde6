package gatehouse

import (
	"context"
	"slices"
	"time"
)

// CommentKind is the kind of a comment.
type CommentKind string

// The kinds of comments.
const (
	// CommentNote is a remark to everybody who can see the action.
	CommentNote CommentKind = "comment"
	// CommentQuestion asks the proposer.
	CommentQuestion CommentKind = "question"
	// CommentAnswer answers a question.
	CommentAnswer CommentKind = "answer"
)

// The bounds of a conversation.
const (
	MaxCommentBytes = 4096
	// MaxComments bounds the comments on one action.
	MaxComments = 100
)

// EventCommented is the type of the leaf of a comment. Its data has the comment's number,
// kind and text_digest; for an answer also the question's number in answers and the id of the
// question's author in asker. EventAssigned is the type of the leaf of an assignment; its data has the
// assignee's name and id, "" for nobody.
const (
	EventCommented = "hitl.commented"
	EventAssigned  = "hitl.assigned"
)

// Comment is one message on an action. It decides nothing, and never changes.
type Comment struct {
	// Number counts from 1 within the action.
	Number int         `json:"number"`
	Kind   CommentKind `json:"kind"`
	// Answers is the number of the question that an answer belongs to, else 0.
	Answers int    `json:"answers,omitempty"`
	Text    string `json:"text"`
	// Author is the name of the principal AuthorID.
	Author   string    `json:"author"`
	AuthorID string    `json:"author_id"`
	At       time.Time `json:"at"`
}

// Digest is the digest of the text, as the log has it.
func (c *Comment) Digest() Digest { return NewDigest(JSON(c.Text)) }

// Conversation counts the comments on an action.
type Conversation struct {
	// Comments counts all messages of every kind.
	Comments int `json:"comments"`
	// Asked counts the questions that wait for an answer, Answered the others.
	Asked    int `json:"asked"`
	Answered int `json:"answered"`
}

// Assignee is the person to whom an action is assigned. The assignment does not change who may
// decide.
type Assignee struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// CommentRequest writes a comment.
type CommentRequest struct {
	Text string `json:"text"`
	// Kind is comment, question or answer. "" means answer if Answers is set, else comment.
	Kind CommentKind `json:"kind,omitempty"`
	// Answers is the number of the question that the text answers.
	Answers int `json:"answers,omitempty"`
}

// Validate returns an [Error] with code invalid, and sets the default kind.
func (r *CommentRequest) Validate() error {
	var v Violations
	v.CheckText("/text", r.Text, MaxCommentBytes)
	if r.Text == "" {
		v.Add("/text", "is required")
	}
	if r.Kind == "" {
		r.Kind = CommentNote
		if r.Answers != 0 {
			r.Kind = CommentAnswer
		}
	}
	if !slices.Contains(CommentKinds(), r.Kind) {
		v.Add("/kind", "must be comment, question or answer")
	}
	switch isAnswer := r.Kind == CommentAnswer; {
	case isAnswer && r.Answers < 1:
		v.Add("/answers", "must be the number of the question")
	case !isAnswer && r.Answers != 0:
		v.Add("/answers", "is allowed for an answer only: the number of its question")
	}
	return v.Err()
}

// CommentKinds lists the kinds of comments.
func CommentKinds() []CommentKind { return []CommentKind{CommentNote, CommentQuestion, CommentAnswer} }

// AssignRequest assigns an action to a person, by id or name; "" takes the assignment back.
type AssignRequest struct {
	// Assignee is a person's id or name, "" to assign the action to nobody.
	Assignee string `json:"assignee"`
}

// OpenQuestions lists the questions that have no answer, in order.
func (a *Action) OpenQuestions() (open []*Comment) {
	for i := range a.Comments {
		if c := &a.Comments[i]; c.Kind == CommentQuestion && a.AnswerTo(c.Number) == nil {
			open = append(open, c)
		}
	}
	return open
}

// AnswerTo returns the first answer to a question, nil for none.
func (a *Action) AnswerTo(number int) *Comment {
	for i := range a.Comments {
		if a.Comments[i].Answers == number {
			return &a.Comments[i]
		}
	}
	return nil
}

// AskedAfter reports whether a pending action has an open question with a higher number.
func (a *Action) AskedAfter(number int) bool {
	return a.Status == StatusPending &&
		slices.ContainsFunc(a.OpenQuestions(), func(c *Comment) bool { return c.Number > number })
}

// LastQuestion returns the highest of seen and the numbers of the open questions. Pass the result as seen
// to the next [ConversationService.WaitAsked].
func (a *Action) LastQuestion(seen int) int {
	for _, c := range a.OpenQuestions() {
		seen = max(seen, c.Number)
	}
	return seen
}

// ConversationService lets people and proposers talk about a pending action.
type ConversationService interface {
	// Comment adds a comment. It is refused with already_decided or expired once the action
	// is no longer pending.
	Comment(ctx context.Context, id string, r CommentRequest) (*Action, error)
	// Assign makes a person the assignee of the action. It does not change who may decide.
	Assign(ctx context.Context, id string, r AssignRequest) (*Action, error)
	// WaitAsked is WaitAction that also returns while the action has an open question with a
	// number above seen. A caller that passes [Action.LastQuestion] gets each question once.
	WaitAsked(ctx context.Context, id string, wait time.Duration, until Until, seen int) (*Action, error)
}

// MaxSnoozes limits how many actions a person can have snoozed. MaxSnooze is the longest time from now to a snooze's
// end. A snooze ends at the latest SnoozeEnds before the action's deadline.
const (
	MaxSnoozes = 500
	MaxSnooze  = 31 * 24 * time.Hour
	SnoozeEnds = 4 * time.Hour
)

// Snooze hides a pending action from a person's own inbox. Nobody else sees the snooze, and the log does
// not record it.
type Snooze struct {
	ActionID string
	// Until is when the action is shown again.
	Until time.Time
}

// ConversationReader finds comments and snoozes.
type ConversationReader interface {
	// ListComments returns the comments on an action that is not archived, in order.
	ListComments(actionID string) ([]Comment, error)
	// ListSnoozes returns a person's snoozes that have not ended, of pending actions.
	ListSnoozes(principalID string) ([]Snooze, error)
}

// ConversationWriter writes comments, assignments and snoozes.
type ConversationWriter interface {
	// InsertComment stores a comment, and the counts of the conversation with this comment. It
	// returns ErrConflict unless the approval is still requested and c.Number is the number of stored
	// comments plus 1.
	InsertComment(approvalID string, c *Comment, after Conversation) error
	// SetAssignee stores the assignee of an approval, nil for none; ErrConflict unless the approval is still requested.
	SetAssignee(approvalID string, to *Assignee) error
	// PutSnooze stores or replaces a snooze of an approval, and deletes the person's snoozes that have ended. It
	// returns ErrConflict unless the approval is still requested.
	PutSnooze(principalID, approvalID string, until time.Time) error
	// EndSnoozes deletes a person's snooze of an action; with principalID "", those of all
	// persons.
	EndSnoozes(principalID, approvalID string) error
}
