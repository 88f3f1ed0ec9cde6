// Package failpoint lets a crash test end the process at a named place.
//
// A place is one line, failpoint.Here("decide/voted"), between two steps that a
// crash must not confuse. In a usual build Here is empty, is inlined and leaves
// nothing behind. With the build tag failpoint the process kills itself by
// SIGKILL at the place and the passage that the environment names:
//
//	GATEHOUSE_FAILPOINT=decide/voted:3
//
// is the third time that anything in the process gets there. Nothing of the
// process runs after it: no deferred call, no answer, no flush.
package failpoint

import "slices"

// Names lists every place. A test compares it with the source, and the crash tests kill the
// process at each of them.
func Names() []string { return slices.Concat(ActionNames(), RunNames(), ArchiveNames()) }

// ArchiveNames lists the places of the archiver in order: a batch is locked and read, moved,
// gets its leaf, and is committed.
func ArchiveNames() []string {
	return []string{"archive/locked", "archive/moved", "archive/recorded", "archive/committed"}
}

// RunNames lists the places of a run in order.
func RunNames() []string {
	return []string{
		// A run: its rows are inserted, and later changed by the results of its steps.
		"run/inserted", "run/advanced",
		// A step: evaluated, sent to a model, before its result, with its action, and after the
		// action has ended.
		"step/prepared", "step/asked", "step/completing", "step/proposed", "step/settling",
	}
}

// ActionNames lists the places of an action.
func ActionNames() []string {
	return []string{
		// A proposal: its rows, its leaf, its commit, its answer.
		"propose/inserted", "propose/recorded", "propose/committed",
		// A decision: vote, ceilings, claim with its leaf, commit. The push is made before the claim.
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
