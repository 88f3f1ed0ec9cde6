package console

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

// bulkView is a selection of actions with its total effect, shown before the decision.
type bulkView struct {
	items    []bulkItem
	excluded []bulkItem
	totals   card.Totals
	back     string
	// answer is set after the decision.
	answer   *gatehouse.BulkAnswer
	decision gatehouse.DecisionKind
	failed   *gatehouse.Error
}

// bulkItem is one action of the selection; why is the reason for leaving it out.
type bulkItem struct {
	a     *gatehouse.Action
	short card.Phrase
	// payload is the complete change; an item that cannot be shown completely is left out.
	payload payload
	why     string
	result  gatehouse.BulkResult
}

// bulkPage shows the total effect of a selection.
func (c *Console) bulkPage(v *view) error {
	return c.showBulk(v, http.StatusOK, v.pickedIDs(), &bulkView{back: localPath(v.query("return"))})
}

func (c *Console) showBulk(v *view, status int, picked []string, b *bulkView) error {
	if len(picked) > gatehouse.MaxBulk {
		return gatehouse.E(gatehouse.CodeInvalid, "at most %d can be decided at once", gatehouse.MaxBulk)
	}
	for _, id := range picked {
		a, err := c.cfg.Actions.FindAction(v.ctx, id)
		if err != nil {
			if gatehouse.CodeOf(err) == gatehouse.CodeNotFound {
				continue
			}
			return err
		}
		b.add(v, a)
	}
	actions := make([]*gatehouse.Action, len(b.items))
	for i, item := range b.items {
		actions[i] = item.a
	}
	b.totals = card.Effect(actions, card.Person{ID: v.person.ID, Person: v.person.Person, Name: v.person.Name}, v.now)
	return v.render(status, "Decide several", "/inbox", bulkReview(v, b))
}

func (b *bulkView) add(v *view, a *gatehouse.Action) {
	item := bulkItem{a: a, short: shortOf(a)}
	switch err := v.mayDecide(a); {
	case err != nil:
		item.why = asError(err).Detail
	case card.ClaimDiffers(a):
		item.why = "the agent claims " + claimOf(a) + ", but the change has another amount: decide the action on its own page"
	case !card.Ladder(a).Bulk:
		item.why = "actions of " + a.RiskLevel.String() + " cannot be decided in bulk"
	case !fitsBulk(a):
		item.why = "it is too long to be shown here in full"
	}
	if item.why != "" {
		b.excluded = append(b.excluded, item)
		return
	}
	item.short, item.payload = card.Describe(a), newPayload(a, false)
	b.items = append(b.items, item)
}

// exceeding counts the items that would exceed a ceiling now.
func exceeding(items []bulkItem) (n int) {
	for _, item := range items {
		if len(item.a.Exceeds) > 0 {
			n++
		}
	}
	return n
}

// fitsBulk reports whether the page can show an action in full beside others. A large change is not
// parsed at all, because a selection may have hundreds of them.
func fitsBulk(a *gatehouse.Action) bool { return !large(a) && newPayload(a, false).hidden == 0 }

// leaveOut removes from an approval every item that the page of the selection does not show in
// full, whatever the form names.
func (c *Console) leaveOut(v *view, d *gatehouse.BulkDecision) (out []gatehouse.BulkResult, err error) {
	if d.Decision != gatehouse.Approve || len(d.Items) > gatehouse.MaxBulk {
		return nil, nil
	}
	var kept []gatehouse.BulkItem
	for _, item := range d.Items {
		a, err := c.cfg.Actions.FindAction(v.ctx, item.ActionID)
		switch {
		case err != nil && gatehouse.CodeOf(err) != gatehouse.CodeNotFound:
			return nil, err
		case err == nil && !fitsBulk(a):
			out = append(out,
				gatehouse.BulkResult{ActionID: a.ID, Skipped: "not_shown",
					Detail: "it is too long to be shown in full beside others"})
		default:
			kept = append(kept, item)
		}
	}
	d.Items = kept
	return out, nil
}

// bulkDecide applies one answer to all items of the form, each with the digest that was shown.
func (c *Console) bulkDecide(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	d := gatehouse.BulkDecision{
		Decision: gatehouse.DecisionKind(v.form("decision")),
		Notes:    strings.TrimSpace(v.form("notes")),
		Hold:     true,
	}
	var picked []string
	for _, item := range v.r.PostForm["item"] {
		id, digest, _ := strings.Cut(item, " ")
		picked = append(picked, id)
		d.Items = append(d.Items, gatehouse.BulkItem{ActionID: id, Digest: gatehouse.Digest(digest)})
	}
	if d.Decision == gatehouse.Reject && d.Notes == "" {
		return c.showBulk(v, http.StatusUnprocessableEntity, picked, &bulkView{
			back:   localPath(v.form("return")),
			failed: gatehouse.E(gatehouse.CodeInvalid, "say why you reject them: the proposers read it"),
		})
	}
	tooLong, err := c.leaveOut(v, &d)
	if err != nil {
		return err
	}
	answer := &gatehouse.BulkAnswer{}
	if len(d.Items) > 0 || len(tooLong) == 0 {
		if answer, err = c.cfg.Actions.BulkDecide(v.ctx, d); err != nil {
			return err
		}
	}
	answer.Results = append(answer.Results, tooLong...)
	answer.Skipped += len(tooLong)
	b := &bulkView{back: localPath(v.form("return")), answer: answer, decision: d.Decision}
	for _, r := range answer.Results {
		a, err := c.cfg.Actions.FindAction(v.ctx, r.ActionID)
		if err != nil {
			continue
		}
		b.items = append(b.items, bulkItem{a: a, short: shortOf(a), result: r})
	}
	return v.render(http.StatusOK, "Decided", "/inbox", bulkResult(v, b))
}

// claimOf is the amount that the proposer claims, when the payload has another one.
func claimOf(a *gatehouse.Action) string {
	if large(a) {
		return card.Claim(a, nil)
	}
	return card.Claim(a, card.Amounts(a))
}

// sumText formats the sum of the absolute amounts, and the net sum.
func sumText(s card.Sum) string {
	moved, net, _ := strings.Cut(s.Total(), ", net ")
	return moved + " moved, net " + minus(net)
}

// answerText counts the items that this answer did not decide, by result; it leaves out zeros.
func answerText(b *gatehouse.BulkAnswer) string {
	var parts []string
	add := func(n int, text string) {
		if n > 0 {
			parts = append(parts, text)
		}
	}
	add(b.Voted, plural(b.Voted, "vote", "votes")+" stored")
	add(b.Replayed, strconv.Itoa(b.Replayed)+" that you had already decided")
	add(b.Skipped, strconv.Itoa(b.Skipped)+" skipped")
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + "."
}
