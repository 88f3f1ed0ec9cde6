package console

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

// TestReviewOfWhatCannotBeApproved: the page of a link does not offer the approval of an action that the console
// would not approve either, and says why.
func TestReviewOfWhatCannotBeApproved(t *testing.T) {
	t.Parallel()
	a := &gatehouse.Action{ID: "act_1", Proposal: gatehouse.Proposal{RiskLevel: gatehouse.L4},
		Approval: &gatehouse.Approval{Required: 1}} // without a value to retype
	p := &reviewPage{nonce: "n",
		open:   &gatehouse.OpenReview{State: gatehouse.ReviewPending, Proven: gatehouse.ProofSession},
		action: &actionPage{a: a, step: card.Ladder(a), payload: payload{}}}
	var page strings.Builder
	if err := reviewDecision(&view{now: at(0)}, p).Render(t.Context(), &page); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"be approved here: the server does not say what to retype.": true, `data-testid="hidden-lock"`: true,
		`data-testid="review-rejected"`: true, `data-testid="review-approved"`: false, "cannot show the whole change": false,
	} {
		if got := strings.Contains(page.String(), text); got != want {
			t.Errorf("the page has %q: %v\n%s", text, got, page.String())
		}
	}
	if why := p.locked(); why != "the server does not say what to retype" {
		t.Errorf("a posted approval is refused with %q", why)
	}
}
