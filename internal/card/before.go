package card

import "github.com/gatehouse-dev/gatehouse"

// Provenance is the source of the values before a change.
type Provenance string

// The sources.
const (
	// ByProposer: the proposer states the values, and nobody has checked them.
	ByProposer Provenance = "claimed"
	// ByTarget: the target was read, and matches the proposal.
	ByTarget Provenance = "read"
	// Differs: the target was read, and differs from the proposal.
	Differs Provenance = "differs"
)

// UnchangedClaim marks the value of a rewritten field if the view has not read the target; messages
// never read it. See [Change.Rewritten].
const UnchangedClaim = " (unchanged, as the agent says)"

// Before is what is known about a target before a change.
type Before struct {
	Provenance Provenance
	// Proposed is the action as it was proposed, Shown the same change on the state
	// that was read. Both are the same when nothing was read.
	Proposed, Shown *gatehouse.Action
}

// ClaimedBefore returns the proposer's statement, unchecked.
func ClaimedBefore(a *gatehouse.Action) Before { return Before{ByProposer, a, a} }

// ReadBefore returns the state that was read from the target. For a target that is gone
// it keeps the state that the proposer claims, because there is no other.
func ReadBefore(a *gatehouse.Action, read *gatehouse.TargetState) Before {
	now := *a
	if read.Gone {
		now.Undoable = false
		return Before{ByProposer, a, &now}
	}
	switch {
	case read.Version == "":
	case a.Approval != nil && a.Approval.About != nil:
		approval, about := *a.Approval, *a.Approval.About
		about.Version, approval.About = read.Version, &about
		now.Approval = &approval
	default:
		now.Target.Version = read.Version
	}
	if read.CurrentState != "" {
		now.CurrentState = read.CurrentState
	}
	b := Before{ByTarget, a, &now}
	if !read.Matches {
		b.Provenance = Differs
	}
	return b
}

// Moved returns the differences between the proposal and the state that was read,
// in the fields that the proposal gives.
func (b Before) Moved() []Change {
	if b.Provenance != Differs {
		return nil
	}
	var out []Change
	for _, c := range Moved(b.Proposed, b.Shown) {
		if c.Kind != Added {
			out = append(out, c)
		}
	}
	return out
}

// Describe is [Describe], with each value before the change marked by its source:
// "from 10.00 (as the agent says) to 12.50 USD", "from 10.00 to 12.50 USD" when it
// was read, and both values when they differ: "from 11.00 (the agent says 10.00) to
// 12.50 USD".
func (b Before) Describe() Phrase {
	n := newNarrator(b.Shown, longInSentence)
	n.before = &b
	return n.describe()
}

// proposedValue returns the value that the proposer gives for a field whose read value differs; false
// when they agree.
func (b Before) proposedValue(c Change) (Value, bool) {
	for _, m := range b.Moved() {
		if m.Path == c.Path || m.Path == c.Was {
			return m.Before, true
		}
	}
	return Value{}, false
}

// origin adds the source of the value before a change to a phrase.
func (n *narrator) origin(p *Phrase, c Change) {
	if n.before == nil {
		return
	}
	switch n.before.Provenance {
	case ByProposer:
		p.note(" (as the agent says)")
	case Differs:
		if x, ok := n.before.proposedValue(c); ok {
			p.note(" (the agent says ")
			p.value(n.amount(c, x, c.CurrencyBefore, false))
			p.note(")")
		}
	}
}
