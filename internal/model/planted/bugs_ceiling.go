package main

// ceilingBugs exceed a ceiling, release a reservation too early or never, or replay unchecked.
func ceilingBugs() []bug {
	return []bug{
		plant("a ceiling is not checked when approving", "10", sqlite+"/ceilings.go",
			"if !c.Fits(used) {", "if false {", model, "TestModel"),
		plant("a ceiling lets one more through", "10", "internal/store/shared/ceilings.go",
			"used <= c.Limit-c.Amount", "used <= c.Limit", model, "TestModel"),
		plant("an approval reserves nothing", "10", "internal/gate/ceilings.go",
			"tx.ReserveCeilings(a.ID, a.Ceilings...)", "tx.ReserveCeilings(a.ID)", model, "TestModel"),
		plant("a group does not check the ceilings that its members claim", "10", postgres+"/ceilings.go",
			"[]query{locks, reserve, check}", "[]query{locks, reserve}",
			postgres, "TestCeilingGroup"),
		plant("groups do not lock the ceilings that their members claim", "10", postgres+"/ceilings.go",
			"[]query{locks, reserve, check}", "[]query{reserve, check}",
			postgres, "TestCeilingGroupWaits"),
		plant("a closure that failed keeps its place under the ceiling", "10", sqlite+"/ceilingsums.go",
			"for _, undo := range slices.Backward(s.undo) {\n\t\tundo()\n\t}", "", sqlite, conform+"CeilingGroups"),
		plant("a ceiling is released while the outcome is unknown", "10", "internal/dispatch/step.go",
			`s.leaf("push.unknown", more...)`,
			`s.do(func() error { return s.tx.ReleaseCeilings(s.action.ID) })`+"\n\t\t"+`s.leaf("push.unknown", more...)`,
			model, "TestModel"),
		plant("a ceiling is released once the action is applied", "10", "internal/dispatch/step.go",
			"s.moveAction(gatehouse.StatusApplied, nil)", "s.moveAction(gatehouse.StatusApplied, nil)\n\ts.do(func() error "+
				"{ return s.tx.ReleaseCeilings(s.action.ID) })", model, "TestModel"),
		plant("a failed action keeps its place under the ceiling", "10", "internal/dispatch/step.go",
			"s.do(func() error { return s.tx.ReleaseCeilings(s.action.ID) })", "", model, "TestModel"),
		plant("a replay reserves nothing", "10", "internal/gate/replay.go",
			`return "", "", reserve(tx, a)`, `return "", "", nil`, model, "TestModel"),
		plant("the window of a ceiling is ignored", "10", sqlite+"/ceilingsums.go",
			"if x.end <= since {\n\t\t\tcontinue\n\t\t}\n\t\tif sum", "if sum", sqlite, "TestCeilingSums"),
		plant("a released claim still counts", "10", sqlite+"/ceilings.go",
			"t.count(c, -c.Amount)", "_ = c", sqlite, conform+"Ceilings"),
		plant("a replay is made without checking the approvers again", "promise 2", "internal/gate/replay.go",
			"if err := g.Recheck(tx, a, nil); err != nil {\n\t\treturn \"\", \"\", err\n\t}", "", model, "TestModel"),
		plant("a replay is made though the target has forgotten the key", "5", "internal/gate/replay.go",
			"case retention > 0 && age(now, p) > retention:", "case false:", model, "TestModel"),
	}
}
