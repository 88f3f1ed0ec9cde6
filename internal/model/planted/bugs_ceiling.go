package main

// ceilingBugs exceed a ceiling, or release a reservation too early.
func ceilingBugs() []bug {
	return []bug{
		plant("a ceiling is not checked when approving", "10", "internal/gate/enqueue.go",
			"if err := checkCeilings(tx, a); err != nil {\n\t\treturn err\n\t}", "", model, "TestModel"),
		plant("a ceiling lets one more through", "10", "internal/gate/enqueue.go",
			"used[i].Add(c.Amount).Cmp(c.Limit) > 0", "used[i].Cmp(c.Limit) > 0", model, "TestModel"),
		plant("an approval reserves nothing", "10", "internal/gate/enqueue.go",
			"return tx.ReserveCeilings(a.ID, a.Ceilings...)", "return nil", model, "TestModel"),
		plant("a ceiling is released while the outcome is unknown", "10", "internal/dispatch/step.go",
			`s.leaf("push.unknown", more...)`, `s.do(func() error { return s.tx.ReleaseCeilings(s.action.ID) })`+"\n\t\t"+`s.leaf("push.unknown", more...)`, model, "TestModel"),
		plant("a ceiling is released once the action is applied", "10", "internal/dispatch/step.go",
			"s.moveAction(gatehouse.StatusApplied, nil)", "s.moveAction(gatehouse.StatusApplied, nil)\n\ts.do(func() error { return s.tx.ReleaseCeilings(s.action.ID) })", model, "TestModel"),
		plant("a failed action keeps its place under the ceiling", "10", "internal/dispatch/step.go",
			"s.do(func() error { return s.tx.ReleaseCeilings(s.action.ID) })", "", model, "TestModel"),
		plant("a replay reserves nothing", "10", "internal/gate/replay.go",
			`return "", "", reserve(tx, a)`, `return "", "", nil`, model, "TestModel"),
		plant("the window of a ceiling is ignored", "10", sqlite+"/ceilings.go",
			"counted_at > u.value ->> 2), 0)", "counted_at > (u.value ->> 2) - 31536000000000), 0)", model, "TestModel"),
		plant("a released claim still counts", "10", sqlite+"/migrations/0101_ceiling_sum.sql",
			"AFTER UPDATE ON ceiling_claim WHEN OLD.released_at IS NULL",
			"AFTER UPDATE ON ceiling_claim WHEN 0", sqlite, conform+"Ceilings"),
		plant("a replay is made without checking the approvers again", "promise 2", "internal/gate/replay.go",
			"if err := g.Recheck(tx, a, nil); err != nil {\n\t\treturn \"\", \"\", err\n\t}", "", model, "TestModel"),
		plant("a replay is made though the target has forgotten the key", "5", "internal/gate/replay.go",
			"case retention > 0 && age(now, p) > retention:", "case false:", model, "TestModel"),
	}
}
