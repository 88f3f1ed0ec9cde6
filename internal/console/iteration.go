package console

import (
	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

// iteration is what a page shows about the iterations of a question: the number of the present one, the previous
// one, and what has changed since.
type iteration struct {
	number  int
	before  *gatehouse.Action // nil for none
	changes []card.Change
	// hidden counts the changes that do not fit on a page.
	hidden int
}

// iterationOf compares an action with the iteration before it.
func (c *Console) iterationOf(v *view, a *gatehouse.Action) (it iteration, err error) {
	n, previous := card.Iteration(a)
	it.number = n
	if previous == "" || n < 2 {
		return it, nil
	}
	before, err := c.cfg.Actions.FindAction(v.ctx, previous)
	if gatehouse.CodeOf(err) == gatehouse.CodeNotFound {
		return it, nil // the proposer's context can name any id
	}
	if err != nil || !card.Precedes(before, a) {
		return it, err
	}
	it.before = before
	it.changes, it.hidden = fitting(card.Revised(before, a))
	return it, nil
}

// fitting keeps the changes that fit on a page, and counts the rest.
func fitting(all []card.Change) (shown []card.Change, hidden int) {
	budget := firstWeight
	for i, x := range all {
		if budget -= weight(x); budget < 0 {
			return all[:i], len(all) - i
		}
	}
	return all, 0
}
