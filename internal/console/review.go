package console

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/link"
)

// The review page of a link is separate from the console, and opening it does not change the store.
// Package link documents what a decision requires. The page's only script is for the recipient's own browser:
// it reports that the page was opened.

// reviewPolicy permits only styles, images, fonts and forms of this server. openedPolicy also permits its scripts
// and connections to it.
const reviewPolicy = "default-src 'none'; style-src 'self'; img-src 'self'; font-src 'self'; form-action 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'"

const openedPolicy = reviewPolicy + "; script-src 'self'; connect-src 'self'"

const (
	plainReview, secureReview = "gatehouse_review", "__Host-gatehouse-review"
	plainDevice, secureDevice = "gatehouse_device", "__Host-gatehouse-device"
)

func (c *Console) reviewRoutes() []route {
	if c.cfg.Reviews == nil {
		return nil
	}
	list := []route{{pattern: "POST /review/{id}/opened", public: true, background: true, handle: c.reviewOpened}}
	for path, d := range map[string]gatehouse.DecisionKind{
		"/review/{id}": "", "/review/{id}/approve": gatehouse.Approve, "/review/{id}/reject": gatehouse.Reject,
	} {
		list = append(list, route{pattern: "GET " + path, public: true, background: true, handle: func(v *view) error {
			return c.review(v, d)
		}}, route{pattern: "OPTIONS " + path, public: true, background: true, handle: func(v *view) error {
			v.w.Header().Set("Allow", "GET, HEAD, OPTIONS")
			v.w.WriteHeader(http.StatusNoContent)
			return nil
		}})
		if d != "" {
			list = append(list, route{pattern: "POST " + path, public: true, background: true, handle: func(v *view) error {
				return c.decideReview(v, d)
			}})
		}
	}
	return list
}

// reviewPage holds everything that a link's page shows.
type reviewPage struct {
	open  *gatehouse.OpenReview
	token string
	// choice is the preselected answer, "" for none.
	choice gatehouse.DecisionKind
	// nonce is the hidden value of both forms, "" when no decision is possible now.
	nonce string
	// action is the view of the action, nil when the page does not show it.
	action *actionPage
	// outcome is the error of a refused answer, notes the typed text.
	outcome *gatehouse.Error
	notes   string
	// reports is set when the page has the script that reports its opening in the recipient's browser.
	reports bool
	// answer is the accepted answer.
	answer *gatehouse.Answer
}

// byCode reports whether the forms ask for the code from the mail.
func (p *reviewPage) byCode() bool {
	return p.open.Proven == "" && slices.Contains(p.open.Proofs, gatehouse.ProofCode)
}

// decidable reports whether an answer on this page can be accepted.
func (p *reviewPage) decidable() bool {
	return p.open.State == gatehouse.ReviewPending && (p.open.Proven != "" || p.byCode())
}

// locked says why the page cannot approve the action; "" if it can.
func (p *reviewPage) locked() string {
	if p.action.payload.hidden > 0 {
		return "the change does not fit on this page: open it in Gatehouse"
	}
	return p.action.step.Refused
}

// review shows the page, and changes nothing in the store.
func (c *Console) review(v *view, choice gatehouse.DecisionKind) error {
	p, err := c.openReview(v, v.query("token"), choice)
	if err != nil {
		return v.reviewFailed(err)
	}
	p.reports = p.open.Recognized != "" && v.r.Method == http.MethodGet && !v.prefetched()
	return v.showReview(p)
}

// reviewOpened records that the recipient's browser has opened the page.
func (c *Console) reviewOpened(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	if !v.sameOrigin() {
		return gatehouse.E(gatehouse.CodeSignInRequired, "the request came from another site")
	}
	device := v.cookie(c.named(plainDevice, secureDevice))
	if err := c.cfg.Reviews.ReviewOpened(v.ctx, v.r.PathValue("id"), v.form("token"), device); err != nil {
		return err
	}
	v.w.WriteHeader(http.StatusNoContent)
	return nil
}

// openReview reads what the page shows.
func (c *Console) openReview(v *view, token string, choice gatehouse.DecisionKind) (*reviewPage, error) {
	open, err := c.cfg.Reviews.OpenReview(v.ctx, v.r.PathValue("id"), token, v.cookie(c.named(plainDevice, secureDevice)))
	if err != nil {
		return nil, err
	}
	p := &reviewPage{open: open, token: token, choice: choice}
	if a := open.Action; a != nil {
		t := target{Before: card.ClaimedBefore(a)}
		p.action = &actionPage{
			a: a, target: t, sentence: t.Describe(), step: card.Ladder(a), payload: newPayload(t.Shown, true),
		}
	}
	return p, nil
}

func (c *Console) named(plain, secure string) string {
	if c.secure {
		return secure
	}
	return plain
}

// showReview writes the page. If a decision is possible, its forms get a nonce.
func (v *view) showReview(p *reviewPage) error {
	if p.decidable() && !v.prefetched() {
		var err error
		if p.nonce, err = v.c.cfg.Reviews.ReviewNonce(v.ctx, p.open.ID, p.token, v.reviewCookie()); err != nil {
			return err
		}
	}
	status := http.StatusOK
	switch {
	case p.outcome != nil:
		status = gatehouse.StatusOf(p.outcome.Code)
	case p.open.State == gatehouse.ReviewExpired, p.open.State == gatehouse.ReviewRevoked:
		status = http.StatusGone
	case p.open.State == gatehouse.ReviewNotYours:
		status = http.StatusForbidden
	}
	v.title = "Review"
	v.w.Header().Set("Content-Security-Policy", reviewPolicy)
	if p.reports {
		v.w.Header().Set("Content-Security-Policy", openedPolicy)
	}
	return v.write(status, reviewLayout(v, reviewBody(v, p)))
}

// prefetched reports whether the browser prefetches the page, before a person has opened it.
func (v *view) prefetched() bool {
	return strings.Contains(v.r.Header.Get("Sec-Purpose")+v.r.Header.Get("Purpose"), "prefetch")
}

// reviewCookie sets and returns the cookie's secret, to which the nonces are bound. All tabs share
// it.
func (v *view) reviewCookie() string {
	name := v.c.named(plainReview, secureReview)
	value := v.cookie(name)
	if raw, err := base64.RawURLEncoding.DecodeString(value); err != nil || len(raw) != 32 {
		raw = make([]byte, 32)
		_, _ = rand.Read(raw) // never fails (crypto/rand, Go 1.24)
		value = base64.RawURLEncoding.EncodeToString(raw)
	}
	v.setCookie(name, value, time.Now().Add(link.NonceTTL))
	return value
}

// reviewFailed shows an error, such as that of an invalid link, on a page without scripts. It returns an
// internal error.
func (v *view) reviewFailed(err error) error {
	e := asError(err)
	if e.Code == gatehouse.CodeInternal {
		return err
	}
	v.title = errorTitle(e.Code)
	v.w.Header().Set("Content-Security-Policy", reviewPolicy)
	return v.write(gatehouse.StatusOf(e.Code), reviewLayout(v, errorPage(v, e)))
}

// sameOrigin reports whether the browser declares that the form comes from this origin, by
// Sec-Fetch-Site or else by Origin. Every browser sends one of them, so a request with neither is
// refused.
func (v *view) sameOrigin() bool {
	if site := v.r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin"
	}
	origin, err := url.Parse(v.r.Header.Get("Origin"))
	return err == nil && origin.Host != "" && origin.Host == v.r.Host
}

// decideReview takes an answer.
func (c *Console) decideReview(v *view, choice gatehouse.DecisionKind) error {
	if err := v.parse(); err != nil {
		return err
	}
	p, err := c.openReview(v, v.form("token"), choice)
	if err != nil {
		return v.reviewFailed(err)
	}
	answer, refused := c.answerReview(v, p)
	if refused != nil && asError(refused).Code == gatehouse.CodeInternal {
		return refused
	}
	switch again, err := c.openReview(v, p.token, choice); {
	case err == nil:
		p = again
	case refused != nil:
		return v.reviewFailed(err)
	default: // The answer is stored, so the page says so, without the action.
		c.log.WarnContext(v.ctx, "review not read again", "request_id", v.requestID, "error", err)
		p.open.State, p.action = gatehouse.ReviewDecided, nil
	}
	if refused != nil {
		p.outcome, p.notes = asError(refused), v.form("reason")
	} else {
		p.answer = answer
	}
	return v.showReview(p)
}

// answerReview checks the page's own rules, which go beyond those of the gate, and then decides.
func (c *Console) answerReview(v *view, p *reviewPage) (*gatehouse.Answer, error) {
	d := gatehouse.ReviewDecision{
		Decision: p.choice, Reason: strings.TrimSpace(v.form("reason")), Code: v.form("code"),
		Device: v.cookie(c.named(plainDevice, secureDevice)),
	}
	if !v.sameOrigin() {
		return nil, gatehouse.E(gatehouse.CodeSignInRequired, "the request came from another site: nothing was decided")
	}
	err := c.cfg.Reviews.TakeReviewNonce(v.ctx, p.open.ID, p.token, v.cookie(c.named(plainReview, secureReview)),
		v.form("nonce"))
	if err != nil {
		return nil, err
	}
	if p.open.State == gatehouse.ReviewPending {
		switch {
		case d.Decision == gatehouse.Approve && p.locked() != "":
			return nil, gatehouse.E(gatehouse.CodeInvalid, "%s", p.locked())
		case d.Decision == gatehouse.Reject && d.Reason == "":
			return nil, gatehouse.E(gatehouse.CodeInvalid, "say why you reject it: the proposer and the next reviewer read it")
		}
	}
	return c.cfg.Reviews.DecideReview(v.ctx, p.open.ID, p.token, d)
}

// rememberDevice lets the server recognise the browser after its session has expired.
func (v *view) rememberDevice(s *gatehouse.Session) {
	if v.c.cfg.Reviews == nil {
		return
	}
	token, err := v.c.cfg.Reviews.DeviceToken(v.ctx, s)
	if err != nil {
		v.c.log.WarnContext(v.ctx, "device not remembered", "session", s.ID, "error", err)
		return
	}
	if token != "" {
		v.setCookie(v.c.named(plainDevice, secureDevice), token, s.CreatedAt.Add(gatehouse.DeviceTTL))
	}
}
