package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

func (c *Console) actionRoutes() []route {
	proposers := []gatehouse.Role{gatehouse.RoleProposer}
	correctors := []gatehouse.Role{gatehouse.RoleProposer, gatehouse.RoleApprover, gatehouse.RoleOperator}
	return []route{
		{pattern: "GET /actions/{id}", handle: c.action},
		{pattern: "GET /actions/{id}/live", background: true, handle: c.actionLive},
		{pattern: "GET /actions/{id}/target", background: true, handle: c.actionTarget},
		{pattern: "GET /actions/{id}/preview", background: true, handle: c.actionPreview},
		{pattern: "GET /actions/{id}/reversal", background: true, handle: c.actionReversal},
		{pattern: "GET /actions/{id}/record", background: true, handle: c.actionRecord},
		{pattern: "GET /actions/{id}/standing", background: true, handle: c.actionStanding},
		{pattern: "POST /actions/{id}/decide", handle: c.decide},
		{pattern: "POST /actions/{id}/cancel", handle: c.cancel},
		{pattern: "POST /actions/{id}/undo", handle: c.undo},
		{pattern: "POST /actions/{id}/rebase", handle: c.rebase},
		{pattern: "POST /actions/{id}/reverse", handle: c.reverse},
		{pattern: "GET /actions/{id}/edit", roles: correctors, handle: c.editPage},
		{pattern: "POST /actions/{id}/edit/review", roles: correctors[1:], handle: c.reviewEdit},
		{pattern: "POST /actions/{id}/edit", roles: proposers, handle: c.revise},
		{pattern: "GET /actions/{id}/stepup/oidc/{provider}", handle: c.stepUpOIDC},
		{pattern: "POST /actions/{id}/stepup/passkey/begin", handle: c.stepUpPasskeyBegin},
		{pattern: "POST /actions/{id}/stepup/passkey/finish", handle: c.stepUpPasskeyFinish},
	}
}

// actionPage holds everything that the page of one action shows.
type actionPage struct {
	a        *gatehouse.Action
	sentence card.Phrase
	step     card.Requirement
	// target is the known state of the target before the change; payload is the change applied to
	// that state.
	target  target
	payload payload
	// preview is the target's preview of the change.
	preview preview
	// cannot is the reason why this person may not decide; nil when they may.
	cannot error
	// sealed hides the notes of earlier votes until this person has voted with a reason.
	sealed bool
	// stepUp is this person's valid step-up proof for the shown digest, nil without one.
	stepUp  *gatehouse.StepUp
	options gatehouse.SignInOptions
	// viewers are the other people who have the page open.
	viewers []string
	history []moment
	// undo is the time until which this person can withdraw the approval, zero when they cannot.
	undo                time.Time
	canReverse, canEdit bool
	// readsReversal is set when the page loads the state that a reversal would change;
	// reversed is that state, nil for not known.
	readsReversal bool
	reversed      *gatehouse.TargetState
	// openReversal is the id of the action that reverses this one once it is decided and applied, "" for none.
	openReversal string
	// canRebase reports that the gate can propose the action again on the target's present state,
	// and that this person may ask for it. once is the idempotency key of the rebase form: a second
	// press finds the revision that the first one made.
	canRebase bool
	once      string
	// offered is set when the notice about the last answer already offers the rebase.
	offered   bool
	iteration iteration
	// standsFor are the names of the people for whom this person may answer.
	standsFor []string
	// moved lists what changed at the target since the original of this rebase was proposed.
	moved moved
	// grounds are the rules and facts behind the policy's result, nil when they are not known.
	grounds *gatehouse.Grounds
	// ofRun is the run's step that proposed the action, nil for none.
	ofRun *gatehouse.Step
	// produced is what the steps before a question have produced.
	produced []produced

	// outcome is the error that refused the posted form, nil for none. refused names that form: by its decision,
	// or else by the last part of its path. field returns a value that was typed into that form.
	outcome *gatehouse.Error
	refused string
	field   func(name string) string
	// reasons are the reasons for a rejection that the policy offers.
	reasons []string
	// record counts the outcomes of earlier, similar actions; nil when the page loads it later.
	record *record
	// place is the action's position in the list, such as "12 of 38"; "" when it is not known.
	place string
	// back is the URL of the list from which the action was opened, "" for none; next is the same
	// list as a query.
	back string
	next inboxQuery
}

// typed returns the text that was typed into a field of a form, if that form was refused; else "".
func (p *actionPage) typed(form, field string) string {
	if p.refused != form {
		return ""
	}
	return p.field(field)
}

// openAction collects what the page of an action shows. With read, it asks the target for its
// present state. If the action is pending, it also records that this person is looking at it.
func (c *Console) openAction(v *view, id string, read bool) (*actionPage, error) {
	a, err := c.cfg.Actions.FindAction(v.ctx, id)
	if err != nil {
		return nil, err
	}
	full := v.query("full") != "" || v.shownInFull(a)
	mayReplace := gate.MayReplace(v.person, a, "replace") == nil
	p := &actionPage{
		a: a, step: card.Ladder(a), target: c.targetOf(v, a),
		cannot: v.mayDecide(a), viewers: c.presence.others(a.Tenant, a.ID, v.person.Name, v.now),
		history: historyOf(a), undo: undoUntil(v, a),
		canReverse: a.Status == gatehouse.StatusApplied && a.ArchivedAt == nil && a.Receipt != nil && a.Receipt.Reversible &&
			gate.MayReverse(v.person, a) == nil,
		canEdit:   !gate.OwnQuestion(a) && (awaits(a) && v.has(gatehouse.RoleProposer) && mayReplace || v.mayEdit(a)),
		canRebase: a.CanRebase && v.has(gatehouse.RoleProposer, gatehouse.RoleApprover) && mayReplace, once: v.requestID,
	}
	p.preview.canAsk = c.canPreview(v, a)
	if p.canReverse {
		if p.openReversal, err = c.cfg.Targets.OpenReversal(v.ctx, a.ID); err != nil {
			return nil, err
		}
	}
	p.readsReversal = p.canReverse && p.openReversal == "" && c.cfg.Targets.CanReadTarget(a)
	if read {
		p.target = c.readTarget(v, a)
	}
	p.sentence, p.payload = p.target.Describe(), newPayload(p.target.Shown, full)
	if a.Status == gatehouse.StatusPending {
		c.presence.recordViewer(a.Tenant, a.ID, v.person.Name, v.now)
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
	if p.produced, err = c.producedBefore(v, p.ofRun); err != nil {
		return nil, err
	}
	return p, nil
}

// stepUpOptions returns the ways in which this person can prove their identity. A passkey is
// offered only to a person who has registered one.
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
	if v.query("read") != "" {
		c.askPreview(v, p)
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

// actionLive tells an open page whether the action has changed since the page was made.
func (c *Console) actionLive(v *view) error {
	a, err := c.cfg.Actions.FindAction(v.ctx, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	if a.Status == gatehouse.StatusPending {
		c.presence.recordViewer(a.Tenant, a.ID, v.person.Name, v.now)
	}
	return v.write(http.StatusOK, liveMark(v, a, v.query("seen"), c.presence.others(a.Tenant, a.ID, v.person.Name, v.now)))
}

// actionFingerprint returns a fingerprint of the action's state; a page made with another fingerprint is stale.
func actionFingerprint(a *gatehouse.Action) string {
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
	// notes are the person's own words.
	notes string
	// after is the time between the previous line and this one.
	after  string
	person string
}

// historyOf lists the events of an action in order.
func historyOf(a *gatehouse.Action) []moment {
	list := []moment{{at: a.ProposedAt, what: "proposed", who: a.ProposedBy}}
	if a.RebasedBy != "" {
		list[0].what, list[0].who = "rebased on the present state of its target", a.RebasedBy
	}
	if a.UndoneBy != "" {
		list[0].what, list[0].who = "asked again, after the decision was undone", a.UndoneBy
	}
	if a.EditedBy != "" && a.RebasedBy == "" && a.UndoneBy == "" {
		list[0].what, list[0].who = "edited", a.EditedBy
	}
	add := func(at *time.Time, what, who, via string) {
		if at != nil {
			list = append(list, moment{at: *at, what: what, who: who, via: via})
		}
	}
	if a.Approval != nil {
		for _, vote := range a.Approval.Votes {
			what := "vote to approve"
			if vote.Decision == gatehouse.Reject {
				what = "vote to reject"
			}
			list = append(list,
				moment{at: vote.At, what: what, who: voterOf(vote), via: string(vote.Via), notes: vote.Notes,
					person: vote.Person})
		}
	}
	if a.Status != gatehouse.StatusPending {
		add(a.DecidedAt, decidedWord(a), cmp.Or(a.DecidedBy, a.CanceledBy), string(a.DecidedVia))
	}
	if a.Push != nil {
		add(a.DecidedAt, queuedWord(a), "the gate", "")
		add(a.Push.PickedAt, "picked up to be sent", "the dispatcher", "")
		add(a.Push.SentAt, "sent to "+a.Connector, "the dispatcher", "")
		add(a.Push.AppliedAt, "applied", a.Connector, "")
	}
	if a.Push == nil || a.Push.AppliedAt == nil {
		if a.FinishedAt != nil && (a.DecidedAt == nil || !a.FinishedAt.Equal(*a.DecidedAt)) {
			add(a.FinishedAt, string(a.Status), a.CanceledBy, "")
		}
	}
	list = append(list, talkMoments(a)...)
	slices.SortStableFunc(list, func(m, n moment) int { return m.at.Compare(n.at) })
	for i := 1; i < len(list); i++ {
		if d := list[i].at.Sub(list[i-1].at); d > 0 {
			list[i].after = span(d)
		}
	}
	return list
}

// voterOf names the voter, with the person for whom a delegate voted, or the grant by which the voter has
// voted in advance.
func voterOf(v gatehouse.Vote) string {
	if v.ForName != "" {
		return v.Name + ", for " + v.ForName
	}
	if v.Grant != "" {
		return v.Name + ", by " + v.Grant
	}
	return v.Name
}

// decidedWord names the decision that led to the action's present state.
func decidedWord(a *gatehouse.Action) string {
	if heldRejection(a) {
		return "rejected"
	}
	if a.Push == nil && a.Status != gatehouse.StatusApproved {
		return string(a.Status)
	}
	if a.DecidedVia == gatehouse.ViaPolicy {
		return "allowed by policy"
	}
	if a.DecidedVia.InAdvance() {
		return "approved in advance"
	}
	return "approved"
}

// queuedWord says that an approved action is queued, and how long it is held first.
func queuedWord(a *gatehouse.Action) string {
	if a.HoldFor > 0 {
		return "queued, held for " + span(a.HoldFor.D())
	}
	return "queued"
}

// actionPath is the URL of an action's page.
func actionPath(id string) string { return "/actions/" + url.PathEscape(id) }
