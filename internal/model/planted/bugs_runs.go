package main

// runBugs: runs, their steps, and who holds them.
func runBugs() []bug {
	const advance, carried, waking = "internal/app/runadvance.go", "internal/app/runwork.go", "internal/app/runwake.go"
	const proposing, held, starting = "internal/app/runpropose.go", "internal/app/runs.go", "internal/app/runstart.go"
	return []bug{
		plant("a step is not parked with its proposal", "19", proposing,
			"return &a, m.await(s, &a)", "return &a, nil", model, "TestRuns"),
		plant("a step is held under any generation", "20", held,
			"case s.Status != gatehouse.StepRunning, s.Generation != generation,", "case s.Status != gatehouse.StepRunning,", model, "TestStaleLeasesChangeNothing"),
		plant("a step is held after its lease", "20", held,
			"s.LeaseUntil == nil || !m.tx.Now().Before(*s.LeaseUntil):", "s.LeaseUntil == nil:", model, "TestStaleLeasesChangeNothing"),
		plant("an action that ends wakes no step", "19", sqlite+"/runs_steps.go",
			"for _, seq := range waiting {\n\t\tif err == nil {", "for _, seq := range waiting {\n\t\tif false {", model, "TestRuns"),
		plant("a child run that ends wakes no step", "19", sqlite+"/runs.go",
			"if err == nil && r.Status != from && r.Status.Final() {", "if false {", model, "TestRuns"),
		plant("a run that stops leaves its blocked steps", "18", advance,
			"case from.Final(), from == gatehouse.StepRunning, m.hasItems(s):", "case from.Final(), from == gatehouse.StepRunning, from == gatehouse.StepBlocked, m.hasItems(s):", model, "TestRuns"),
		plant("a run that stops leaves its parked steps alone", "18", advance,
			"if !m.stopped {\n\t\t\t\tcontinue\n\t\t\t}", "if m.stopped || !m.stopped {\n\t\t\t\tcontinue\n\t\t\t}", model, "TestRuns"),
		plant("a retry repeats the items that succeeded", "5", carried,
			"if old := before[item.Key]; old != nil && ", "if old := before[item.Key]; old != nil && false && ", model, "TestRetryKeepsWhatSucceeded"),
		plant("needs are ignored", "18", "internal/workflow/graph.go",
			"if state(need) != gatehouse.StepSucceeded {", "if false && state(need) != gatehouse.StepSucceeded {", model, "TestRuns"),
		plant("the writes of a run are not counted", "limits.max_writes_per_run", proposing,
			"\tm.run.Writes++\n", "", model, "TestUnknownIsNoEnd"),
		{
			"unknown counts as an end", "promise 4",
			[]edit{
				{"internal/store/shared/runs.go", "func HasEnded(s gatehouse.Status) bool {\n", "func HasEnded(s gatehouse.Status) bool {\n\tif s == gatehouse.StatusUnknown {\n\t\treturn true\n\t}\n"},
				{waking, "case gatehouse.StatusFailed, gatehouse.StatusRejected,", "case gatehouse.StatusUnknown, gatehouse.StatusFailed, gatehouse.StatusRejected,"},
			},
			model, "TestUnknownIsNoEnd",
		},
		plant("an event lets a queued run jump the line", "limits.max_runs_per_min", advance,
			"if run.Stop == \"\" && run.Status != gatehouse.RunQueued {", "if run.Stop == \"\" {", model, "TestQueuedRunsBeginNothing"),
		plant("a client takes the server's own trigger_ref", "contract", starting,
			"slices.Contains(ownRefs, prefix) && prefix != n.TriggerRef", "slices.Contains(ownRefs, prefix) && false", model, "TestServersOwnRefs"),
		plant("one step that succeeds is enough for its run", "18", "runmoves.go",
			"case count[StepSucceeded] == len(steps):", "case count[StepSucceeded] > 0:", model, "TestRuns"),
		plant("a lease that has ended is no attempt", "13", waking,
			"return m.abandoned(s)", "return nil", model, "TestRuns"),
		plant("what kills its server each time is never given up", "promise 6", waking,
			"const maxLost = 10", "const maxLost = 1 << 30", model, "TestLostLeases"),
		plant("a lost lease is made up for at once, whatever was done under it", "retry", waking,
			"spec.Kind == workflow.KindTransform || spec.Kind == workflow.KindWait", "spec.Kind != \"\"", model, "TestRuns"),
		plant("what a server died of is carried out again beside the step before it", "promise 6", "internal/app/runcarry.go",
			"if step.Attempts == 1 {", "if step.Attempts >= 1 {", model, "TestAnotherAttemptGoesAlone"),
		plant("who has hung up takes a step from its next holder", "20", "internal/app/runrelease.go",
			"m.held(step.ID, step.Generation)", "m.run.StepByID(step.ID), error(nil)", model, "TestGoneCallerTakesNothing"),
		plant("what is revised while its run stops is not canceled", "18", waking,
			"if m.run.Stop != \"\" { // it was revised", "if false { // it was revised", model, "TestStoppingRunCancelsWhatIsRevised"),
		plant("a workflow that has all it may keeps the others waiting", "promise 6", "internal/app/runworker.go",
			"return max(min(ready, most-running), 0)", "return ready", model, "TestFullLaneKeepsNobodyWaiting"),
		plant("a step's key may have a NUL in it", "13", carried,
			"strings.ContainsRune(key, 0)", "strings.ContainsRune(\"\", 0)", model, "TestHostileTextIsStoredAlike"),
	}
}
