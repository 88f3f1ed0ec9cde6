package main

const (
	ruling   = "internal/gate/ruling.go"
	dispatch = "internal/dispatch"
	model    = "internal/model"
	gate     = "internal/gate"
	sqlite   = "internal/store/sqlite"
	postgres = "internal/store/postgres"
	root     = "."
	conform  = "TestConformance/"
)

// decisionBugs break these rules: an action is decided once, before its approval expires, for exactly the bytes that
// were shown; and its push is stored with the decision.
func decisionBugs() []bug {
	return []bug{
		plant("a decided approval is decided again", "1, 11", ruling,
			"if a.Status != gatehouse.StatusPending {\n\t\tr.priorDecision = "+
				"true", "if false {\n\t\tr.priorDecision = true", model, "TestModel"),
		plant("after a rejection, every caller is told that it decided", "1, 2", ruling,
			"if a.Status != gatehouse.StatusPending {\n\t\tr.priorDecision = true",
			"if a.Status == gatehouse.StatusRejected {\n\t\tr.code = gatehouse.Decided\n\t\treturn nil\n\t}\n\tif a.Status "+
				"!= gatehouse.StatusPending {\n\t\tr.priorDecision = true", model, "TestLinearizable"),
		plant("a stored answer for decide is used for another voter", "1", "internal/gate/answer.go",
			"by != nil && by.Person == r.caller.Principal.Person", "by != nil", model, "TestModel"),
		plant("a person's second vote always replaces the first", "1", ruling,
			"if done, err := r.ownVote(ap, person); done || err != nil {\n\t\treturn err\n\t}", "", model, "TestLinearizable"),
		plant("an approved action without its push", "3", "internal/store/shared/settle.go",
			"if err == nil && d.Push != nil {", "if false {", model, "TestModel"),
		{
			"the push is written in a transaction of its own", "3",
			[]edit{
				{"internal/store/shared/settle.go", "if err == nil && d.Push != nil {", "if false {"},
				{"internal/gate/decide.go", "r.sendHints()\n\treturn out, nil",
					"if r.action.Status == gatehouse.StatusApproved && r.code == gatehouse.Decided {\n\t\t" +
						"if err := g.Store.Update(ctx, r.action.Tenant, func(tx gatehouse.Tx) error { " +
						"return tx.InsertPush(g.newPush(tx, r.action)) }); err != nil {\n\t\t\treturn nil, err\n\t\t}\n\t}\n" +
						"\tr.sendHints()\n\treturn out, nil"},
			},
			model, "TestOneTransaction",
		},
		plant("an allowed action without its push", "3", "internal/gate/propose.go",
			"return tx.InsertPush(g.newPush(tx, a))\n", "return nil\n", model, "TestModel"),
		plant("a push before the decision", "4, 7", "internal/gate/propose.go",
			`data["approval"], data["required"] = a.Approval.ID, a.Approval.Required`,
			`data["approval"], data["required"] = a.Approval.ID, a.Approval.Required`+"\n\tif err := "+
				"tx.InsertPush(g.newPush(tx, a)); err != nil {\n\t\treturn err\n\t}", model, "TestModel"),
		plant("the store accepts a push of an unapproved action", "4", sqlite+"/pushes.go",
			"WHERE tenant = ? AND id = ? AND status = 'approved'`", "WHERE tenant = ? AND id = ? AND status <> ''`", sqlite,
			conform+"PushNeedsApproval"),
		plant("the digest is not compared at the decision", "6", ruling,
			"if r.decision.Digest != \"\" && r.decision.Digest != a.Digest {", "if false {", model, "TestModel"),
		plant("an approval without a digest", "6", "service.go",
			"if kind == Approve && digest == \"\" {", "if false {", model, "TestModel"),
		plant("the digest does not cover the change", "6", "digest.go",
			"Member{\"proposed_change\", p.ProposedChange},\n\t\tMember{\"revision\", ",
			`Member{"proposed_change", "null"}, Member{"revision", `, root, "TestDigestVectors"),
		plant("an expired approval can be given", "9", ruling,
			"if !tx.Now().Before(ap.End()) {", "if false {", gate, "TestExpiryHoldsWithoutTheSweeper"),
		plant("an approval can be given at its expiry", "9", ruling,
			"if !tx.Now().Before(ap.End()) {", "if tx.Now().After(ap.End()) {", gate,
			"TestExpiryHoldsWithoutTheSweeper"),
		plant("the proposer can lengthen the time to decide", "9", "internal/gate/answerable.go",
			"expiry = min(expiry, in)", "expiry = in", model, "TestModel"),
		plant("one approval too few is enough", "8", ruling,
			"if ap.Approvals() < ap.Required {", "if ap.Approvals() < ap.Required-1 {", model, "TestModel"),
		plant("the policy's number of approvals is ignored", "8", "internal/gate/answerable.go",
			"required := max(v.Required, from.required, 1)", "required := max(from.required, 1)\n\tv.Required = 1", model,
			"TestModel"),
		{
			"one approval is enough for L5", "8",
			[]edit{
				{"internal/gate/answerable.go", "required = max(required, 2)", "required = max(required, 1)"},
				{"internal/policy/policy.go", "if level >= gatehouse.L5 {\n\t\treturn 2",
					"if level >= gatehouse.L5 {\n\t\treturn 1"},
			},
			gate, "TestNobodyMayAnswer",
		},
		plant("the value is not retyped at L4 and L5", "contract", ruling,
			"c != nil && r.decision.Confirm != c.Value", "c != nil && false", model, "TestModel"),
		plant("a target that has changed is approved unseen", "contract", ruling,
			"if r.drift != nil {", "if false {", gate, "TestTargetChangedNeedsAcknowledgement"),
		plant("the active policy has no veto at the decision", "promise 2", ruling,
			"if r.veto != \"\" {", "if false {", model, "TestModel"),
		plant("a veto found inside the transaction is lost", "promise 2", "internal/gate/decide.go",
			"r.veto = h.veto\n", "_ = h.veto\n", gate, "TestStricterPolicyAtDispatch"),
		plant("a judgement that was cut off counts", "promise 2", "internal/policy/evaluate.go",
			"return verdict, !v.budget.Spent()", "return verdict, true", "internal/policy", "TestOneBudgetForAJudgement"),
		plant("a policy applied meanwhile is not seen", "promise 2", ruling,
			"if r.known != nil && rights.PolicyVersion != r.policyVersion {", "if rights.PolicyVersion < 0 {", gate,
			"TestPolicyAppliedMeanwhileVetoes"),
		plant("a revised action keeps its approval open", "1, 11", "internal/gate/revise.go",
			"if err := tx.MoveApproval(old.Approval.ID, gatehouse.ApprovalCanceled); err != nil {\n\t\treturn err\n\t}",
			"", model, "TestModel"),
		plant("another body is answered under the same key", "contract", "internal/usecase/idempotency.go",
			"case rec.BodyHash != c.Idempotency.BodyHash:", "case false:", model, "TestModel"),
		plant("the answer is not stored with the effect", "contract", "internal/usecase/usecase.go",
			"return out, remember(tx, c, out)", "return out, nil", model, "TestModel"),
		plant("a known idempotency_key hides other content", "contract", "internal/gate/propose.go",
			"case known.ContentHash != a.ContentHash, ", "case false, ", model, "TestModel"),
		plant("two reversals of one action", "5, 11", "internal/gate/reverse.go",
			"if open != \"\" {", "if false {", model, "TestModel"),
	}
}
