package console

import (
	"cmp"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

// undo takes back a decision within its hold, and opens the new revision.
func (c *Console) undo(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	id := v.r.PathValue("id")
	answer, err := c.cfg.Actions.Undo(v.ctx, id)
	if gatehouse.CodeOf(err) == gatehouse.CodeNotFound {
		return err
	}
	if err != nil {
		return c.refuse(v, id, err)
	}
	return v.redirect(undonePath(v.form("return"), answer.Action))
}

// undonePath is the URL after an undo: the new revision, in the list from which the action was
// opened.
func undonePath(from string, next *gatehouse.Action) string {
	to := localPath(cmp.Or(from, actionPath(next.ID)))
	if !isInbox(to) {
		return actionPath(next.ID)
	}
	q := queryOf(to).with(next.ID)
	q.Done = next.Supersedes
	return q.url()
}

// undid reports whether the open action is the revision that an undo of the last decided action
// has made.
func (p *inboxPage) undid() bool {
	return p.done != nil && p.detail != nil && p.detail.a.UndoneBy != "" && p.detail.a.Supersedes == p.done.ID
}

// heldRejection reports whether a person has rejected the action, and the hold lasts.
func heldRejection(a *gatehouse.Action) bool {
	v, _ := a.HeldRejection()
	return v != nil
}

// awaits reports whether an action still waits for people.
func awaits(a *gatehouse.Action) bool {
	return a.Status == gatehouse.StatusPending && !heldRejection(a)
}

// shownStatus is the action's state on the page. A held rejection shows as rejected.
func shownStatus(a *gatehouse.Action) string {
	if heldRejection(a) {
		return string(gatehouse.StatusRejected)
	}
	return string(a.Status)
}

// undoUntil returns the end of the hold of a decision that this person may take back; zero for
// none.
func undoUntil(v *view, a *gatehouse.Action) (end time.Time) {
	if a.Approval == nil || !v.has(gatehouse.RoleApprover) ||
		a.Approval.VoteOf(v.person.Person) == nil && gate.MayAnswer(a.Approval, v.person, v.now) != nil {
		return end
	}
	if _, at := a.HeldRejection(); !at.IsZero() {
		end = at
	} else if a.Status == gatehouse.StatusApproved && a.DecidedAt != nil && a.Push != nil && a.Push.Attempts == 0 {
		end = a.DecidedAt.Add(a.HoldFor.D())
	}
	if !end.After(v.now) {
		return time.Time{}
	}
	return end
}

// undoParallel limits how many decisions are taken back at the same time. They are taken back in
// parallel so that the last one is reached before its hold ends.
const undoParallel = 16

// bulkUndone is the result of an undo of a bulk decision.
type bulkUndone struct {
	back  string
	items []undoneItem
	done  int
}

// undoneItem is one action: its new revision or, if err is set, why its decision stays.
type undoneItem struct {
	id string
	// a is nil for an action that cannot be read.
	a   *gatehouse.Action
	err *gatehouse.Error
}

// bulkUndo takes back each of the decisions that can still be taken back.
func (c *Console) bulkUndo(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	ids := v.r.PostForm["item"]
	if len(ids) == 0 || len(ids) > gatehouse.MaxBulk {
		return gatehouse.E(gatehouse.CodeInvalid, "1 to %d decisions can be undone at once", gatehouse.MaxBulk)
	}
	items := make([]undoneItem, len(ids))
	slots := make(chan struct{}, undoParallel)
	var wg sync.WaitGroup
	for i, id := range ids {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			defer func() { // no caller of this goroutine could recover
				if p := recover(); p != nil {
					c.log.Error("panic in an undo", "action", id, "panic", p, "stack", string(debug.Stack()))
					items[i] = undoneItem{id: id, err: gatehouse.E(gatehouse.CodeInternal, "the server failed")}
				}
			}()
			items[i] = c.undoOne(v, id)
		})
	}
	wg.Wait()
	b := &bulkUndone{back: localPath(v.form("return"))}
	var done []undoneItem
	for _, item := range items {
		if item.err != nil {
			b.items = append(b.items, item) // what stays comes first
		} else {
			done = append(done, item)
		}
	}
	b.done, b.items = len(done), append(b.items, done...)
	return v.render(http.StatusOK, "Undone", "/inbox", bulkUndoResult(b))
}

func (c *Console) undoOne(v *view, id string) undoneItem {
	item := undoneItem{id: id}
	answer, err := c.cfg.Actions.Undo(v.ctx, id)
	if err == nil {
		item.a = answer.Action
		return item
	}
	item.err = asError(err)
	item.a, _ = c.cfg.Actions.FindAction(v.ctx, id)
	return item
}

// title counts what was taken back, and what was not: "Undid 21 of 22; 1 was already sent".
func (b *bulkUndone) title() string {
	text := "Undid " + strconv.Itoa(b.done) + " of " + strconv.Itoa(len(b.items))
	var words []string
	counts := make(map[string]int)
	for _, item := range b.items {
		if item.err == nil {
			continue
		}
		word := tooLateWord(item)
		if counts[word]++; counts[word] == 1 {
			words = append(words, word)
		}
	}
	for i, word := range words {
		n := counts[word]
		words[i] = strconv.Itoa(n) + " " + pluralWord(n, "was", "were") + " " + word
	}
	if len(words) == 0 {
		return text
	}
	return text + "; " + strings.Join(words, ", ")
}

// tooLateWord says what had happened to an action whose decision stays.
func tooLateWord(item undoneItem) string {
	if item.a == nil || item.err.Code != gatehouse.CodeTooLate {
		return "not undone"
	}
	switch s := item.a.Status; s {
	case gatehouse.StatusRejected, gatehouse.StatusDenied, gatehouse.StatusExpired, gatehouse.StatusCanceled,
		gatehouse.StatusSuperseded, gatehouse.StatusPending:
		return "already " + string(s)
	}
	return "already sent"
}

// undoable lists the decided items whose decision this person can take back now, and the first end
// of their holds.
func (b *bulkView) undoable(v *view) (ids []string, until time.Time) {
	for _, item := range b.items {
		end := undoUntil(v, item.a)
		if item.result.Result != gatehouse.Decided || end.IsZero() {
			continue
		}
		if ids = append(ids, item.a.ID); until.IsZero() || end.Before(until) {
			until = end
		}
	}
	return ids, until
}

// holdText says what happens at the end of a decision's hold.
func holdText(a *gatehouse.Action, until time.Time) string {
	if heldRejection(a) {
		return bulkHoldText(gatehouse.Reject, until)
	}
	return bulkHoldText(gatehouse.Approve, until)
}

func bulkHoldText(d gatehouse.DecisionKind, until time.Time) string {
	if d == gatehouse.Reject {
		return "held until " + clock(until) + ", then the proposer is notified"
	}
	return "held until " + clock(until) + ", then it is sent"
}
