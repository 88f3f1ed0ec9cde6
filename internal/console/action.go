package console

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

func (c *Console) actionRoutes() []route {
	proposers := []gatehouse.Role{gatehouse.RoleProposer}
	editors := []gatehouse.Role{gatehouse.RoleProposer, gatehouse.RoleApprover}
	return []route{
		{pattern: "GET /actions/{id}", handle: c.action},
		{pattern: "GET /actions/{id}/live", background: true, handle: c.actionLive},
		{pattern: "GET /actions/{id}/target", background: true, handle: c.actionTarget},
		{pattern: "GET /actions/{id}/record", background: true, handle: c.actionRecord},
		{pattern: "GET /actions/{id}/standing", background: true, handle: c.actionStanding},
		{pattern: "POST /actions/{id}/decide", handle: c.decide},
		{pattern: "POST /actions/{id}/cancel", handle: c.cancel},
		{pattern: "POST /actions/{id}/rebase", handle: c.rebase},
		{pattern: "POST /actions/{id}/reverse", handle: c.reverse},
		{pattern: "GET /actions/{id}/edit", roles: editors, handle: c.editPage},
		{pattern: "POST /actions/{id}/edit/review", roles: editors[1:], handle: c.reviewEdit},
		{pattern: "POST /actions/{id}/edit", roles: proposers, handle: c.revise},
		{pattern: "GET /actions/{id}/stepup/oidc/{provider}", handle: c.stepUpOIDC},
		{pattern: "POST /actions/{id}/stepup/passkey/begin", handle: c.stepUpPasskeyBegin},
		{pattern: "POST /actions/{id}/stepup/passkey/finish", handle: c.stepUpPasskeyFinish},
	}
}

// actionPage is all that is shown of one action.
type actionPage struct {
	a        *gatehouse.Action
	sentence card.Phrase
	step     card.Step
	// target is what is known of the target before the change; payload is the
	// change on that.
	target  target
	payload payload
	// cannot tells why this person sees no buttons, nil when they may decide.
	cannot error
	// sealed: the votes' notes are shown once this person has given a reason.
	sealed bool
	// stepUp is the open proof for this action as shown, nil for none.
	stepUp  *gatehouse.StepUp
	options gatehouse.SignInOptions
	looks   []string
	history []moment
	// undo is until when an approval can be taken back, zero when it cannot.
	undo                time.Time
	canReverse, canEdit bool
	// canRebase: the gate can propose it on the present state of its target, and
	// this person may ask for that; once makes a second press the same revision.
	canRebase bool
	once      string
	// offered: the notice of the last answer offers that already.
	offered   bool
	iteration iteration
	// standsFor names those for whom the person may answer.
	standsFor []string
	// moved is what has moved at the target since the action was proposed that
	// this one is a rebase of.
	moved moved
	// grounds are what the policy went by, nil where that cannot be told.
	grounds *gatehouse.Grounds
	// ofRun is the step of a run that proposed it, nil for none.
	ofRun *gatehouse.Step

	// outcome is what an answer came to that was not accepted, notes what was
	// typed with it.
	outcome *gatehouse.Error
	notes   string
	// reasons are those that the policy offers for a rejection.
	reasons []string
	// record is what became of earlier ones like it, nil where the page asks for it
	// later.
	record *record
	// place is where in the list it stands, "" where that is not known.
	place string
	// back is the list that the action was opened from, "" for none; next is
	// that list as a query.
	back string
	next inboxQuery
}

// openAction collects what the page of an action shows, with what its target is
// now where read says so. It notes that the person looks at it.
func (c *Console) openAction(v *view, id string, read bool) (*actionPage, error) {
	a, err := c.cfg.Actions.FindAction(v.ctx, id)
	if err != nil {
		return nil, err
	}
	full := v.query("full") != "" || v.shownInFull(a)
	p := &actionPage{
		a: a, step: card.Ladder(a), target: c.targetOf(v, a),
		cannot: v.mayDecide(a), looks: c.presence.others(a.Tenant, a.ID, v.person.Name, v.now),
		history: historyOf(a), undo: undoUntil(v, a),
		canReverse: a.Status == gatehouse.StatusApplied && a.ArchivedAt == nil && a.Receipt != nil && a.Receipt.Reversible &&
			v.has(gatehouse.RoleProposer, gatehouse.RoleApprover, gatehouse.RoleOperator),
		canEdit:   a.Status == gatehouse.StatusPending && v.has(gatehouse.RoleProposer) || v.mayEdit(a),
		canRebase: a.CanRebase && v.has(gatehouse.RoleProposer, gatehouse.RoleApprover), once: v.requestID,
	}
	if read {
		p.target = c.readTarget(v, a)
	}
	p.sentence, p.payload = p.target.Describe(), newPayload(p.target.Shown, full)
	if a.Status == gatehouse.StatusPending {
		c.presence.looks(a.Tenant, a.ID, v.person.Name, v.now)
	}
	if p.cannot == nil && p.step.StepUp {
		if p.options, err = c.stepUpOptions(v); err != nil {
			return nil, err
		}
		p.stepUp, err = c.cfg.Browser.FindStepUp(v.ctx, a.ID, a.Digest)
		if err != nil && gatehouse.CodeOf(err) != gatehouse.CodeNotFound {
			return nil, err
		}
	}
	if p.cannot == nil {
		p.standsFor = v.standsFor(a)
		if p.reasons, err = c.cfg.PolicyChecker.RejectReasons(v.ctx); err != nil {
			return nil, err
		}
	}
	if p.iteration, err = c.iterationOf(v, a); err != nil {
		return nil, err
	}
	if p.moved, err = c.movedSince(v, a); err != nil {
		return nil, err
	}
	p.sealed = p.cannot == nil && p.step.Reason
	if v.query("record") != "" && a.Status == gatehouse.StatusPending {
		if p.record, err = c.recordOf(v, a); err != nil {
			return nil, err
		}
	}
	if p.grounds, err = c.cfg.PolicyChecker.ActionGrounds(v.ctx, a); err != nil {
		return nil, err
	}
	if p.ofRun, err = c.stepOf(v, a.ID); err != nil {
		return nil, err
	}
	return p, nil
}

// stepUpOptions are the ways in which this person can prove who they are: a
// passkey only where they have one.
func (c *Console) stepUpOptions(v *view) (gatehouse.SignInOptions, error) {
	o, _ := v.signInOptions()
	if !o.Passkeys {
		return o, nil
	}
	own, err := c.cfg.Browser.ListPasskeys(v.ctx, v.person.ID)
	o.Passkeys = len(own) > 0
	return o, err
}

// action shows one action on a page of its own.
func (c *Console) action(v *view) error {
	p, err := c.openAction(v, v.r.PathValue("id"), v.query("read") != "")
	if err != nil {
		return err
	}
	return v.showAction(http.StatusOK, p)
}

func (v *view) showAction(status int, p *actionPage) error {
	if v.wantsDetail() {
		if status < 400 {
			v.w.Header().Set("HX-Push-Url", v.r.URL.RequestURI())
		}
		return v.write(status, actionAlone(v, p))
	}
	return v.render(status, strings.TrimSpace(p.a.RiskLevel.String()+" "+p.a.ActionType), "/inbox", actionAlone(v, p))
}

// undoUntil is the end of the hold that an approval rests in, as far as this
// person can take it back.
func undoUntil(v *view, a *gatehouse.Action) time.Time {
	if a.Status != gatehouse.StatusApproved || a.Approval == nil || a.DecidedAt == nil || a.Push == nil || a.Push.Attempts > 0 ||
		!v.has(gatehouse.RoleApprover) {
		return time.Time{}
	}
	if end := a.DecidedAt.Add(a.HoldFor.D()); end.After(v.now) {
		return end
	}
	return time.Time{}
}

// actionLive tells an open page whether the action is still as it shows it.
func (c *Console) actionLive(v *view) error {
	a, err := c.cfg.Actions.FindAction(v.ctx, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	if a.Status == gatehouse.StatusPending {
		c.presence.looks(a.Tenant, a.ID, v.person.Name, v.now)
	}
	return v.write(http.StatusOK, liveMark(v, a, v.query("seen"), c.presence.others(a.Tenant, a.ID, v.person.Name, v.now)))
}

// stateOf is what a page notices a change by.
func stateOf(a *gatehouse.Action) string {
	s := string(a.Status)
	if a.Approval != nil {
		for _, vote := range a.Approval.Votes {
			s += "." + string(vote.Decision)
		}
	}
	if a.Push != nil {
		s += "." + string(a.Push.Status)
	}
	return s
}

// moment is one line of an action's history.
type moment struct {
	at   time.Time
	what string
	who  string
	via  string
	// notes are a person's words.
	notes string
	// after is how long it took since the line before.
	after string
	// vote is true for a person's vote, whose notes may be sealed.
	vote   bool
	person string
}

// historyOf tells what happened to an action, in order.
func historyOf(a *gatehouse.Action) []moment {
	list := []moment{{at: a.ProposedAt, what: "proposed", who: a.ProposedBy}}
	if a.RebasedBy != "" {
		list[0].what, list[0].who = "rebased on the present state of its target", a.RebasedBy
	}
	if a.EditedBy != "" && a.RebasedBy == "" {
		list[0].what, list[0].who = "edited", a.EditedBy
	}
	add := func(at *time.Time, what, who, via string) {
		if at != nil {
			list = append(list, moment{at: *at, what: what, who: who, via: via})
		}
	}
	if a.Approval != nil {
		for _, vote := range a.Approval.Votes {
			what := "voted to approve"
			if vote.Decision == gatehouse.Reject {
				what = "voted to reject"
			}
			list = append(list, moment{at: vote.At, what: what, who: voterOf(vote), via: string(vote.Via), notes: vote.Notes, vote: true, person: vote.Person})
		}
	}
	if a.Status != gatehouse.StatusPending {
		add(a.DecidedAt, decidedWord(a), a.DecidedBy, string(a.DecidedVia))
	}
	if a.Push != nil {
		add(a.DecidedAt, queuedWord(a), "the gate", "")
		add(a.Push.PickedAt, "picked up to be sent", "the dispatcher", "")
		add(a.Push.SentAt, "sent to "+a.Connector, "the dispatcher", "")
		add(a.Push.AppliedAt, "applied", a.Connector, "")
	}
	if a.Push == nil || a.Push.AppliedAt == nil {
		if a.FinishedAt != nil && (a.DecidedAt == nil || !a.FinishedAt.Equal(*a.DecidedAt)) {
			add(a.FinishedAt, string(a.Status), "", "")
		}
	}
	for i := 1; i < len(list); i++ {
		if d := list[i].at.Sub(list[i-1].at); d > 0 {
			list[i].after = span(d)
		}
	}
	return list
}

// voterOf names who voted, and for whom.
func voterOf(v gatehouse.Vote) string {
	if v.ForName != "" {
		return v.Name + ", for " + v.ForName
	}
	if v.Grant != "" {
		return v.Name + ", by " + v.Grant
	}
	return v.Name
}

// decidedWord names the decision that stands behind a state.
func decidedWord(a *gatehouse.Action) string {
	switch a.Status {
	case gatehouse.StatusRejected, gatehouse.StatusDenied, gatehouse.StatusExpired, gatehouse.StatusCanceled, gatehouse.StatusSuperseded:
		return string(a.Status)
	}
	if a.DecidedVia == gatehouse.ViaPolicy {
		return "allowed by policy"
	}
	if a.DecidedVia == gatehouse.ViaGrant {
		return "approved in advance"
	}
	return "approved"
}

// queuedWord tells that an approved action waits to be sent, and how long it
// is held first.
func queuedWord(a *gatehouse.Action) string {
	if a.HoldFor > 0 {
		return "queued, held for " + span(a.HoldFor.D())
	}
	return "queued"
}

// actionPath is the page of an action.
func actionPath(id string) string { return "/actions/" + url.PathEscape(id) }
