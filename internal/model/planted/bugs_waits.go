package main

// waitBugs: what only PostgreSQL has: lines in which Updates wait for each other,
// groups that commit together, and commits whose answer was lost.
func waitBugs() []bug {
	const postgres = "internal/store/postgres"
	const tickets, group, wave, resolve = postgres + "/tickets.go", postgres + "/group.go", postgres + "/wave.go", postgres + "/resolve.go"
	return []bug{
		plant("who waits in two lines goes when one of them is done", "promise 6", tickets,
			"next.before--; next.before == 0 {", "next.before--; next.before >= 0 {", postgres, "TestTickets"),
		plant("who has left a line still counts as refused", "promise 6", tickets,
			"\tl.mark(k, false)\n", "", postgres, "TestTickets"),
		plant("who came last has a locked row first", "promise 6", tickets,
			"next := w.rest[0]\n\t\t\tw.first, w.rest = next, slices.Delete(w.rest, 0, 1)",
			"next := w.rest[len(w.rest)-1]\n\t\t\tw.first, w.rest = next, w.rest[:len(w.rest)-1]", postgres, "TestStuckInOrder"),
		plant("who is refused something else keeps the line for what it has", "promise 6", tickets,
			"t.s.tickets.leave(c.ticket)\n\t\tc.ticket, c.things = nil,", "c.ticket, c.things = nil,", postgres, "TestStuckBesides"),
		plant("who wants a row that is stuck joins a group", "promise 6", tickets,
			"w.first != nil && w.first.stuck", "w.first != nil && false", postgres, "TestStuckKeepsOutOfGroups"),
		plant("who is refused a lock keeps all places waiting", "promise 6", tickets,
			"if !c.patient {\n\t\treturn nil", "if true {\n\t\treturn nil", postgres, "TestStuckRowStopsNobody/many_rows,_foreseen"),
		plant("who is refused a lock is soon refused it again", "promise 6", tickets,
			"`, set_config('lock_timeout', '` + strconv.FormatInt(timeout, 10) + `', true)`", "`, set_config('lock_timeout', '101', true)`", postgres, "TestBrief/10s"),
		plant("who comes after one that is patient is so, too", "promise 6", tickets,
			"FormatInt(timeout, 10) + `', true)`", "FormatInt(timeout, 10) + `', false)`", postgres, "TestBrief/10s"),
		plant("what an Update waited for is another's no more", "promise 6", postgres+"/update.go",
			"\t\ts.tickets.leave(c.ticket)\n\t\tif !c.away", "\t\tif !c.away", postgres, "TestBrief/20ms"),

		plant("who gives up before COMMIT is stored", "2", postgres+"/update.go",
			"\tif err := t.ctx.Err(); err != nil {\n\t\treturn false, err\n\t}\n\tif t.member", "\tif t.member", postgres, "TestGivenUpBeforeCommit"),
		plant("who gives up is told that nothing is stored, and it is", "2", group,
			"if g.sealed {\n\t\treturn false\n\t}\n\tm.writes = nil", "m.writes = nil", postgres, "TestGroupOutcomeIsAwaited"),
		plant("who has given up is stored with their group", "2", group,
			"\tm.writes = nil\n\treturn true", "\treturn true", postgres, "TestGroupWithoutWhoIsGone"),
		plant("two places are given back for one", "promise 6", group,
			"once := sync.OnceFunc(func() { s.pass(members) })", "once := func() { s.pass(members) }", postgres, "TestPlacesAreGivenBackOnce"),
		plant("who has given up keeps the place that it gets", "promise 6", group,
			"} else {\n\t\t\ts.pass(1)\n\t\t}", "}", postgres, "TestPlacesAreGivenBackOnce"),
		plant("two groups take the same keys in two orders", "promise 6", group,
			"\tslices.SortFunc(members, func(a, b *member) int { return slices.CompareFunc(a.keys, b.keys, thing.compare) })\n", "", postgres, "TestGroupsTakeKeysInOneOrder"),
		plant("who comes late is held with those who have gone", "promise 6", wave,
			"w.held, w.gone = nil, true", "w.held = nil", postgres, "TestWaveWaitsForNobodyInVain"),

		plant("a commit that a server that shuts down did not answer counts as undone", "2, 5", postgres+"/update.go",
			"errors.As(err, &pg) && !severe(pg), pgconn", "errors.As(err, &pg), pgconn", postgres, "TestCommitLost/shut_down"),
		plant("a commit that waits for its end counts as undone", "2, 5", resolve,
			"return false, errors.Join(err, e)", "return false, e", postgres, "TestFateOfWhoHasTheMark"),
		plant("a commit of which nothing is known counts as undone", "2, 5", resolve,
			`return false, errors.New("the server has forgotten the session")`, "return false, nil", postgres, "TestFateUnknown"),
		plant("a commit's number is taken away after another's", "2, 5", resolve,
			"SET last = -$2::bigint WHERE seq = $1 AND last = $2 - 1`", "SET last = -$2::bigint WHERE seq = $1 AND last >= $2 - 1`", postgres, "TestCommitLost/answer"),
		plant("what is left of a lost session keeps its locks", "promise 6", resolve,
			"if _, err := c.Exec(ctx, hangUp, o.pid, o.started); err != nil {", "if err := error(nil); err != nil {", postgres, "TestFateFreesLocks"),
		plant("a lost session's successor is ended", "promise 6", resolve,
			"WHERE pid = $1 AND backend_start = $2`", "WHERE pid = $1 AND $2::timestamptz IS NOT NULL`", postgres, "TestFateFreesLocks"),
	}
}
