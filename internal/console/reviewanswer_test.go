package console_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestReviewOfAHeldRejection: while a rejection is held, the page of a link says who rejected the action.
func TestReviewOfAHeldRejection(t *testing.T) {
	t.Parallel()
	w := newLinked(t)
	a := w.propose(w.bot, nil)
	l := w.link(a, w.ana)
	w.stranger().get(pathOf(l, "")).want(http.StatusOK).has("Judged under policy v1.", `data-status="pending"`)
	w.ana.post("/actions/"+a.ID+"/decide", decision(a, gatehouse.Reject, "notes", "too dear")...).want(http.StatusOK)
	w.stranger().get(pathOf(l, "")).want(http.StatusOK).
		has("Already decided", "Rejected by ana. The proposer is notified at", `data-status="rejected"`).
		lacks("Pending.", `data-status="pending"`)
}

// lostReviews cannot open a review after an answer.
type lostReviews struct {
	gatehouse.ReviewService
	answered bool
}

func (r *lostReviews) DecideReview(ctx context.Context, id, token string, d gatehouse.ReviewDecision) (
	*gatehouse.Answer, error,
) {
	answer, err := r.ReviewService.DecideReview(ctx, id, token, d)
	r.answered = r.answered || err == nil
	return answer, err
}

func (r *lostReviews) OpenReview(ctx context.Context, id, token, device string) (*gatehouse.OpenReview, error) {
	if r.answered {
		return nil, gatehouse.E(gatehouse.CodeBusy, "the store is away")
	}
	return r.ReviewService.OpenReview(ctx, id, token, device)
}

// TestAStoredAnswerIsShown: the page of a link confirms a stored answer even if it cannot read the review again.
func TestAStoredAnswerIsShown(t *testing.T) {
	t.Parallel()
	w := newLinked(t)
	a := w.propose(w.bot, nil)
	l := w.link(a, w.ana)
	w.config.Reviews = &lostReviews{ReviewService: w.gate}
	w.public("")
	w.send(w.ana, l, gatehouse.Approve).want(http.StatusOK).has("Approved", "You can close this page.").
		lacks("the store is away", "<form")
	w.status(a, gatehouse.StatusApproved)
}
