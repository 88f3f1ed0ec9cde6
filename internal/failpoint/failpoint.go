// Package failpoint lets a crash test end the process at a named place.
//
// A place is one line, failpoint.Here("decide/voted"), between two steps. A crash
// between them must do no harm. In the product nothing happens there; package trap kills the process.
package failpoint

import "slices"

var caught func(name string)

// Catch has fn called at each place from now on. A program calls it before it starts goroutines.
func Catch(fn func(name string)) { caught = fn }

// Here marks a place between two steps.
func Here(name string) {
	if caught != nil {
		caught(name)
	}
}

// Names lists every place. A test compares it with the source, and the crash tests kill the
// process at each of them.
func Names() []string { return slices.Concat(ActionNames(), RunNames(), ArchiveNames()) }

// ArchiveNames lists the places of the archiver in order: a batch is locked and read, is moved,
// gets its leaf, and is committed.
func ArchiveNames() []string {
	return []string{"archive/locked", "archive/moved", "archive/recorded", "archive/committed"}
}

// RunNames lists the places of a run in order.
func RunNames() []string {
	return []string{
		// A run: its rows are inserted, and later changed by the results of its steps.
		"run/inserted", "run/advanced",
		// A step: it is evaluated, its model call has ended, its result is about to be stored, its
		// action is proposed, its action has ended.
		"step/prepared", "step/asked", "step/completing", "step/proposed", "step/settling",
	}
}

// ActionNames lists the places of an action.
func ActionNames() []string {
	return []string{
		// A proposal: after its rows, after its leaf, after its commit.
		"propose/inserted", "propose/recorded", "propose/committed",
		// A decision: its vote, its reserved ceilings, the decided action with its leaf, the push, all
		// writes, the commit. decide/pushed comes before decide/settled.
		"decide/voted", "decide/reserved", "decide/settled", "decide/pushed", "decide/recorded", "decide/committed",
		"reject/settled",
		"cancel/recorded", "cancel/committed",
		// A push, from the claim to the receipt: the points of package dispatch.
		"dispatch/after-claim", "dispatch/before-intent", "dispatch/before-intent-commit", "dispatch/after-intent",
		"dispatch/after-call", "dispatch/before-outcome", "dispatch/before-outcome-commit", "dispatch/after-outcome",
		// The rescue of a push whose lease has expired.
		"rescue/before-commit", "rescue/committed",
		// The sweep of expired rows.
		"sweep/moved", "sweep/committed",
		// The numbering of log entries.
		"sequence/read", "sequence/numbered", "sequence/committed",
		// A message: queued but not committed, sent but not recorded, recorded; and a card that
		// was rewritten, but not recorded.
		"notify/queued", "notify/called", "notify/recorded", "notify/card-written",
	}
}
