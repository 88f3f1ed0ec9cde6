package console

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

func (c *Console) workflowRoutes() []route {
	return []route{
		{pattern: "GET /workflows", handle: c.workflowList},
		{pattern: "GET /workflows/{name}", handle: c.workflow},
		{pattern: "POST /workflows/{name}/start", roles: []gatehouse.Role{gatehouse.RoleProposer}, handle: c.startRun},
	}
}

type workflowListPage struct {
	rows        []*gatehouse.WorkflowSummary
	first, next string
}

func (c *Console) workflowList(v *view) error {
	p := &workflowListPage{}
	page, err := c.cfg.Runs.ListWorkflows(v.ctx, v.query("cursor"), gatehouse.DefaultLimit)
	if err != nil {
		return err
	}
	p.rows = page.Items
	if page.NextCursor != "" {
		p.next = "/workflows?" + url.Values{"cursor": {page.NextCursor}}.Encode()
	}
	if v.query("cursor") != "" {
		p.first = "/workflows"
	}
	return v.render(http.StatusOK, "Workflows", "/workflows", workflowListView(v, p))
}

// workflowPage is one version of a workflow, with counts of the recent runs of all its versions.
type workflowPage struct {
	w        *gatehouse.Workflow
	newest   int
	versions []*gatehouse.Workflow
	summary  *gatehouse.WorkflowSummary
	counted  timeSpan // the days of the summary
	def      *workflow.Definition
	graph    []drawnNode
	// next is the time of the next scheduled run, zero for none.
	next    time.Time
	lessons []*gatehouse.Reflexion

	// once is the form's idempotency key; input is the typed input, failed the error of a refused start.
	once, input string
	failed      *gatehouse.Error
}

func (c *Console) workflow(v *view) error {
	p, err := c.openWorkflow(v, v.r.PathValue("name"))
	if err != nil {
		return err
	}
	return v.showWorkflow(http.StatusOK, p)
}

func (v *view) showWorkflow(status int, p *workflowPage) error {
	return v.render(status, p.w.Name, "/workflows", workflowView(v, p))
}

func (c *Console) openWorkflow(v *view, name string) (*workflowPage, error) {
	version := 0
	if s := v.query("version"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return nil, gatehouse.E(gatehouse.CodeNotFound, "there is no such version")
		}
		version = n
	}
	p := &workflowPage{once: v.requestID, counted: timeSpan{since: v.now.AddDate(0, 0, -30).UTC().Format(formTime)}}
	var err error
	if p.w, err = c.cfg.Runs.FindWorkflow(v.ctx, name, version); err != nil {
		return nil, err
	}
	if p.versions, err = c.cfg.Runs.ListWorkflowVersions(v.ctx, name); err != nil {
		return nil, err
	}
	p.newest = p.versions[0].Version
	if p.summary, err = c.cfg.Runs.WorkflowSummary(v.ctx, name); err != nil {
		return nil, err
	}
	if p.def, err = workflow.Parse([]byte(p.w.Source)); err != nil {
		return nil, err
	}
	if p.graph, err = readDrawing(p.def.SVG(nil)); err != nil {
		return nil, err
	}
	if cron := p.def.On.Schedule; cron != nil && p.w.Version == p.newest {
		p.next = cron.Next(v.now)
	}
	lessons, err := c.cfg.Runs.ListReflexions(v.ctx, name, "", shownLessons)
	if err != nil {
		return nil, err
	}
	p.lessons = lessons.Items
	return p, nil
}

// shownLessons is the number of newest reflexions on a workflow's page.
const shownLessons = 5

// startRun starts a run of the newest version with the typed input.
func (c *Console) startRun(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	name := v.r.PathValue("name")
	input, err := readInput(v.form("input"))
	if err != nil {
		return c.startRefused(v, name, err)
	}
	run, _, err := c.cfg.Runs.StartRun(v.once("run of "+name, v.form("once"), v.form("input")), name,
		gatehouse.NewRun{Input: input})
	if id, ok := replayedID(err); ok {
		return v.redirect(runPath(id))
	}
	if err != nil {
		return c.startRefused(v, name, err)
	}
	return v.redirect(runPath(run.ID))
}

// readInput parses typed JSON; an empty text means no input. A syntax error is returned as an error
// of the form's field.
func readInput(text string) (gatehouse.JSON, error) {
	if strings.TrimSpace(text) == "" {
		return "", nil
	}
	j, err := gatehouse.Canonicalize([]byte(text))
	var syntax *gatehouse.SyntaxError
	switch {
	case errors.As(err, &syntax):
		var list gatehouse.Violations
		list.Add("/input"+syntax.Pointer, "%s", syntaxText(text, syntax))
		return "", list.Err()
	case err != nil:
		return "", err
	}
	return j, nil
}

// syntaxText describes the error in a JSON text, with its line.
func syntaxText(text string, e *gatehouse.SyntaxError) string {
	line := 1 + strings.Count(text[:max(0, min(int(e.Offset), len(text)))], "\n")
	return fmt.Sprintf("line %d is not valid JSON: %s", line, e.Detail)
}

// startRefused shows the form again with the typed input.
func (c *Console) startRefused(v *view, name string, err error) error {
	e := refusalOf(err)
	if e == nil {
		return err
	}
	p, found := c.openWorkflow(v, name)
	if found != nil {
		return found
	}
	p.failed, p.input = e, v.form("input")
	return v.showWorkflow(gatehouse.StatusOf(e.Code), p)
}

// failureRate is a failure rate in percent; "" when no run has ended.
func failureRate(w *gatehouse.WorkflowSummary) string {
	rate, ok := w.FailureRate()
	if !ok {
		return ""
	}
	return strconv.FormatFloat(100*rate, 'f', 1, 64) + " %"
}

// runsOf counts all runs of a summary.
func runsOf(w *gatehouse.WorkflowSummary) (n int) {
	for _, k := range w.Runs {
		n += k
	}
	return n
}

// hookPath is the URL for the workflow's webhook.
func (v *view) hookPath(name string) string {
	path := "/api/v1/hooks/" + url.PathEscape(name)
	if v.person.Tenant != gatehouse.DefaultTenant {
		path += "?" + url.Values{"tenant": {v.person.Tenant}}.Encode()
	}
	return path
}

// limitWords describes a workflow's own limits.
func limitWords(l workflow.Limits) string {
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	add(l.MaxConcurrency, "steps at a time")
	add(l.MaxRunsPerMin, "runs a minute")
	add(l.MaxWritesPerRun, "writes a run")
	if l.Deadline > 0 {
		parts = append(parts, "a run ends within "+span(l.Deadline.D()))
	}
	if b := l.Budget; b != nil {
		parts = append(parts, fmt.Sprintf("models cost at most %s %s in %s", b.Amount, b.Currency, span(b.Window.D())))
	}
	return strings.Join(parts, "; ")
}

// runsPath is the list of the counted runs, in one state or in all.
func (p *workflowPage) runsPath(status gatehouse.RunStatus) string {
	return runQuery{Workflow: p.w.Name, Status: status, Time: p.counted}.url()
}

// startText is the text in the form: the typed input, or at first an empty object.
func startText(p *workflowPage) string {
	if p.failed != nil {
		return p.input
	}
	return "{}"
}

// shortDigest is the part of a digest by which people tell digests apart.
func shortDigest(d gatehouse.Digest) string { return string(d[:min(len(d), len("sha256:")+12)]) }
