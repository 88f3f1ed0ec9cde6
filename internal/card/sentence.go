package card

import "github.com/gatehouse-dev/gatehouse"

// Sentence says in one sentence what approving an action leads to: "Change
// price of SKU-1042 from 10.00 to 12.50 USD; reversible". See [Describe].
func Sentence(a *gatehouse.Action) string { return Describe(a).String() }

// Short is verb and object only: "Change price of SKU-1042". Lists use [Row].
func Short(a *gatehouse.Action) string {
	n := newNarrator(a, longInButton)
	return n.undo(n.short()).String()
}

// Button is the text of a button: "Change price to 12.50 USD".
func Button(a *gatehouse.Action) string {
	n := newNarrator(a, longInButton)
	p := n.button()
	return n.undo(p).String()
}

// longTitle is the length, in characters, at which a row cuts an action's title.
const longTitle = 80

// Describe returns the sentence in parts, preceded by the action's title, if any. The
// sentence is built from the operation, the target and the change. The action type is
// used only when the operation's name does not say what it does, since the proposer
// chooses the type: a "note" that deletes is a deletion. For a plan, and for the
// question whether a run continues, the title alone is returned.
func Describe(a *gatehouse.Action) Phrase {
	return newNarrator(a, longInSentence).describe()
}

func (n *narrator) describe() Phrase {
	// The answer to a question changes no target; a plan's title has all of its terms.
	if n.a.Title != "" && (isPlan(n.a) || n.question()) {
		return Phrase{{Text: n.a.Title, Value: true}}
	}
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

// Reversal tells whether an action can be undone.
type Reversal string

// The answers.
const (
	Reversible    Reversal = "reversible"
	NotReversible Reversal = "not reversible"
	ReversalOpen  Reversal = "" // not known before the receipt
)

// Reversibility tells what is known about undoing an action. After it was carried
// out, the receipt decides. Before that, an update is reversible if its connector
// can describe the reversal, and if the pre-image has every field that it
// overwrites.
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
