package gatetest

import (
	"context"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// talk asks and answers a question about a pending action, comments on it, assigns it and snoozes it.
func (w *World) talk(a *gatehouse.Action) {
	w.t.Helper()
	say := func(ctx context.Context, r gatehouse.CommentRequest) {
		_, err := w.Gate.Comment(ctx, a.ID, r)
		w.must(err)
	}
	say(w.As("ana"), gatehouse.CommentRequest{Text: "why so much?", Kind: gatehouse.CommentQuestion})
	say(w.As("bot"), gatehouse.CommentRequest{Text: "the supplier raised it", Answers: 1})
	say(w.As("ben"), gatehouse.CommentRequest{Text: "I looked it up: right"})
	_, err := w.Gate.Assign(w.As("ana"), a.ID, gatehouse.AssignRequest{Assignee: "ben"})
	w.must(err)
	w.must(w.Gate.SnoozeAction(w.As("ben"), a.ID, w.Clock.Now().Add(time.Hour)))
}
