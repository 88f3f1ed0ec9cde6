package console_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// reviewCell is one way to use a link.
type reviewCell struct {
	key    string // new, old, or revoked
	use    string // first, or reused after the decision
	review string // own; or the path names the review of another action, or of another recipient
	caller string // recipient, other, or nobody
	by     string // api, or page: the form with a valid nonce
	answer gatehouse.DecisionKind
}

// want is what the cell must answer; the first rule that fits decides.
func (c reviewCell) want() (status int, code string) {
	switch {
	case c.review != "own", c.key == "revoked":
		return http.StatusUnauthorized, "bad_token"
	case c.caller == "other":
		return http.StatusForbidden, "sign_in_required"
	case c.use == "reused":
		return http.StatusConflict, "already_decided"
	case c.caller == "nobody":
		return http.StatusForbidden, "sign_in_required"
	}
	return http.StatusOK, "decided"
}

// mailedLinks are the links about one action.
type mailedLinks struct {
	reviewCell
	a         *gatehouse.Action
	ana, bens *gatehouse.ReviewLink
}

// TestReviewCells uses links in every combination of key, first or second use, review, caller,
// surface and answer. Only a recipient's first use of their own link decides, if its key is not revoked;
// all others change no action.
func TestReviewCells(t *testing.T) {
	t.Parallel()
	w := newLinked(t)
	strangers := w.stranger()
	// The links of a key are signed before it is replaced or revoked.
	var cells []*mailedLinks
	bystanders := map[string]*mailedLinks{}
	signed := func(key string) string {
		mail := func(c reviewCell) *mailedLinks {
			a := w.propose(w.bot, func(p *gatehouse.Proposal) { p.Target.EntityRef = fmt.Sprint("SKU-", key, len(cells)) })
			return &mailedLinks{reviewCell: c, a: a, ana: w.link(a, w.ana), bens: w.link(a, w.ben)}
		}
		bystanders[key] = mail(reviewCell{})
		for _, use := range []string{"first", "reused"} {
			for _, review := range []string{"own", "another action's", "another recipient's"} {
				for _, caller := range []string{"recipient", "other", "nobody"} {
					for _, by := range []string{"api", "page"} {
						for _, answer := range []gatehouse.DecisionKind{gatehouse.Approve, gatehouse.Reject} {
							cells = append(cells, mail(reviewCell{key, use, review, caller, by, answer}))
						}
					}
				}
			}
		}
		for _, m := range cells {
			if m.key == key && m.use == "reused" {
				if _, err := w.gate.DecideReview(w.as(w.ana.creds), m.ana.ID, m.ana.Token,
					gatehouse.ReviewDecision{Decision: m.answer, Reason: "first"}); err != nil {
					t.Fatal(err)
				}
			}
		}
		keys, err := w.gate.ListLinkKeys(w.admin)
		must(t, err)
		return keys[0].ID
	}
	revoked := signed("revoked")
	if _, err := w.gate.RevokeLinkKey(w.admin, revoked); err != nil {
		t.Fatal(err)
	}
	signed("old")
	if _, err := w.gate.RotateLinkKeys(w.admin); err != nil {
		t.Fatal(err)
	}
	signed("new")
	// The sessions know no device of ana: every answer is proven by a session or a key.
	decided := 0
	for _, m := range cells {
		path := m.ana.ID
		switch m.review {
		case "another action's":
			path = bystanders[m.key].ana.ID
		case "another recipient's":
			path = m.bens.ID
		}
		b := map[string]*browser{"recipient": w.ana, "other": w.ben, "nobody": strangers}[m.caller]
		status, code := m.want()
		gotStatus, gotCode := w.useLink(m, path, b)
		if gotStatus != status || m.by == "api" && gotCode != code {
			t.Errorf("%+v: %d %s, want %d %s", m.reviewCell, gotStatus, gotCode, status, code)
		}
		now := w.action(m.a.ID)
		votes, wantVotes, notes := len(now.Approval.Votes), 0, ""
		switch {
		case m.use == "reused":
			wantVotes, notes = 1, "first"
		case code == "decided":
			wantVotes, notes = 1, "second"
			decided++
		}
		if votes != wantVotes || votes == 1 && (now.Approval.Votes[0].Notes != notes || now.DecidedBy != "ana" ||
			now.DecidedVia != gatehouse.ViaLink || now.Approval.Votes[0].Decision != m.answer) ||
			votes == 0 && now.Status != gatehouse.StatusPending {
			t.Errorf("%+v: the action is %s by %s with %+v", m.reviewCell, now.Status, now.DecidedBy, now.Approval.Votes)
		}
	}
	if decided != 8 { // two keys, two surfaces, two answers
		t.Errorf("%d of %d cells decided", decided, len(cells))
	}
	for key, m := range bystanders {
		if now := w.action(m.a.ID); now.Status != gatehouse.StatusPending || len(now.Approval.Votes) != 0 {
			t.Errorf("the other action of the %s key is %s", key, now.Status)
		}
	}
}

// useLink answers by a link at the path of a review.
func (w *linked) useLink(m *mailedLinks, review string, b *browser) (status int, code string) {
	w.t.Helper()
	if m.by == "page" {
		const cookie = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE"
		nonce, err := w.gate.ReviewNonce(w.t.Context(), review, m.ana.Token, cookie)
		if (err == nil) != (m.review == "own") {
			w.t.Errorf("%+v: a nonce: %v", m.reviewCell, err)
		}
		r := b.request(http.MethodPost, gatehouse.ReviewPath(review, m.answer), map[string][]string{
			"token": {m.ana.Token}, "nonce": {nonce}, "reason": {"second"},
		})
		r.AddCookie(&http.Cookie{Name: "gatehouse_review", Value: cookie})
		return b.do(r).status, ""
	}
	caller := b
	if b.creds == nil {
		caller = nil
	}
	verb := map[gatehouse.DecisionKind]string{gatehouse.Approve: "approve", gatehouse.Reject: "reject"}[m.answer]
	for {
		status, code = w.call("POST", "/reviews/"+review+"/"+verb+"?token="+m.ana.Token, caller, `{"reason":"second"}`)
		if status != http.StatusTooManyRequests {
			return status, code
		}
		time.Sleep(50 * time.Millisecond)
	}
}
