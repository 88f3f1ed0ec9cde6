package gate_test

import (
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/ring"
)

// TestOldSessionsAreForgotten: ended sessions, step-ups and links are deleted after a
// month; the sessions stay in the log.
func TestOldSessionsAreForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	ana := w.person("ana")
	a := w.propose(w.agent(), func(p *gatehouse.Proposal) { p.ActionType = "create_item" })
	first := w.signIn(ana, gatehouse.Browser{})
	browser := w.browser(first)
	c, err := w.gate.RotateEditToken(w.admin, "ana")
	must(t, err)
	if _, err := w.gate.StepUpWithEditToken(browser, a.ID, a.Digest, c.EditToken); err != nil {
		t.Fatal(err)
	}
	must(t, w.gate.SignOut(browser))
	ended := func() int {
		t.Helper()
		page, err := w.gate.ListSessions(w.admin, gatehouse.SessionFilter{All: true, Ended: true})
		must(t, err)
		return len(page.Items)
	}
	purge := func(want int) {
		t.Helper()
		if n, err := w.gate.PurgeSessions(t.Context()); err != nil || n != want {
			t.Errorf("%d rows are gone, %v; want %d", n, err, want)
		}
	}
	w.clock.Advance(gatehouse.SessionKept - time.Second)
	second := w.signIn(ana, gatehouse.Browser{})
	purge(0)
	if n := ended(); n != 2 {
		t.Errorf("%d sessions are listed", n)
	}
	w.clock.Advance(2 * time.Second)
	purge(3) // the step-up, the session, its link
	if n := ended(); n != 1 {
		t.Errorf("%d sessions are listed", n)
	}
	w.browser(second)
	w.gone(first.Token)
	if n := w.leaves("session.started"); n != 2 {
		t.Errorf("the log knows %d sessions", n)
	}
}

// TestOldReviewsAreForgotten: a review is kept for a month after its links have expired.
func TestOldReviewsAreForgotten(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, "", func(c *appConfig) { c.Master = newMaster(t, ring.NewMasterKey()) })
	a := w.propose(w.agent(), func(p *gatehouse.Proposal) { p.ActionType = "create_item" })
	w.person("ana")
	ana, err := w.gate.FindPrincipal(w.admin, "ana")
	must(t, err)
	l, err := w.gate.ReviewLink(t.Context(), a, ana)
	must(t, err)
	for _, step := range []struct {
		after time.Duration
		want  int
	}{
		{l.ExpiresAt.Sub(w.clock.Now()) + gatehouse.SessionKept - time.Second, 0},
		{2 * time.Second, 1},
		{time.Second, 0},
	} {
		w.clock.Advance(step.after)
		if n, err := w.gate.PurgeReviews(t.Context()); err != nil || n != step.want {
			t.Errorf("%d reviews are gone, %v; want %d", n, err, step.want)
		}
	}
}
