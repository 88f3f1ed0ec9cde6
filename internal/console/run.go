package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/runline"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// RunKeeper is the service behind the pages of runs and workflows.
type RunKeeper interface {
	gatehouse.RunService
	// StepOfAction returns the step that proposed an action, or an error with code not_found.
	StepOfAction(ctx context.Context, actionID string) (*gatehouse.Step, error)
}

func (c *Console) runRoutes() []route {
	operators := []gatehouse.Role{gatehouse.RoleOperator}
	starters := []gatehouse.Role{gatehouse.RoleOperator, gatehouse.RoleProposer}
	return []route{
		{pattern: "GET /runs", handle: c.runList},
		{pattern: "GET /runs/new", background: true, handle: c.newRuns},
		{pattern: "GET /runs/queues", handle: c.runQueues},
		{pattern: "GET /runs/bulk", roles: operators, handle: c.bulkRunsPage},
		{pattern: "POST /runs/bulk", roles: operators, handle: c.doBulkRuns},
		{pattern: "GET /runs/{id}", handle: c.run},
		{pattern: "GET /runs/{id}/live", background: true, handle: c.runLive},
		{pattern: "GET /runs/{id}/evidence", handle: c.runEvidence},
		{pattern: "POST /runs/{id}/cancel", roles: starters, handle: c.cancelRun},
		{pattern: "POST /runs/{id}/retry", roles: starters, handle: c.retryRun},
	}
}

func runPath(id string) string { return "/runs/" + url.PathEscape(id) }

// runPage holds everything that a run's page shows.
type runPage struct {
	d     *gatehouse.RunDetail
	state string
	time  *timeline
	// waits are the steps that wait for something or somebody.
	waits []runWait
	graph []drawnNode
	// chosen is the id of the step that is shown at first.
	chosen string
	costs  []*runline.ModelCost
	// reflexion is the lesson of the run, nil if there is none yet; see [gatehouse.Reflexion].
	reflexion *gatehouse.Reflexion
	raw       *rawBudget
	// failed is the error shown at the head of the page, reason the text typed with the refused
	// request.
	failed *gatehouse.Error
	reason string
}

func (c *Console) openRun(v *view, id string) (*runPage, error) {
	d, err := c.cfg.Runs.RunDetail(v.ctx, id)
	if err != nil {
		return nil, err
	}
	return c.runPageOf(v, d)
}

func (c *Console) runPageOf(v *view, d *gatehouse.RunDetail) (*runPage, error) {
	p := &runPage{d: d, state: runFingerprint(d), time: newTimeline(d, v.now), costs: runline.CostsOf(d.Usage),
		raw: &rawBudget{left: maxRaw}}
	p.waits = waitsOf(d)
	def, err := c.definition(v, d.Workflow, d.Version)
	if err != nil {
		return nil, err
	}
	if p.graph, err = readDrawing(def.SVG(d.Run)); err != nil {
		return nil, err
	}
	linkSteps(p.graph, stepLinks(firstSteps(d.Steps)))
	p.chosen = chosenStep(firstSteps(d.Steps))
	if p.reflexion, err = c.reflexionOf(v, d.Run); err != nil {
		return nil, err
	}
	return p, nil
}

// definition parses a version with the server's workflow parser.
func (c *Console) definition(v *view, name string, version int) (*workflow.Definition, error) {
	w, err := c.cfg.Runs.FindWorkflow(v.ctx, name, version)
	if err != nil {
		return nil, err
	}
	return workflow.Parse([]byte(w.Source))
}

// reflexionPages limits the search for an old run's reflexion, in pages of the list.
const reflexionPages = 10

// reflexionOf finds a run's reflexion. The list is newest first, and a reflexion is not older than
// its run's end.
func (c *Console) reflexionOf(v *view, r *gatehouse.Run) (*gatehouse.Reflexion, error) {
	if r.FinishedAt == nil {
		return nil, nil
	}
	cursor := ""
	for range reflexionPages {
		page, err := c.cfg.Runs.ListReflexions(v.ctx, r.Workflow, cursor, gatehouse.MaxLimit)
		if err != nil {
			return nil, err
		}
		for _, x := range page.Items {
			if x.RunID == r.ID {
				return x, nil
			}
			if x.At.Before(r.FinishedAt.Add(-time.Minute)) {
				return nil, nil
			}
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	return nil, nil
}

// runFingerprint is a fingerprint of the run's state; a page made with another fingerprint is stale.
func runFingerprint(d *gatehouse.RunDetail) string {
	sum := sha256.New()
	enc := json.NewEncoder(sum)
	if err := enc.Encode(d); err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}

func (c *Console) run(v *view) error {
	p, err := c.openRun(v, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	return v.showRun(http.StatusOK, p)
}

func (v *view) showRun(status int, p *runPage) error {
	// Two changes write no log entry: a worker begins a step, and the evidence is stored after the end of
	// the run. Until the evidence is stored, the page therefore also reloads at each heartbeat.
	v.unlogged = p.d.Evidence == ""
	return v.render(status, p.d.Workflow+" · "+runWord(p.d.Run), "/runs", runView(v, p))
}

// runLive sends the run's present state, or nothing if the page shows it already.
func (c *Console) runLive(v *view) error {
	d, err := c.cfg.Runs.RunDetail(v.ctx, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	if v.query("seen") == runFingerprint(d) {
		v.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	p, err := c.runPageOf(v, d)
	if err != nil {
		return err
	}
	// The step that somebody reads stays open, although another step matters more now.
	if s := d.StepByID(v.query("step")); s != nil {
		p.chosen = s.ID
	}
	return v.write(http.StatusOK, runBody(v, p))
}

func runLivePath(p *runPage) string {
	return runPath(p.d.ID) + "/live?" + url.Values{"seen": {p.state}, "step": {p.chosen}}.Encode()
}

// runEvidence sends the evidence archive of a run that has ended.
func (c *Console) runEvidence(v *view) error {
	b, err := c.cfg.Runs.RunBundle(v.ctx, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", "application/zip")
	h.Set("X-Evidence-SHA256", b.SHA256)
	// The id consists of letters, digits and underscores.
	h.Set("Content-Disposition", `attachment; filename="evidence-`+b.RunID+`.zip"`)
	_, _ = v.w.Write(b.Archive)
	return nil
}

func (c *Console) cancelRun(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	id := v.r.PathValue("id")
	if _, err := c.cfg.Runs.CancelRun(v.ctx, id, strings.TrimSpace(v.form("reason"))); err != nil {
		return c.runRefused(v, id, err)
	}
	return v.redirect(runPath(id))
}

func (c *Console) retryRun(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	id := v.r.PathValue("id")
	var again *gatehouse.Run
	var err error
	if from := v.form("from"); from != "" {
		again, err = c.cfg.Runs.RetryRunFrom(v.ctx, id, from)
	} else {
		again, err = c.cfg.Runs.RetryRun(v.ctx, id)
	}
	if err != nil {
		return c.runRefused(v, id, err)
	}
	return v.redirect(runPath(again.ID))
}

// runRefused shows the run's present state with the error.
func (c *Console) runRefused(v *view, id string, err error) error {
	e := refusalOf(err)
	if e == nil {
		return err
	}
	p, failure := c.openRun(v, id)
	if failure != nil {
		return failure
	}
	p.failed, p.reason = e, v.form("reason")
	return v.showRun(gatehouse.StatusOf(e.Code), p)
}

// canCancel reports whether the person may cancel the run.
func canCancel(v *view, r *gatehouse.Run) bool {
	return !r.Status.Final() && r.Stop == "" && v.person.MaySteer(r)
}

func canRetry(v *view, r *gatehouse.Run) bool {
	return (r.Status == gatehouse.RunFailed || r.Status == gatehouse.RunCanceled) && v.person.MaySteer(r)
}

// canRetryFrom reports whether the person may have a run begin again from one of its steps.
func canRetryFrom(v *view, r *gatehouse.Run) bool {
	return r.Status.Final() && v.person.MaySteer(r) && len(stepIDs(r)) > 0
}

// stepIDs lists the ids that a run's steps have in the workflow, without the items of a for_each; nil if a step was
// repeated.
func stepIDs(r *gatehouse.Run) (ids []string) {
	for _, s := range r.Steps {
		id, n := s.Iteration()
		if n > 1 {
			return nil
		}
		if s.Parent == "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// stepOf finds the step that proposed an action, nil for none.
func (c *Console) stepOf(v *view, action string) (*gatehouse.Step, error) {
	s, err := c.cfg.Runs.StepOfAction(v.ctx, action)
	if gatehouse.CodeOf(err) == gatehouse.CodeNotFound {
		return nil, nil
	}
	return s, err
}
