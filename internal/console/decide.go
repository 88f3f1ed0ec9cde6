package console

import (
	"cmp"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

// decide processes a person's answer. If the answer is refused, it shows the page of the action, in the
// action's present state, with the error and its HTTP status.
func (c *Console) decide(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	id := v.r.PathValue("id")
	a, err := c.cfg.Actions.FindAction(v.ctx, id)
	if err != nil {
		return err
	}
	if err := c.answer(v, a); err != nil {
		return c.refuse(v, id, err)
	}
	return v.redirectNext(a.ID)
}

// answer checks the page's own rules, which go beyond those of the gate, and then decides.
func (c *Console) answer(v *view, a *gatehouse.Action) error {
	d := gatehouse.Decision{
		Decision: gatehouse.DecisionKind(v.form("decision")), Notes: strings.TrimSpace(v.form("notes")),
		Digest:  gatehouse.Digest(v.form("digest")),
		Confirm: v.form("confirm"), AcknowledgeStale: v.form("acknowledge_stale") != "", Hold: true,
	}
	step := card.Ladder(a)
	if d.Decision == gatehouse.Reject && d.Notes == "" && a.Status == gatehouse.StatusPending {
		return gatehouse.E(gatehouse.CodeInvalid, "say why you reject it: the proposer and the next reviewer read it")
	}
	if d.Decision == gatehouse.Approve && a.Status == gatehouse.StatusPending && !v.shown(a) {
		return gatehouse.E(gatehouse.CodeInvalid, "you have not seen the whole change: open it in full first")
	}
	if token := v.form("edit_token"); token != "" && d.Decision == gatehouse.Approve && step.StepUp {
		if _, err := c.cfg.Browser.StepUpWithEditToken(v.ctx, a.ID, d.Digest, token); err != nil {
			return err
		}
	}
	_, err := c.cfg.Actions.Decide(v.ctx, a.ID, d)
	return err
}

// refuse shows the action's present state with the error of a refused form, such as an answer, a
// cancellation or a comment.
func (c *Console) refuse(v *view, id string, err error) error {
	e := asError(err)
	if e.Code == gatehouse.CodeInternal || e.Code == gatehouse.CodeUnauthenticated {
		return err
	}
	p, found := c.openAction(v, id, false)
	if found != nil {
		return found
	}
	p.outcome, p.refused, p.field = e, cmp.Or(v.form("decision"), path.Base(v.r.URL.Path)), v.form
	p.offered = stale(p)
	if to := localPath(v.form("return")); isInbox(to) {
		p.back, p.next = to, queryOf(to)
	}
	return v.showAction(gatehouse.StatusOf(e.Code), p)
}

// redirectNext redirects after an answer: to the next action of the list from which the action was
// opened, else to the action itself.
func (v *view) redirectNext(done string) error {
	return v.redirect(pathAfter(v.form("return"), v.form("next"), done))
}

func isInbox(path string) bool {
	path, _, _ = strings.Cut(path, "?")
	return path == "/inbox"
}

// queryOf parses the inbox query of a URL.
func queryOf(path string) inboxQuery {
	_, raw, _ := strings.Cut(path, "?")
	values, err := url.ParseQuery(raw)
	if err != nil {
		values = nil
	}
	return readInboxQuery(values)
}

// cancel withdraws an approval during its hold or, for the proposer, a pending action.
func (c *Console) cancel(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	id := v.r.PathValue("id")
	if _, err := c.cfg.Actions.Cancel(v.ctx, id); err != nil {
		if gatehouse.CodeOf(err) == gatehouse.CodeNotFound {
			return err
		}
		return c.refuse(v, id, err)
	}
	return v.redirectNext(id)
}

// reverse proposes the reversal of an applied action and shows that proposal.
func (c *Console) reverse(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	id := v.r.PathValue("id")
	a, err := c.cfg.Actions.Reverse(v.ctx, id, gatehouse.ReverseRequest{Rationale: strings.TrimSpace(v.form("rationale"))})
	if err != nil {
		if gatehouse.CodeOf(err) == gatehouse.CodeNotFound {
			return err
		}
		return c.refuse(v, id, err)
	}
	return v.redirect(actionPath(a.ID))
}

// stepUpOIDC asks an identity provider to authenticate the person again.
func (c *Console) stepUpOIDC(v *view) error {
	id := v.r.PathValue("id")
	to, err := c.cfg.SignIn.BeginOIDCStepUp(v.ctx, v.r.PathValue("provider"), id, gatehouse.Digest(v.query("digest")),
		localPath(v.query("return")))
	if err != nil {
		return err
	}
	return v.leave(to)
}

func (c *Console) stepUpPasskeyBegin(v *view) error {
	return v.challenge(c.cfg.SignIn.BeginPasskeyStepUp(v.ctx, v.r.PathValue("id"), gatehouse.Digest(v.query("digest"))))
}

func (c *Console) stepUpPasskeyFinish(v *view) error {
	response, err := v.body()
	if err != nil {
		return err
	}
	if _, err := c.cfg.SignIn.FinishPasskeyStepUp(v.ctx, v.takeState(), response); err != nil {
		return err
	}
	v.w.WriteHeader(http.StatusNoContent)
	return nil
}

// stepUpPath is the URL that starts the authentication at a provider and then returns to this
// action.
func stepUpPath(p *actionPage, provider string) string {
	to := actionPath(p.a.ID)
	if p.back != "" {
		to = p.next.with(p.a.ID).url()
	}
	return actionPath(p.a.ID) + "/stepup/oidc/" + url.PathEscape(provider) + "?" +
		url.Values{"digest": {string(p.a.Digest)}, "return": {to}}.Encode()
}
