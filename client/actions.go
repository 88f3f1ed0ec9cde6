package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

const actionsPath = "/proposed-actions"

func actionPath(id, suffix string) string { return actionsPath + "/" + segment(id) + suffix }

// segment escapes an id as one path segment. An empty id, "." and ".." become "-", which is not an id.
func segment(id string) string {
	switch id {
	case "", ".", "..":
		return "-"
	}
	return url.PathEscape(id)
}

// Propose proposes a change. existed is true if the server already has an action with the
// proposal's idempotency_key and content. After a connection error and a second try, existed can be
// false although the server had the action before.
func (c *Client) Propose(ctx context.Context, p *gatehouse.Proposal) (a *gatehouse.Action, existed bool, err error) {
	a, got, err := posted[gatehouse.Action](ctx, c, actionsPath, p)
	return a, err == nil && got.status == http.StatusOK && !got.replayed, err
}

// FindAction reads an action by its own id or its approval's id.
func (c *Client) FindAction(ctx context.Context, id string) (*gatehouse.Action, error) {
	return get[gatehouse.Action](ctx, c, actionPath(id, ""), nil)
}

// WaitAction waits until the action is decided or finished, with as many long polls as necessary.
// When the time is over, it returns the action's present state, or the last error if the server
// still does not answer.
func (c *Client) WaitAction(
	ctx context.Context, id string, wait time.Duration, until gatehouse.Until,
) (*gatehouse.Action, error) {
	return c.WaitAsked(ctx, id, wait, until, gatehouse.MaxComments) // no question has a greater number
}

// WaitAsked is WaitAction that also returns once the conversation has an unanswered question whose number
// is above seen. Pass [gatehouse.Action.LastQuestion] as seen to the next call; then each question is
// returned once.
func (c *Client) WaitAsked(
	ctx context.Context, id string, wait time.Duration, until gatehouse.Until, seen int,
) (*gatehouse.Action, error) {
	deadline := time.Now().Add(wait)
	for try := 0; ; try++ {
		start := time.Now()
		poll := pollUntil(start, deadline)
		q := url.Values{}
		if poll > 0 {
			q.Set("wait", poll.String())
			q.Set("until", string(until))
			if seen < gatehouse.MaxComments {
				q.Set("questions_after", strconv.Itoa(seen))
			}
		}
		a, err := get[gatehouse.Action](ctx, c, actionPath(id, ""), q)
		switch {
		case err != nil:
			if err := c.retry.outlast(ctx, try, time.Until(deadline), err); err != nil {
				return nil, err
			}
			continue
		case settled(a, until) || a.AskedAfter(seen) || !time.Now().Before(deadline):
			return a, nil
		}
		if try, err = c.retry.again(ctx, try, start, poll, deadline); err != nil {
			return nil, err
		}
	}
}

// Comment adds a question, an answer or a comment to a pending action.
func (c *Client) Comment(ctx context.Context, id string, r gatehouse.CommentRequest) (*gatehouse.Action, error) {
	return post[gatehouse.Action](ctx, c, true, actionPath(id, "/comments"), r)
}

// Assign assigns a pending action to a person.
func (c *Client) Assign(ctx context.Context, id string, r gatehouse.AssignRequest) (*gatehouse.Action, error) {
	return post[gatehouse.Action](ctx, c, true, actionPath(id, "/assign"), r)
}

func settled(a *gatehouse.Action, until gatehouse.Until) bool {
	if until == gatehouse.UntilFinished {
		return a.Status.Finished()
	}
	return a.Status.Decided()
}

// ListActions returns a page.
func (c *Client) ListActions(ctx context.Context, f gatehouse.ActionFilter) (gatehouse.Page[*gatehouse.Action], error) {
	q := paging(f.Cursor, f.Limit)
	set(q, "status", string(f.Status))
	set(q, "action_type", f.ActionType)
	set(q, "proposed_by", f.ProposedBy)
	set(q, "q", f.Query)
	set(q, "sort", string(f.Sort))
	set(q, "decided", string(f.Decided))
	set(q, "group", f.AskedGroup)
	set(q, "assignee", f.Assignee)
	if f.Archived {
		q.Set("archived", "true")
	}
	if f.RiskLevel != 0 {
		q.Set("risk_level", strconv.Itoa(int(f.RiskLevel)))
	}
	return page[*gatehouse.Action](ctx, c, actionsPath, q)
}

// Decide approves or rejects an action.
func (c *Client) Decide(ctx context.Context, id string, d gatehouse.Decision) (*gatehouse.Answer, error) {
	return post[gatehouse.Answer](ctx, c, true, actionPath(id, "/decide"), d)
}

// Answer approves or rejects an action, by its id or its approval's id. If the same decision was already made,
// Answer succeeds whoever made it; Decide succeeds only if the caller was among those who made it. Answer
// takes no AcknowledgeStale.
func (c *Client) Answer(ctx context.Context, id string, d gatehouse.Decision) (*gatehouse.ShortAnswer, error) {
	verb := "/reject"
	switch {
	case d.AcknowledgeStale:
		return nil, gatehouse.E(gatehouse.CodeInvalid, "only Decide takes acknowledge_stale")
	case d.Decision == gatehouse.Approve:
		verb = "/approve"
	case d.Decision != gatehouse.Reject:
		return nil, gatehouse.E(gatehouse.CodeInvalid, "decision must be approved or rejected")
	}
	body := struct {
		Notes   string           `json:"notes,omitempty"`
		Digest  gatehouse.Digest `json:"digest,omitempty"`
		Confirm string           `json:"confirm,omitempty"`
		Hold    bool             `json:"hold,omitempty"`
	}{d.Notes, d.Digest, d.Confirm, d.Hold}
	return post[gatehouse.ShortAnswer](ctx, c, true, "/approvals/"+segment(id)+verb, body)
}

// BulkDecide gives the same answer to many actions.
func (c *Client) BulkDecide(ctx context.Context, b gatehouse.BulkDecision) (*gatehouse.BulkAnswer, error) {
	return post[gatehouse.BulkAnswer](ctx, c, true, actionsPath+"/bulk-decide", b)
}

// Cancel withdraws an action.
func (c *Client) Cancel(ctx context.Context, id string) (*gatehouse.CancelAnswer, error) {
	return post[gatehouse.CancelAnswer](ctx, c, true, actionPath(id, "/cancel"), nil)
}

// Undo takes back a decision within its hold. A new revision of the same content replaces the
// action, and is pending unless the policy denies it.
func (c *Client) Undo(ctx context.Context, id string) (*gatehouse.UndoAnswer, error) {
	return post[gatehouse.UndoAnswer](ctx, c, true, actionPath(id, "/undo"), nil)
}

// Rebase replaces a pending action with a new one that has the same change and the target's
// current state, which the gate reads.
func (c *Client) Rebase(ctx context.Context, id string) (*gatehouse.Action, error) {
	return post[gatehouse.Action](ctx, c, true, actionPath(id, "/rebase"), nil)
}

// Edit replaces a pending action with a revision that has the caller's edited change; the proposer stays the same.
// The caller must be permitted to decide the action. An operator can also edit a failed action whose content the
// target refused.
func (c *Client) Edit(ctx context.Context, id string, e gatehouse.EditRequest) (*gatehouse.Action, error) {
	return post[gatehouse.Action](ctx, c, true, actionPath(id, "/edit"), e)
}

// Revise replaces a pending action with a new revision.
func (c *Client) Revise(ctx context.Context, id string, p *gatehouse.Proposal) (*gatehouse.Action, error) {
	return post[gatehouse.Action](ctx, c, true, actionPath(id, "/revise"), p)
}

// Reverse proposes the reversal of an applied action.
func (c *Client) Reverse(ctx context.Context, id string, r gatehouse.ReverseRequest) (*gatehouse.Action, error) {
	return post[gatehouse.Action](ctx, c, true, actionPath(id, "/reverse"), r)
}

// Evidence returns everything that is known about an action.
func (c *Client) Evidence(ctx context.Context, id string) (*gatehouse.Evidence, error) {
	return get[gatehouse.Evidence](ctx, c, actionPath(id, "/evidence"), nil)
}

// ListMirror returns a page of the applied changes.
func (c *Client) ListMirror(
	ctx context.Context, cursor string, limit int,
) (gatehouse.Page[*gatehouse.AppliedMirror], error) {
	return page[*gatehouse.AppliedMirror](ctx, c, "/applied", paging(cursor, limit))
}

// ListCorpus returns a page of the corpus, the lessons of past decisions.
func (c *Client) ListCorpus(
	ctx context.Context, cursor string, limit int,
) (gatehouse.Page[*gatehouse.CorpusEntry], error) {
	return page[*gatehouse.CorpusEntry](ctx, c, "/corpus", paging(cursor, limit))
}

// page reads one page of a list.
func page[T any](ctx context.Context, c *Client, path string, q url.Values) (gatehouse.Page[T], error) {
	out, err := get[gatehouse.Page[T]](ctx, c, path, q)
	if err != nil {
		return gatehouse.Page[T]{}, err
	}
	return *out, nil
}

func paging(cursor string, limit int) url.Values {
	q := url.Values{}
	set(q, "cursor", cursor)
	if limit != 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	return q
}

func set(q url.Values, name, value string) {
	if value != "" {
		q.Set(name, value)
	}
}
