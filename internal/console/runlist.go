package console

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// runQuery is the complete state of the run list; all of it is in the URL.
type runQuery struct {
	Status   gatehouse.RunStatus
	Workflow string
	// Input is a filter such as customer=ACME.
	Input  string
	Time   timeSpan // when the run was created
	Cursor string
}

func readRunQuery(values url.Values) (q runQuery, err error) {
	q.Cursor = values.Get("cursor")
	if q.Time, err = readTimeSpan(values); err != nil {
		return q, err
	}
	if name := strings.TrimSpace(values.Get("workflow")); workflow.ValidName(name) {
		q.Workflow = name
	}
	if q.Input = strings.TrimSpace(values.Get("input")); q.Input != "" {
		if _, _, ok := gatehouse.ReadInputFilter(q.Input); !ok {
			return q, gatehouse.E(gatehouse.CodeInvalid, "a filter by input is a name and a value, such as customer=ACME")
		}
	}
	for _, s := range runStatuses() {
		if values.Get("status") == string(s) {
			q.Status = s
		}
	}
	return q, nil
}

func (q runQuery) values() url.Values {
	v := url.Values{}
	for name, value := range map[string]string{"status": string(q.Status), "workflow": q.Workflow, "input": q.Input,
		"cursor": q.Cursor} {
		if value != "" {
			v.Set(name, value)
		}
	}
	q.Time.set(v)
	return v
}

func (q runQuery) at(path string) string {
	if s := q.values().Encode(); s != "" {
		return path + "?" + s
	}
	return path
}

func (q runQuery) url() string { return q.at("/runs") }

func (q runQuery) page(cursor string) runQuery {
	q.Cursor = cursor
	return q
}

func (q runQuery) filtered() bool {
	return q.Status != "" || q.Workflow != "" || q.Input != "" || !q.Time.empty()
}

func (q runQuery) filter() gatehouse.RunFilter {
	f := gatehouse.RunFilter{
		Status: q.Status, Workflow: q.Workflow, Since: q.Time.From, Until: q.Time.To, Cursor: q.Cursor,
		Limit: listedRuns,
	}
	f.InputField, f.InputValue, _ = gatehouse.ReadInputFilter(q.Input)
	return f
}

// listedRuns is the number of runs on a page.
const listedRuns = 30

// runRow is a run and what it waits for, "" for nothing.
type runRow struct {
	r     *gatehouse.Run
	waits string
}

type runListPage struct {
	q    runQuery
	rows []runRow
	next string
	// seen encodes the runs on the page, for the pill to compare with.
	seen  string
	fresh runFresh
	// hasWorkflows is false while the tenant has no workflow.
	hasWorkflows bool
	// short is set when the search by input has stopped before the page was full.
	short bool
	// known are the values that the filters suggest.
	known known
}

func (c *Console) runList(v *view) error {
	p := &runListPage{hasWorkflows: true, known: make(known)}
	var err error
	if p.q, err = readRunQuery(v.r.URL.Query()); err != nil {
		return err
	}
	page, err := c.cfg.Runs.ListRuns(v.ctx, p.q.filter())
	if err != nil {
		return err
	}
	for _, r := range page.Items {
		row := runRow{r: r}
		if row.waits, err = c.runWaits(v, r); err != nil {
			return err
		}
		p.rows = append(p.rows, row)
		p.known.run(r)
	}
	if page.NextCursor != "" {
		p.next = p.q.page(page.NextCursor).url()
		p.short = len(page.Items) < listedRuns
	}
	p.seen = seenRuns(page.Items)
	flows, err := c.cfg.Runs.ListWorkflows(v.ctx, "", maxKnown)
	if err != nil {
		return err
	}
	for _, w := range flows.Items {
		p.known.add("workflow", w.Name)
	}
	p.hasWorkflows = len(flows.Items) > 0
	return v.render(http.StatusOK, "Runs", "/runs", runListView(v, p))
}

// runWaits says what a run waits for. It reads the steps, because lists come without them.
func (c *Console) runWaits(v *view, r *gatehouse.Run) (string, error) {
	switch r.Status {
	case gatehouse.RunWaitingApproval, gatehouse.RunWaiting, gatehouse.RunRetrying:
	default:
		return "", nil
	}
	full, err := c.cfg.Runs.FindRun(v.ctx, r.ID)
	if err != nil {
		return "", err
	}
	var list []string
	more := 0
	for _, s := range full.Steps {
		// A for_each can have a thousand waiting items; two of them are enough.
		if len(list) == 2 {
			if text := waitsFor(s, nil); text != "" && text != itsItems {
				more++
			}
			continue
		}
		var actions []*gatehouse.Action
		if s.Status == gatehouse.StepWaitingApproval && s.ActionID != "" {
			a, err := c.cfg.Actions.FindAction(v.ctx, s.ActionID)
			if err != nil {
				return "", err
			}
			actions = append(actions, a)
		}
		if text := waitsFor(s, actions); text != "" && text != itsItems {
			list = append(list, s.Key+" waits for "+text)
		}
	}
	if more > 0 {
		return strings.Join(list, "; ") + fmt.Sprintf("; and %d more", more), nil
	}
	return strings.Join(list, "; "), nil
}

// runFresh counts how far an open list is out of date.
type runFresh struct{ fresh, changed int }

func (f runFresh) words() string {
	switch {
	case f.fresh > 0 && f.changed > 0:
		return fmt.Sprintf("%d new, %d changed", f.fresh, f.changed)
	case f.fresh > 0:
		return fmt.Sprintf("%d new", f.fresh)
	case f.changed > 0:
		return fmt.Sprintf("%d changed", f.changed)
	}
	return ""
}

// seenRuns encodes a list compactly: the end of each id, and a letter for its state.
func seenRuns(runs []*gatehouse.Run) string {
	var b strings.Builder
	for _, r := range runs {
		b.WriteString(seenRun(r))
	}
	return b.String()
}

// seenLength is the length of one run's code.
const seenLength = 7

func seenRun(r *gatehouse.Run) string {
	id := "000000" + r.ID
	letter := "z"
	for i, s := range runStatuses() {
		if s == r.Status {
			letter = string(rune('a' + i))
		}
	}
	if r.Stop != "" {
		letter = strings.ToUpper(letter)
	}
	return id[len(id)-seenLength+1:] + letter
}

// newRuns tells an open list how far it is out of date. It never moves the rows being read.
func (c *Console) newRuns(v *view) error {
	q, err := readRunQuery(v.r.URL.Query())
	if err != nil {
		return err
	}
	page, err := c.cfg.Runs.ListRuns(v.ctx, q.filter())
	if err != nil {
		return err
	}
	seen := v.query("seen")
	before := make(map[string]string)
	for i := 0; i+seenLength <= len(seen) && i < listedRuns*seenLength; i += seenLength {
		before[seen[i:i+seenLength-1]] = seen[i : i+seenLength]
	}
	var f runFresh
	still, waiting := 0, 0
	for _, r := range page.Items {
		now := seenRun(r)
		was, ok := before[now[:seenLength-1]]
		if !ok {
			waiting++
			continue
		}
		// Unseen runs before a seen one are new. Unseen runs after the last seen one are not: they
		// have moved up from the next page.
		f.fresh, waiting = f.fresh+waiting, 0
		still++
		if was != now {
			f.changed++
		}
	}
	if still == 0 {
		f.fresh = waiting
	}
	// A run that is missing now was pushed to the next page, or no longer matches the filter.
	gone := len(before) - still
	if len(page.Items) == listedRuns {
		gone -= min(gone, f.fresh)
	}
	f.changed += gone
	return v.write(http.StatusOK, runPill(q, seen, f))
}

// seenAs are the pill's URL parameters.
func (q runQuery) seenAs(seen string) url.Values {
	v := q.values()
	v.Set("seen", seen)
	return v
}
