package console

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

// Snoozes hides items from the caller's own inbox for a time.
type Snoozes interface {
	Snoozes(ctx context.Context) ([]gatehouse.Snooze, error)
	// SnoozeAction hides an action until a time; the zero time shows it again.
	SnoozeAction(ctx context.Context, id string, until time.Time) error
}

func (c *Console) conversationRoutes() []route {
	deciders := []gatehouse.Role{gatehouse.RoleApprover}
	list := []route{
		{pattern: "GET /actions/{id}/conversation", background: true, handle: c.conversation},
		{pattern: "POST /actions/{id}/comments", handle: c.comment},
		{pattern: "POST /actions/{id}/assign", roles: deciders, handle: c.assign},
	}
	if c.cfg.Snoozes != nil {
		list = append(list, route{pattern: "POST /actions/{id}/snooze", roles: deciders, handle: c.snooze})
	}
	return list
}

// conversation reports the comments to an open page.
func (c *Console) conversation(v *view) error {
	a, err := c.cfg.Actions.FindAction(v.ctx, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	return v.write(http.StatusOK, conversationList(v, a))
}

// comment adds a comment, a question or an answer. If it is refused, the page shows the error and the typed
// text.
func (c *Console) comment(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	r := gatehouse.CommentRequest{Text: strings.TrimSpace(v.form("text")), Kind: gatehouse.CommentKind(v.form("kind"))}
	if r.Kind == gatehouse.CommentAnswer {
		r.Answers, _ = strconv.Atoi(v.form("answers"))
	}
	return c.changeConversation(v, func(id string) error {
		_, err := c.cfg.Actions.Comment(v.ctx, id, r)
		return err
	})
}

// assign assigns the action to a person.
func (c *Console) assign(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	return c.changeConversation(v, func(id string) error {
		_, err := c.cfg.Actions.Assign(v.ctx, id, gatehouse.AssignRequest{Assignee: v.form("assignee")})
		return err
	})
}

// changeConversation calls do, which changes the conversation, and redirects to the page of the form. If do
// returns a refusal, it shows the action with the error.
func (c *Console) changeConversation(v *view, do func(id string) error) error {
	id := v.r.PathValue("id")
	err := do(id)
	switch gatehouse.CodeOf(err) {
	case "":
		return v.back(actionPath(id))
	case gatehouse.CodeNotFound:
		return err
	}
	return c.refuse(v, id, err)
}

// snooze hides an action, and continues with the next one of the list.
func (c *Console) snooze(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	id := v.r.PathValue("id")
	until, err := snoozeUntil(v.now, v.form("for"), v.form("until"), v.form("zone"))
	if err == nil {
		err = c.cfg.Snoozes.SnoozeAction(v.ctx, id, until)
	}
	switch gatehouse.CodeOf(err) {
	case "":
	case gatehouse.CodeNotFound:
		return err
	default:
		return c.refuse(v, id, err)
	}
	to := localPath(v.form("return"))
	if !isInbox(to) {
		return v.redirect(actionPath(id))
	}
	return v.redirect(queryOf(to).with(v.form("next")).url())
}

// snoozeUntil reads the end of a snooze: after an hour, tomorrow at 9, or at a typed time; the zero time for
// none. zone is the browser's offset from UTC in minutes, as JavaScript counts it.
func snoozeUntil(now time.Time, how, until, zone string) (time.Time, error) {
	minutes, err := strconv.Atoi(zone)
	if err != nil || minutes < -16*60 || minutes > 16*60 {
		minutes = 0
	}
	there := time.FixedZone("browser", -minutes*60)
	switch how {
	case "":
		return time.Time{}, nil
	case "1h":
		return now.Add(time.Hour), nil
	case "tomorrow":
		y, m, d := now.In(there).Date()
		return time.Date(y, m, d+1, 9, 0, 0, 0, there), nil
	}
	at, err := time.ParseInLocation("2006-01-02T15:04", until, there)
	if err != nil {
		return at, gatehouse.Violations{{Pointer: "/until", Detail: "choose a day and a time"}}.Err()
	}
	return at, nil
}

// mayTalk reports whether this person may take part in the conversation on an action.
func (v *view) mayTalk(a *gatehouse.Action) bool {
	if a.Status != gatehouse.StatusPending || a.Approval == nil {
		return false
	}
	return v.proposed(a) || v.mayAssign(a)
}

func (v *view) proposed(a *gatehouse.Action) bool { return a.ProposerID == v.person.ID }

// mayAssign reports whether this person may assign an action to somebody.
func (v *view) mayAssign(a *gatehouse.Action) bool {
	return a.Approval != nil && a.Status == gatehouse.StatusPending && (v.has(gatehouse.RoleAdmin) ||
		gate.MayAnswer(a.Approval, v.person, v.now) == nil || len(v.standsFor(a)) > 0)
}

// snoozedUntil is when an action that this person has snoozed is shown again; zero for none.
func (v *view) snoozedUntil(id string) time.Time {
	if !v.snoozesRead && v.c.cfg.Snoozes != nil {
		var err error
		if v.snoozes, err = v.c.cfg.Snoozes.Snoozes(v.ctx); err != nil {
			v.c.log.WarnContext(v.ctx, "snoozes not read", "request_id", v.requestID, "error", err)
		}
		v.snoozesRead = true
	}
	i := slices.IndexFunc(v.snoozes, func(s gatehouse.Snooze) bool { return s.ActionID == id })
	if i < 0 {
		return time.Time{}
	}
	return v.snoozes[i].Until
}

// filter is the store's filter for a query; the assignee "me" is this person.
func (v *view) filter(q inboxQuery) gatehouse.ActionFilter {
	f := q.filter()
	if f.Assignee == "me" {
		f.Assignee = v.person.ID
	}
	return f
}

// assigneeWords names the assignee of an action for this person; "" for none.
func (v *view) assigneeWords(a *gatehouse.Action) string {
	switch {
	case a.Approval == nil || a.Approval.Assignee == nil:
		return ""
	case a.Approval.Assignee.ID == v.person.ID:
		return "assigned to you"
	}
	return "assigned to " + a.Approval.Assignee.Name
}

// stayPath is the URL of the page of an action, within the list from which it was opened.
func stayPath(p *actionPage) string {
	if p.back != "" {
		return p.next.with(p.a.ID).url()
	}
	return actionPath(p.a.ID)
}

// commentVerb says what a comment does: "asks bot".
func commentVerb(a *gatehouse.Action, c *gatehouse.Comment) string {
	switch c.Kind {
	case gatehouse.CommentQuestion:
		return "asks " + a.ProposedBy
	case gatehouse.CommentAnswer:
		return "answers question " + strconv.Itoa(c.Answers)
	}
	return "says"
}

// talkMoments are the comments as lines of the history; the texts are in the conversation.
func talkMoments(a *gatehouse.Action) (list []moment) {
	for i := range a.Comments {
		c := &a.Comments[i]
		what := map[gatehouse.CommentKind]string{
			gatehouse.CommentQuestion: "question " + strconv.Itoa(c.Number),
			gatehouse.CommentAnswer:   "answer to question " + strconv.Itoa(c.Answers),
			gatehouse.CommentNote:     "comment",
		}[c.Kind]
		list = append(list, moment{at: c.At, what: what, who: c.Author})
	}
	return list
}
