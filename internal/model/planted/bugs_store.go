package main

// storeBugs: what is answered is stored, moves keep to the tables, the log
// has no gap.
func storeBugs() []bug {
	return []bug{
		{
			"callers are answered before the COMMIT", "2",
			[]edit{
				{sqlite + "/writer.go", "\tr.err = err\n\tclose(r.done)\n", "\tselect {\n\tcase <-r.done:\n\tdefault:\n\t\tr.err = err\n\t\tclose(r.done)\n\t}\n"},
				{sqlite + "/batch.go", "\treturn wrote, nil\n}\n\n// alone", "\tfor i, r := range w.open {\n\t\tr.answer(w.outcomes[i])\n\t}\n\treturn wrote, nil\n}\n\n// alone"},
			},
			sqlite, "TestUnclearCommit",
		},
		plant("a refused COMMIT counts as done", "2", sqlite+"/batch.go",
			"// Refused, and the transaction is still open: nothing is stored.\n\t\tw.rollback()\n\t\treturn lost(err)", "w.rollback()\n\t\treturn nil", sqlite, "TestUnclearCommit"),
		plant("nothing is committed", "2", sqlite+"/writer.go",
			"_, err := c.exec(`COMMIT`); return err", "_, err := c.exec(`ROLLBACK`); return err", sqlite, "TestKilled"),
		plant("an unclear COMMIT counts as done", "2", sqlite+"/batch.go",
			"return w.resolve(number, err)", "return nil", sqlite, "TestUnclearCommit"),
		plant("one closure's failure takes what others wrote", "2", sqlite+"/batch.go",
			"if w.c.totalChanges() != before || w.c.deferredKeys() {", "if false {", sqlite, conform+"FailureIsolated"),
		plant("a move ignores the state that it moves from", "1, 11", sqlite+"/actions.go",
			"WHERE tenant = ?8 AND id = ?9 AND status = ?10`", "WHERE tenant = ?8 AND id = ?9 AND ?10 <> ''`", sqlite, conform+"ActionMoves"),
		plant("the store takes any move", "11", sqlite+"/actions.go",
			"if !m.From.CanMove(m.To) {", "if false {", sqlite, conform+"ActionMoves"),
		plant("a table lets a rejected action be approved", "11", "transition.go",
			"StatusRejected:   nil,", "StatusRejected:   {StatusApproved},", root, "TestTransitionTables"),
		plant("votes are taken after the decision", "1", sqlite+"/approvals.go",
			"FROM approval WHERE tenant = ? AND id = ? AND status = 'requested'\n", "FROM approval WHERE tenant = ? AND id = ? AND status <> ''\n", sqlite, conform+"Votes"),
		plant("a finished action can be claimed for the next page again", "promise 6", sqlite+"/list.go",
			`c.add("a.id < ?", after)`, `c.add("a.id <= ?", after)`, sqlite, conform+"ListWalk"),
		plant("the clock runs backwards", "9", sqlite+"/store.go",
			"return time.UnixMicro(high).UTC()", "return time.UnixMicro(wall).UTC()", sqlite, "TestClockSurvivesRestart"),
		plant("an expiry leaves no leaf", "14", "internal/app/expire.go",
			"return record(tx, a, \"hitl.expired\", \"system\", gatehouse.StatusPending, gatehouse.StatusExpired,\n\t\tmap[string]any{\"expires_at\": a.Approval.ExpiresAt})", "return nil", model, "TestModel"),
		plant("a vote leaves no leaf", "14", decide,
			"return record(tx, a, \"hitl.voted\", r.caller.Principal.ID, gatehouse.StatusPending, gatehouse.StatusPending, r.voteData())", "return nil", model, "TestModel"),
		plant("an intent leaves no leaf", "14, 15", "internal/engine/send.go",
			"\t\ts.leaf(\"push.sent\")\n", "", model, "TestModel"),
		plant("a second sequencer is not fenced", "14", sqlite+"/log.go",
			"WHERE tenant = ? AND size = ?`", "WHERE tenant = ? AND ? >= 0`", sqlite, conform+"AuditConflict"),
		plant("leaves are numbered out of their order", "14", sqlite+"/log.go",
			"WHERE number IS NULL ORDER BY seq LIMIT ?`", "WHERE number IS NULL ORDER BY seq DESC LIMIT ?`", model, "TestModel"),
		plant("the log is numbered in two transactions", "14", "internal/audit/sequencer.go",
			"b.hashes = b.tree.Append(h, b.hashes)", "b.hashes = b.tree.Append(h, b.hashes[:0])", "internal/audit", "TestNumberingEqualsNaive"),
		plant("an altered entry is taken for whole", "14", "internal/audit/verify.go",
			"if h != e.LeafHash {", "if false {", "internal/audit", "TestTamper"),
		plant("a log that was cut off says ok", "14", "internal/audit/verify.go",
			"case size != v.head.Size:", "case false:", "internal/audit", "TestTamper"),
	}
}
