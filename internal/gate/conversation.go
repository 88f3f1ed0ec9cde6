package gate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// Comment adds a comment to a pending action. The conversation ends with the decision,
// since it belongs to what the deciders knew.
func (g *Gate) Comment(ctx context.Context, id string, r gatehouse.CommentRequest) (*gatehouse.Action, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	if strings.TrimSpace(r.Text) == "" {
		return nil, gatehouse.Violations{{Pointer: "/text", Detail: "is required"}}.Err()
	}
	return g.changeConversation(ctx, id, func(tx gatehouse.Tx, c *gatehouse.Caller, a *gatehouse.Action) error {
		if err := g.mayComment(tx, c, a, r.Kind); err != nil {
			return err
		}
		comments, counts := a.Comments, a.Approval.Conversation
		if len(comments) >= gatehouse.MaxComments {
			return gatehouse.Violations{
				{Pointer: "/text", Detail: "cannot be added: the action has the maximum number of comments"}}.Err()
		}
		switch r.Kind {
		case gatehouse.CommentQuestion:
			counts.Asked++
		case gatehouse.CommentAnswer:
			if r.Answers > len(comments) || comments[r.Answers-1].Kind != gatehouse.CommentQuestion {
				return gatehouse.Violations{{Pointer: "/answers", Detail: "is not the number of a question"}}.Err()
			}
			if a.AnswerTo(r.Answers) == nil {
				counts.Asked--
				counts.Answered++
			}
		}
		counts.Comments++
		comment := &gatehouse.Comment{
			Number: counts.Comments, Kind: r.Kind, Answers: r.Answers, Text: r.Text,
			Author: c.Principal.Name, AuthorID: c.Principal.ID, At: tx.Now(),
		}
		if err := tx.InsertComment(a.Approval.ID, comment, counts); err != nil {
			return err
		}
		a.Comments, a.Approval.Conversation = append(comments, *comment), counts
		if r.Kind == gatehouse.CommentAnswer {
			if err := tx.EndSnoozes("", a.Approval.ID); err != nil {
				return err
			}
		}
		return record(tx, a, gatehouse.EventCommented, c.Principal.ID, a.Status, a.Status, commentData(a, comment))
	})
}

// commentData is the data of a comment's leaf. The text stays out of the log, as a
// rationale does.
func commentData(a *gatehouse.Action, c *gatehouse.Comment) map[string]any {
	data := map[string]any{
		"approval": a.Approval.ID, "number": c.Number, "kind": string(c.Kind), "text_digest": string(c.Digest()),
	}
	if c.Answers > 0 {
		data["answers"], data["asker"] = c.Answers, a.Comments[c.Answers-1].AuthorID
	}
	return data
}

// mayComment checks that the caller may write a comment of a kind.
func (g *Gate) mayComment(
	tx gatehouse.ReadTx, c *gatehouse.Caller, a *gatehouse.Action, kind gatehouse.CommentKind,
) error {
	proposer := a.ProposerID == c.Principal.ID
	switch {
	case kind == gatehouse.CommentAnswer && !proposer:
		return gatehouse.E(gatehouse.CodeRoleRequired, "only the proposer answers questions; write a comment instead")
	case kind == gatehouse.CommentQuestion && proposer:
		return gatehouse.E(gatehouse.CodeRoleRequired, "questions go to the proposer; write a comment instead")
	case proposer, c.Principal.Has(gatehouse.RoleAdmin):
		return nil
	}
	return g.mayAnswer(tx, a, c.Principal)
}

// Assign makes a person the assignee of a pending action, and ends that person's snooze of it.
// Only somebody who may decide the action can be assigned. The name "" removes the assignee.
func (g *Gate) Assign(ctx context.Context, id string, r gatehouse.AssignRequest) (*gatehouse.Action, error) {
	return g.changeConversation(ctx, id, func(tx gatehouse.Tx, c *gatehouse.Caller, a *gatehouse.Action) error {
		if !c.Principal.Has(gatehouse.RoleAdmin) {
			if err := g.mayAnswer(tx, a, c.Principal); err != nil {
				return err
			}
		}
		to, err := g.assignee(tx, a, r.Assignee)
		if err != nil {
			return err
		}
		if old := a.Approval.Assignee; to == old || to != nil && old != nil && *to == *old {
			return nil
		}
		if err := tx.SetAssignee(a.Approval.ID, to); err != nil {
			return err
		}
		a.Approval.Assignee = to
		data := map[string]any{"approval": a.Approval.ID, "assignee": "", "assignee_id": ""}
		if to != nil {
			data["assignee"], data["assignee_id"] = to.Name, to.ID
			if err := tx.EndSnoozes(to.ID, a.Approval.ID); err != nil {
				return err
			}
		}
		return record(tx, a, gatehouse.EventAssigned, c.Principal.ID, a.Status, a.Status, data)
	})
}

// assignee finds the person with a name or id; nil for "".
func (g *Gate) assignee(tx gatehouse.ReadTx, a *gatehouse.Action, name string) (*gatehouse.Assignee, error) {
	if name = strings.TrimSpace(name); name == "" {
		return nil, nil
	}
	refuse := func(why string) error {
		return gatehouse.Violations{{Pointer: "/assignee", Detail: why}}.Err()
	}
	p, err := tx.FindPrincipal(name)
	switch {
	case errors.Is(err, gatehouse.ErrNotFound):
		return nil, refuse("nobody has this name")
	case err != nil:
		return nil, err
	case p.Disabled:
		return nil, refuse("is disabled")
	}
	why := g.mayAnswer(tx, a, p)
	var refusal *gatehouse.Error
	switch {
	case errors.As(why, &refusal):
		return nil, refuse("may not decide it: " + refusal.Detail)
	case why != nil:
		return nil, why
	}
	return &gatehouse.Assignee{ID: p.ID, Name: p.Name}, nil
}

// changeConversation locks a pending action that the caller may read, reads its comments, and
// runs fn on it.
func (g *Gate) changeConversation(
	ctx context.Context, id string, fn func(gatehouse.Tx, *gatehouse.Caller, *gatehouse.Action) error,
) (*gatehouse.Action, error) {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return nil, err
	}
	found, err := g.FindAction(ctx, id)
	if err != nil {
		return nil, err
	}
	by := usecase.Case{By: c}
	out, err := usecase.Perform(ctx, g.Runner, by, func(tx gatehouse.Tx) (*gatehouse.Action, error) {
		a, err := tx.LockAction(found.ID)
		if err != nil {
			return nil, err
		}
		switch {
		case a.Status == gatehouse.StatusPending && !tx.Now().Before(a.Approval.End()), a.Status == gatehouse.StatusExpired:
			return nil, expiredError(a)
		case a.Status != gatehouse.StatusPending:
			return nil, alreadyDecided(a)
		}
		if a.Comments, err = tx.ListComments(a.ID); err != nil {
			return nil, err
		}
		return a, fn(tx, c, a)
	})
	if err != nil {
		return nil, usecase.NotFound(err, "action")
	}
	g.Hints.Notify(out.ID)
	g.describe(out)
	return out, nil
}

// SnoozeAction hides a pending action from the caller's own inbox until a time; the zero
// time shows it again. It is shown 4 hours before its deadline in any case.
func (g *Gate) SnoozeAction(ctx context.Context, id string, until time.Time) error {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		return err
	}
	a, err := g.FindAction(ctx, id)
	if err != nil {
		return err
	}
	err = g.Do(ctx, c, func(tx gatehouse.Tx) error {
		if a.Approval == nil {
			return alreadyDecided(a)
		}
		if until.IsZero() {
			return tx.EndSnoozes(c.Principal.ID, a.Approval.ID)
		}
		a, err := tx.LockAction(a.ID)
		if err != nil {
			return err
		}
		if a.Status != gatehouse.StatusPending {
			return alreadyDecided(a)
		}
		last := a.Approval.End().Add(-gatehouse.SnoozeEnds)
		var v gatehouse.Violations
		switch {
		case !until.After(tx.Now()), until.After(tx.Now().Add(gatehouse.MaxSnooze)):
			v.Add("/until", "must be a time within the next 31 days")
		case !last.After(tx.Now()):
			v.Add("/until", "cannot be set: the action must be decided within 4 hours, so it stays in your inbox")
		}
		list, err := tx.ListSnoozes(c.Principal.ID)
		if err != nil {
			return err
		}
		known := slices.ContainsFunc(list, func(s gatehouse.Snooze) bool { return s.ActionID == a.ID })
		if len(list) >= gatehouse.MaxSnoozes && !known {
			v.Add("/until", "cannot be set: you have the maximum number of snoozed items")
		}
		if err := v.Err(); err != nil {
			return err
		}
		if until.After(last) {
			until = last
		}
		return tx.PutSnooze(c.Principal.ID, a.Approval.ID, until)
	})
	return usecase.NotFound(err, "action")
}

// Snoozes lists what the caller has snoozed.
func (g *Gate) Snoozes(ctx context.Context) (list []gatehouse.Snooze, err error) {
	err = g.View(ctx, "action", func(tx gatehouse.ReadTx, c *gatehouse.Caller) (err error) {
		list, err = tx.ListSnoozes(c.Principal.ID)
		return err
	})
	return list, err
}

// readComments reads an action's comments. An archived action comes with its comments.
func (g *Gate) readComments(ctx context.Context, a *gatehouse.Action) error {
	if a.Approval == nil || a.Approval.Conversation.Comments == 0 || a.ArchivedAt != nil {
		return nil
	}
	return g.Store.View(ctx, a.Tenant, func(tx gatehouse.ReadTx) (err error) {
		a.Comments, err = tx.ListComments(a.ID)
		return err
	})
}
