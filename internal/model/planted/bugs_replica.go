package main

// replicaBugs: what only more than one writer at a time can do wrong.
func replicaBugs() []bug {
	const postgres = "internal/store/postgres"
	return []bug{
		plant("two votes at once do not see each other", "1, 8", postgres+"/actions.go",
			"[]query{ask(asked, ", "[]query{ask(strings.Replace(asked, lockingAsked, \"\", 1), ",
			model, "TestLinearizable/postgres"),
		plant("a ceiling is not locked while it is looked at", "10", postgres+"/ceilings.go",
			"[]query{lockFor(\"ceiling\", tenant, ceiling, scope)},", "nil,", postgres, conform+"CeilingRace"),
		plant("two workers claim the same push", "5, 12", postgres+"/pushes.go",
			"WHERE tenant = s.tenant AND status = 'queued' AND lane = ''", "WHERE tenant = s.tenant AND status IN ('queued', 'picking') AND lane = ''", postgres, conform+"Claims"),
		plant("two replicas count a tenant's pushes in flight at once", "dispatch.max_concurrency", postgres+"/pushes.go",
			"if s.Most > 0 {", "if false {", postgres, conform+"ClaimBound"),
		plant("a move on PostgreSQL ignores the state that it moves from", "1, 11", postgres+"/actions.go",
			"WHERE tenant = $8 AND id = $9 AND status = $10`", "WHERE tenant = $8 AND id = $9 AND $10 <> ''`", postgres, conform+"ActionMoves"),
		plant("a stale generation writes on PostgreSQL", "12", postgres+"/pushes.go",
			"WHERE tenant = $1 AND id = $2 AND status = $3 AND generation = $4`", "WHERE tenant = $1 AND id = $2 AND status = $3 AND $4 >= 0`", postgres, conform+"PushFence"),
		plant("each claim walks over what was done since a backup began", "operations", postgres+"/pushes.go",
			"tenant <= $2 AND due_at >= $3 ORDER", "tenant <= $2 ORDER", postgres, "TestClaimsDoNotWalkOverWhatIsDone"),
		plant("during a backup, leases that end early do not count", "dispatch.max_concurrency", postgres+"/pushes.go",
			"ORDER BY lease_until LIMIT 1), $1)`", "ORDER BY lease_until LIMIT 1), $1 + 3600000000)`", postgres, "TestClaimsDoNotWalkOverWhatIsDone"),
		plant("what is queued behind the front is not found again", "promise 6", postgres+"/front.go",
			"f.long && !time.Now().Before(f.again)", "f.long && f.again.IsZero() && f.marks == marks{}", postgres, "TestClaimsDoNotWalkOverWhatIsDone"),
		plant("during a backup, leaves under way are passed over", "promise 6", postgres+"/log.go",
			"pg_sequence_last_value('audit_leaf_row'), 0) - 1000", "pg_sequence_last_value('audit_leaf_row'), 0) + 1000", postgres, "TestSequencerDoesNotWalkOverWhatIsNumbered"),
		plant("an old primary is used while the new one is away", "2, 5", postgres+"/timeline.go",
			"at.timeline >= seen {", "at.timeline >= seen || at.timeline > 0 {", postgres, "TestOldPrimary"),
		plant("an old primary says what became of a commit", "2, 5", postgres+"/resolve.go",
			"c, err := pgx.ConnectConfig(ctx, config)", "config.ValidateConnect = nil\n\tc, err := pgx.ConnectConfig(ctx, config)",
			postgres, "TestOldPrimary"),
		plant("what is under way on an old primary is committed there", "2, 5", postgres+"/update.go",
			"t.s.timelines.check(branchOf(t.c))", "t.s.timelines.check(branch{})", postgres, "TestOldPrimaryGoesOn"),
	}
}
