package main

// notifyBugs break these rules: all people whom an event concerns are notified once, but not of their own acts;
// and a card shows how its question ended.
func notifyBugs() []bug {
	const notify = "internal/notify"
	const spread = notify + "/fanout.go"
	return []bug{
		{
			"messages are queued in a transaction of their own", "17, promise 6",
			[]edit{
				{spread, "if err := s.write(tx); err != nil {\n\t\t\treturn err\n\t\t}\n\t\tif len", "if len"},
				{spread, "if errors.Is(err, gatehouse.ErrConflict) { // another notifier",
					"if err == nil && s != nil {\n\t\terr = n.store.Update(ctx, tenant, s.write)\n\t}\n\tif errors.Is(err, " +
						"gatehouse.ErrConflict) { // another notifier"},
			},
			notify, "TestSpreadIsOneTransaction",
		},
		plant("a message is acknowledged before it is sent", "promise 6", notify+"/deliver.go",
			"sent, err := n.send(ctx, c, m, message)\n",
			"if err := n.record(ctx, c, m, Sent{}, nil); err != nil {\n\t\treturn err\n\t}\n\tsent, err := n.send(ctx, c, "+
				"m, message)\n",
			notify, "TestFailing"),
		plant("a card is not updated when its question ends elsewhere", "promise 6", notify+"/cards.go",
			`strings.HasPrefix(l.Type, "hitl.") && l.Type`, `l.Type == "hitl.voted" && l.Type`, notify, "TestCardOfOtherRoutes"),
		plant("people are notified of their own acts", "contract", spread,
			"p.Person != self && p.ID != t.leaf.Actor && concerned(p)", "(p.Person != self || true) && concerned(p)", model,
			"TestModel"),
		plant("nobody is notified of an expiry", "promise 6", spread,
			"case \"hitl.expired\":\n\t\treturn gatehouse.NotifyExpired", "case \"hitl.expired\":", model, "TestModel"),
		plant("a person who has voted is asked again", "contract", spread,
			"!a.Approval.Bars(p) &&\n\t\ta.Approval.VoteOf(p.Person) == nil", "!a.Approval.Bars(p)", notify, "TestQuorum"),
		plant("a question is sent to one person only", "17", spread,
			"list = append(list, p)\n\t\t}\n\t}\n\treturn list, nil",
			"return append(list, p), nil\n\t\t}\n\t}\n\treturn list, nil", model, "TestModel"),
	}
}
