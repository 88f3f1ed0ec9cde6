package card

import "github.com/gatehouse-dev/gatehouse"

// Provenance says where the values before a change come from.
type Provenance string

// The provenances.
const (
	// ByProposer: the proposer says so, and nobody has looked.
	ByProposer Provenance = "claimed"
	// ByTarget: the target was read, and is as the proposal says.
	ByTarget Provenance = "read"
	// Differs: the target was read, and is not as the proposal says.
	Differs Provenance = "differs"
)

// Before is what is known of a target before a change.
type Before struct {
	Provenance Provenance
	// Proposed is the action as it was proposed, Shown the same change on the
	// state that was read; both are the same where nothing was read.
	Proposed, Shown *gatehouse.Action
}

// ClaimedBefore is what the proposer says, and nobody has looked at.
func ClaimedBefore(a *gatehouse.Action) Before { return Before{ByProposer, a, a} }

// ReadBefore is what was read at the target: its version and its state, and
// whether its connector finds it to be as the proposal has it.
func ReadBefore(a *gatehouse.Action, version string, state gatehouse.JSON, matches bool) Before {
	now := *a
	if version != "" {
		now.Target.Version = version
	}
	if state != "" {
		now.CurrentState = state
	}
	b := Before{ByTarget, a, &now}
	if !matches {
		b.Provenance = Differs
	}
	return b
}

// Moved is what differs between the proposal and what was read, in the fields that
// the proposal gives.
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

// Describe is [Describe], with each value before the change marked by where it
// comes from: "from 10.00 (as the agent says) to 12.50 USD", "from 10.00 to 12.50
// USD" where it was read, and both values where they differ: "from 11.00 (the agent
// says 10.00) to 12.50 USD".
func (b Before) Describe() Phrase {
	n := newNarrator(b.Shown, longInSentence)
	n.before = &b
	return n.describe()
}

// said returns what the proposer says of a value that was read, and whether that
// differs.
func (b Before) said(c Change) (Value, bool) {
	for _, m := range b.Moved() {
		if m.Path == c.Path || m.Path == c.Was {
			return m.Before, true
		}
	}
	return Value{}, false
}

// origin adds to a phrase where the value before a change comes from.
func (n *narrator) origin(p *Phrase, c Change) {
	if n.before == nil {
		return
	}
	switch n.before.Provenance {
	case ByProposer:
		p.note(" (as the agent says)")
	case Differs:
		if x, ok := n.before.said(c); ok {
			p.note(" (the agent says ")
			p.value(n.amount(x, c.CurrencyBefore, false))
			p.note(")")
		}
	}
}
