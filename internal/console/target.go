package console

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

// TargetReader reads the targets of pending actions and of the reversals of applied ones, and asks
// targets for previews of pending actions.
type TargetReader interface {
	// CanReadTarget decides without a call to the target.
	CanReadTarget(a *gatehouse.Action) bool
	ReadTarget(ctx context.Context, id string) (*gatehouse.TargetState, error)
	// CanPreview decides without a call to the target.
	CanPreview(a *gatehouse.Action) bool
	Preview(ctx context.Context, id string) (*gatehouse.Preview, error)
	// OpenReversal returns the id of an applied action's open reversal, "" for none.
	OpenReversal(ctx context.Context, id string) (string, error)
}

// The limits for reading targets on behalf of open pages.
const (
	// readAgain is how long one reading of an action's target serves all pages.
	readAgain = 3 * time.Second
	// maxReads is the number of concurrent readings.
	maxReads = 16
	// readPatience is how long a page waits for a reading, including its time in the queue.
	readPatience = 5 * time.Second
)

// target is the known state of an action's target before the change.
type target struct {
	card.Before
	// asked is set when the target was asked. at is the time of the reading. why is the reason why the
	// target did not answer.
	asked bool
	at    time.Time
	why   string
	gone  bool
	// canAsk is set when this person may request a reading of the target.
	canAsk bool
}

// readings caches the readings of the last few seconds.
type readings = gate.ReadCache[*gatehouse.TargetState]

func newReadings() *readings {
	return &readings{MaxAge: readAgain, Timeout: readPatience, Slots: maxReads}
}

// targetOf is the known state of a target that was not asked.
func (c *Console) targetOf(v *view, a *gatehouse.Action) target {
	return target{
		Before: card.ClaimedBefore(a),
		canAsk: a.Status == gatehouse.StatusPending && c.cfg.Targets.CanReadTarget(a) &&
			v.has(gatehouse.RoleProposer, gatehouse.RoleApprover, gatehouse.RoleOperator),
	}
}

// readTarget asks the target for its state, if this person may request that. If the target does not
// answer, the page shows the reason.
func (c *Console) readTarget(v *view, a *gatehouse.Action) target {
	t := c.targetOf(v, a)
	if !t.canAsk {
		return t
	}
	t.asked = true
	state, at, err := c.readNow(v, a)
	switch {
	case err != nil:
		t.why = asError(err).Detail
	default:
		t.at, t.gone, t.Before = at, state.Gone, card.ReadBefore(a, state)
	}
	return t
}

func (c *Console) readNow(v *view, a *gatehouse.Action) (*gatehouse.TargetState, time.Time, error) {
	key := a.Tenant + "/" + a.ID + "/" + string(a.Status)
	return c.targetReads.Get(v.ctx, "", key, c.cfg.Now, func(ctx context.Context) (*gatehouse.TargetState, error) {
		return c.cfg.Targets.ReadTarget(ctx, a.ID)
	})
}

// actionReversal serves the part of an applied action's page that offers its reversal. It asks the
// target; if the target does not answer, the reversal is still offered.
func (c *Console) actionReversal(v *view) error {
	p, err := c.openAction(v, v.r.PathValue("id"), false)
	if err != nil {
		return err
	}
	if p.readsReversal {
		if state, _, err := c.readNow(v, p.a); err == nil {
			p.reversed = state
		}
	}
	p.readsReversal = false
	return v.write(http.StatusOK, reversePart(p))
}

// actionTarget serves the part of an action's page for which the target is asked.
func (c *Console) actionTarget(v *view) error {
	p, err := c.openAction(v, v.r.PathValue("id"), true)
	if err != nil {
		return err
	}
	if to := localPath(v.query("return")); isInbox(to) {
		p.back, p.next = to, queryOf(to)
	}
	p.offered = v.query("offered") != ""
	return v.write(http.StatusOK, actionFacts(v, p))
}

// targetPath is the URL of actionTarget. It keeps the page's choice between the full and the shortened payload.
func targetPath(p *actionPage) string {
	q := url.Values{}
	if p.back != "" {
		q.Set("return", p.back)
	}
	if p.payload.full {
		q.Set("full", "1")
	}
	if p.offered {
		q.Set("offered", "1")
	}
	return actionPath(p.a.ID) + "/target?" + q.Encode()
}

// readPath is the URL of the whole page with the target asked, for browsers without scripts.
func readPath(p *actionPage) string {
	if p.back == "" {
		return actionPath(p.a.ID) + "?read=1"
	}
	q := p.next.with(p.a.ID).values()
	q.Set("read", "1")
	return "/inbox?" + q.Encode()
}

// targetName names the connector whose target is asked.
func targetName(a *gatehouse.Action) string {
	name, _ := a.AskedTarget()
	return name
}

// versionOf is the version of the asked target on which the action was proposed, "" for none.
func versionOf(a *gatehouse.Action) string {
	_, t := a.AskedTarget()
	return t.Version
}

// aboutOf is the entity that an approval step asks about, nil for none.
func aboutOf(a *gatehouse.Action) *gatehouse.About {
	if a.Approval == nil {
		return nil
	}
	return a.Approval.About
}

// claimant names who states the values before the change: the agent, or the workflow of an approval step.
func claimant(a *gatehouse.Action) string {
	if aboutOf(a) != nil {
		return "the workflow"
	}
	return "the agent"
}

// claimantFirst is claimant at the beginning of a sentence.
func claimantFirst(a *gatehouse.Action) string { return "T" + claimant(a)[1:] }

// markOf is the reported change of a pending action's target, nil for none.
func markOf(a *gatehouse.Action) *gatehouse.TargetMark {
	if a.Status != gatehouse.StatusPending || a.Approval == nil {
		return nil
	}
	return a.Approval.TargetChanged
}
