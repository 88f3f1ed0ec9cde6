package main

// holeBugs: a way around the gate stands open, or a state has no end.
func holeBugs() []bug {
	const application, app = "internal/app", "internal/app/"
	const minting, told, dead = app + "mint.go", app + "notices.go", app + "replay.go"
	const answers, addresses = "internal/api/answers.go", "internal/api/addresses.go"
	const calendar, redactor = "internal/policy/calendar.go", "connector/redact.go"
	return []bug{
		plant("a key alone makes credentials", "promise 2", minting,
			"case c.Session == nil && c.StepUp, c.TokenShown:", "case c.Session == nil, c.TokenShown:", application, "TestMintingIsDeciding"),
		plant("an old session makes credentials", "promise 2", minting,
			"case tx.Now().Sub(c.Session.CreatedAt) < gatehouse.FreshSignIn:", "case tx.Now().After(c.Session.CreatedAt):",
			"internal/console", "TestFormsOfAdministratorsNeedAFreshSignIn"),
		plant("administrators are not told of new rights", "contract", told,
			"if by.id != initAuthor {", "if by.id == initAuthor {", application, "TestMintingIsTold"),
		plant("a tenant is not told of its administrators' acts elsewhere", "contract", told,
			"return tx.InsertNotice(notice(tx, by, c, from, \"\"))", "return nil", application, "TestAcrossTenants"),
		plant("a question to a group asks everybody", "8", "approval.go",
			"slices.ContainsFunc(a.Groups, p.In)", "len(a.Groups) > 0", application, "TestOnlyMembersOfTheGroupDecide"),
		plant("a discarded push is replayed", "11", dead,
			"case p.ClosedAt != nil:", "case p.ClosedAt != nil && p.ClosedBy == \"\":", model, "TestModel"),
		plant("an unknown outcome of class C is replayed", "5, 15", dead,
			"return safety{\n\t\tskip:   gatehouse.SkippedResolveFirst,\n\t\treason: \"class C", "return safety{\n\t\tsafe:   true,\n\t\treason: \"class C",
			model, "TestModel"),
		plant("class C is called again while patience lasts", "15", "internal/engine/record.go",
			"if class != connector.ClassA || p.PickedAt == nil {", "if p.PickedAt == nil {", engine, "TestPatience"),
		plant("a connector's floor is left out", "promise 2", "internal/engine/registry.go",
			"floor = connector.FloorOf(", "_ = connector.FloorOf(", engine, "TestRegistryFloor"),
		plant("keys that differ in case alone are taken", "promise 2", app+"propose.go",
			"if err := spelling.CheckKeys(p); err != nil {", "if err := spelling.CheckKeys(p); err != nil && p.Connector == \"\" {",
			application, "TestTwinsAreRefused"),
		plant("an agent reads what others propose", "promise 8", app+"reader.go",
			"|| p.Kind == gatehouse.KindAgent && !g.config.AgentsSeeTenant {", "{", application, "TestAgentsReadTheirOwn"),
		plant("a new approver counts at L5", "8", app+"approverdelay.go",
			"if !now.Before(until) {", "if now.Before(until) {", application, "TestApproverDelay"),
		plant("a gated policy is replaced directly", "promise 2", app+"policygate.go",
			"if err == nil && gated {", "if err == nil && gated && tenant == \"\" {", application, "TestGatedPolicy"),
		plant("wrong keys are tried without end", "operations", addresses,
			"if at.spent <= wrongBurst-1 {", "if at.spent >= 0 {", "internal/api", "TestWrongKeysAreThrottledByAddress"),
		plant("answers that nobody reads fill the memory", "operations", answers,
			"return a.bytes[principal] >= maxUnread", "return a.bytes[principal] < 0", "internal/api", "TestUnreadAnswersAreBounded"),
		plant("requests wait without bound", "operations", answers,
			"if n >= maxWaits {", "if n < 0 {", "internal/api", "TestWaitsAreBounded"),
		plant("the time of a proposal has no zone", "promise 8", calendar,
			"return f.run(c, t.In(where))", "return f.run(c, t.UTC())", "internal/policy", "TestTimeOfTheProposal"),
		plant("a holiday is a workday", "promise 8", calendar,
			" && !c.holiday(t)", "", "internal/policy", "TestTimeOfTheProposal"),
		plant("a secret in URL-safe Base64 is stored", "promise 8", redactor,
			"range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding}", "range []*base64.Encoding{base64.RawStdEncoding}",
			"connector", "TestRedactor"),
		plant("a secret within a text in Base64 is stored", "promise 8", redactor,
			"for shift := range 3 {", "for shift := range 0 {", "connector", "TestRedactor"),
		plant("a secret in upper-case hexadecimal is stored", "promise 8", redactor,
			"list = append(list, hexadecimal, strings.ToUpper(hexadecimal))", "list = append(list, hexadecimal)", "connector", "TestRedactor"),
	}
}
