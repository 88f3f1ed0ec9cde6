package card

import "github.com/gatehouse-dev/gatehouse"

// Sentence says in one sentence what approving an action leads to: "Change
// price of SKU-1042 from 10.00 to 12.50 USD; reversible". See [Describe].
func Sentence(a *gatehouse.Action) string { return Describe(a).String() }

// Short says it with verb and object only: "Change price of SKU-1042". A line of
// a list has [Row].
func Short(a *gatehouse.Action) string {
	n := newNarrator(a, longInButton)
	return n.undo(n.short()).String()
}

// Button says it for a button: "Change price to 12.50 USD".
func Button(a *gatehouse.Action) string {
	n := newNarrator(a, longInButton)
	p := n.button()
	return n.undo(p).String()
}

// longTitle is the length, in characters, after which the question of an
// approval step is cut in a row.
const longTitle = 80

// Describe returns the sentence in parts, after the question that an approval
// step of a workflow asks. It is made from the operation, the
// target and the change. The action type colours it only where the operation
// leaves open what it does: it is what the proposer calls the action, and a
// "note" that deletes is a deletion.
func Describe(a *gatehouse.Action) Phrase {
	return newNarrator(a, longInSentence).describe()
}

func (n *narrator) describe() Phrase {
	a, p := n.a, n.undo(n.sentence())
	if a.Title != "" {
		p = append(Phrase{{Text: a.Title, Value: true}, {Text: " — "}}, p...)
	}
	switch Reversibility(a) {
	case Reversible:
		p.say("; reversible")
	case NotReversible:
		p.say("; not reversible")
	}
	return p
}

// Reversal says whether an action can be undone.
type Reversal string

// What is known of that.
const (
	Reversible    Reversal = "reversible"
	NotReversible Reversal = "not reversible"
	ReversalOpen  Reversal = "" // the receipt will say
)

// Reversibility says what is known of undoing an action. Once it was carried
// out, its receipt tells. Before that, an update is reversible if its connector
// says how to undo one, and all that it overwrites is in its pre-image.
func Reversibility(a *gatehouse.Action) Reversal {
	if r := a.Receipt; r != nil && r.Outcome == gatehouse.ReceiptApplied {
		if r.Reversible {
			return Reversible
		}
		return NotReversible
	}
	if !a.Undoable || a.Operation != "update" {
		return ReversalOpen
	}
	members, err := a.ProposedChange.Fields()
	if err != nil || len(members) == 0 {
		return ReversalOpen
	}
	before, err := a.CurrentState.Fields()
	if err != nil {
		return ReversalOpen
	}
	known := make(map[string]bool, len(before))
	for _, m := range before {
		known[m.Name] = true
	}
	for _, m := range members {
		if !known[m.Name] {
			return ReversalOpen
		}
	}
	return Reversible
}
