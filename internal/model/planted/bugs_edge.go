package main

// edgeBugs are bugs of the policy, the connectors and the HTTP interface.
func edgeBugs() []bug {
	return []bug{
		plant("a proposal is allowed although a rule cannot be evaluated", "promise 8", "internal/policy/evaluate.go",
			"if f.err != nil && f.then == gatehouse.OutcomeAllow {", "if false {", "internal/policy", "TestBrokenNeverAllows"),
		plant("an allow beats a deny", "promise 8", "internal/policy/evaluate.go",
			"rank(o) > rank(v.Outcome)", "rank(o) == 1 && rank(v.Outcome) == 0", "internal/policy", "TestOutcome"),
		plant("a ceiling that cannot be computed is not claimed", "10, promise 8", "internal/policy/ceiling.go",
			`refuse(verdict, fmt.Sprintf("ceiling %s: ceiling amount not computable: %v", c.name, err))`, "_ = err",
			"internal/policy", "TestCeilingNotComputable"),
		plant("the agent's claim lowers the amount", "10", "internal/policy/ceiling.go",
			"claimed.Cmp(amount) > 0", "claimed.Cmp(amount) != 0", "internal/policy", "TestCeiling"),
		plant("redirects are followed with the credentials", "4", "connector/internal/rest/transport.go",
			"CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },", "",
			"connector/http", "TestRedirectsAreNotFollowed"),
		plant("a connector may be aimed at internal addresses", "security", "connector/internal/rest/transport.go",
			"if !allowPrivate {\n\t\tif ip,", "if false {\n\t\tif ip,", "connector/http", "TestInsideAddresses"),
		plant("a request that may have arrived counts as not sent", "5, 15", "connector/internal/rest/transport.go",
			"Connected: connected.Load(), Refused", "Connected: false, Refused", "connector/http", "TestFaults"),
		plant("the HTTP interface's key forgets the path", "contract", "internal/api/idempotency.go",
			"\tb = append(b, path...)\n", "\t_ = path\n", "internal/api", "TestIdempotencyKnowsThePath"),
		plant("two requests under one key run at once", "contract", "internal/api/idempotency.go",
			"\tr.keys[id] = struct{}{}\n", "", "internal/api", "TestSameKeyAtOnce"),
	}
}
