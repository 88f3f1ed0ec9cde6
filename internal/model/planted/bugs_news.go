package main

// newsBugs break this rule: pages, metrics and the server's log show each change, and only changes that happened.
func newsBugs() []bug {
	const console, events = "internal/console", "internal/console/events.go"
	const sequencer, feed, serve = "internal/audit/sequencer.go", "internal/feed", "internal/serve"
	return []bug{
		plant("a new stream sends nothing", "contract", events,
			"+ changedEvent(number)) {", ") {", console, "TestNothingIsMissedAsAStreamBegins"),
		{"a stream listens when it has begun", "contract", []edit{
			{events, "if c.cfg.Hints != nil {\n\t\th, end := c.cfg.Hints.Subscribe(usecase.TopicLog(v.person.Tenant))\n\t" +
				"\tdefer end()\n\t\thint = h\n\t}\n\tgrown", "grown"},
			{events, "\tbeat := time.NewTicker", "\tif c.cfg.Hints != nil {\n\t\th, end := " +
				"c.cfg.Hints.Subscribe(usecase.TopicLog(v.person.Tenant))\n\t\tdefer end()\n\t\thint = h\n\t}\n" +
				"\tbeat := time.NewTicker"},
		}, console, "TestNothingIsMissedAsAStreamBegins"},
		plant("a stream reports only one change", "contract", events,
			"waiting, rest = hint, nil", "rest = nil", console, "TestChangesSayOnlyThatSomethingChanged"),
		plant("a heartbeat finds nothing", "contract", events,
			"return last != was", "return last < was", console, "TestLostHintCostsAHeartbeat"),
		plant("a leased step gives no hint", "contract", "internal/runs/metrics.go",
			"r.Hints.Notify(usecase.TopicLog(last))", "_ = usecase.TopicLog(last)", console, "TestLeasedStepsSendAHint"),
		plant("an open item does not say that it is open", "contract", "internal/console/actiontext.go",
			"if a.Status != gatehouse.StatusPending {\n\t\treturn changed", "if a.Status != \"\" {\n\t\treturn changed", console,
			"TestPresenceWhereNothingChanges"),
		plant("a stream shows when other tenants are busy", "16", events,
			"usecase.TopicLog(v.person.Tenant)", "usecase.TopicLog(gatehouse.DefaultTenant)", console,
			"TestChangesOfOtherTenantsSendNothing"),
		plant("a stream continues after its session has ended", "promise 2", events,
			"if v.identify(true) != nil {\n\t\t\treturn nil\n\t\t}", "", console, "TestTheEndOfASessionCutsItsStream"),
		plant("a stream that has ended counts", "promise 6", events,
			"\tdefer c.streams.close(who)\n", "", console, "TestStreamsOfOnePerson"),
		plant("only one of the tenants whose logs have grown gets a hint", "promise 6", sequencer,
			"s.Numbered(b.tenant)\n", "s.Numbered(b.tenant)\n\t\t\tbreak\n", "internal/audit", "TestNumberedIsCalledForEachLog"),
		plant("a store that refuses leaves looks like another sequencer", "14", sequencer,
			"grown = grown || size != b.size", "grown = size >= 0", "internal/audit", "TestRunReportsRefusals"),
		plant("another sequencer looks like a store that refuses leaves", "14", sequencer,
			"grown = grown || size != b.size", "grown = size < b.size", "internal/audit", "TestOvertakenSequencer"),
		plant("the two metrics of the feed are exchanged", "operations", "internal/serve/server.go",
			"f.Published, f.Behind)",
			"func() uint64 { return uint64(f.Behind()) }, func() int64 { return int64(f.Published()) })",
			serve, "TestServeWithNATS"),
		plant("nothing is said to wait for a broker that is gone", "operations", feed+"/publish.go",
			"logs, err := p.logs(ctx)\n\t\tif err != nil {\n\t\t\treturn conflict, err\n\t\t}\n\t\tif err := p.ensure(ctx); "+
				"err != nil {\n\t\t\treturn conflict, err\n\t\t}",
			"if err := p.ensure(ctx); err != nil {\n\t\t\treturn conflict, err\n\t\t}\n\t\t"+
				"logs, err := p.logs(ctx)\n\t\tif err != nil {\n\t\t\treturn conflict, err\n\t\t}",
			serve, "TestServeWithNATS"),
		plant("only one tenant's events are said to wait", "operations", feed+"/publish.go",
			"behind += max(0,", "behind = max(0,", feed, "TestOversizedEvent"),
		plant("work that failed once is logged as recovered each time", "operations", "internal/dispatch/config.go",
			"\t\t\tfailed = false\n", "", dispatch, "TestLoop"),
		plant("the pace of garbage is read only once", "operations", "internal/serve/garbage.go",
			"p.look(); p.arm()", "p.look()", serve, "TestGarbageIsCollectedLessOftenInARush"),
		plant("no rush begins after the first seconds", "operations", "internal/serve/garbage.go",
			"\tp.last = now\n", "", serve, "TestGarbageIsCollectedLessOftenInARush"),
	}
}
