package main

// loggedBugs break these rules: the log has the hash of each bundle of evidence and of each archived action, and the
// tables agree with the log.
func loggedBugs() []bug {
	const live, archiving = "TestLive", "TestArchivingChangesNoAnswer"
	return []bug{
		plant("evidence is stored under the hash of its manifest", "21", "internal/runs/bundle.go",
			"sum := sha256.Sum256(archive)", "sum := sha256.Sum256([]byte(manifest))", "internal/runs", "TestBundle"),
		plant("the log names one hash for all archived actions", "22", archived,
			"gatehouse.MustJSON(list[i].SHA256)", "gatehouse.MustJSON(list[0].SHA256)", invariants, archiving),
		plant("an archived action stays in its table", "22", litearc,
			"`DELETE FROM action WHERE seq = ?`", "`DELETE FROM action WHERE seq = -?`", invariants, archiving),
		plant("each vote is logged as an approval", "23", ruling,
			`put("decision", r.decision.Decision)`, `put("decision", gatehouse.Approve)`, invariants, live),
		plant("a proposal is logged at the level that its proposer claims", "23", "internal/gate/propose.go",
			`"risk_level": int(a.RiskLevel)`, `"risk_level": int(a.ClaimedRisk)`, invariants, live),
	}
}
