package cli

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// runCmd groups the commands about runs.
type runCmd struct {
	Start  runStartCmd  `cmd:"" help:"Start a run of a workflow's newest version."`
	List   runListCmd   `cmd:"" help:"List runs, the newest first."`
	Show   runShowCmd   `cmd:"" help:"Show a run: its steps, its timeline, and what it proposed."`
	Queues runQueuesCmd `cmd:"" help:"Print what waits for workers, the active workers, and the schedules."`
	Watch  runWatchCmd  `cmd:"" help:"Follow a run until it ends."`
	Cancel runCancelCmd `cmd:"" help:"Cancel a run."`
	Retry  runRetryCmd  `cmd:"" help:"Retry a failed or canceled run; steps that succeeded are kept."`
	Signal runSignalCmd `cmd:"" help:"Send an event to a run."`

	Reflexion runReflexionCmd `cmd:"" help:"Show what a finished run teaches."`
}

// runStartCmd starts a run.
type runStartCmd struct {
	Workflow string         `arg:"" help:"The workflow's name."`
	Input    string         `placeholder:"JSON" help:"The run's input: JSON; @FILE reads it from a file, - from stdin."`
	Ref      string         `placeholder:"REF" help:"Identifies what started it: the same reference again returns the same run."`
	Wait     gatehouse.Span `placeholder:"DURATION" help:"Maximum time to wait for the run's end; the exit code follows its status."`
}

func (*runStartCmd) Help() string {
	return `
Prints the run. With --wait it exits as "gatehouse run watch" does.

Piped, the columns are: id, status, workflow, version, trigger, ref, started by,
created at, ended at.

Examples:

    gatehouse run start restock --input '{"sku": "A-1042"}'
    gatehouse run start restock --input @order.json --ref order-1042 --wait 5m
    cat order.json | gatehouse run start restock --input -
`
}

// Run starts the run, and with --wait waits for its end.
func (c *runStartCmd) Run(g *globals, api service) error {
	input, err := readJSON(g, "--input", c.Input)
	if err != nil {
		return err
	}
	r, replayed, err := api.StartRun(g.Ctx, c.Workflow, gatehouse.NewRun{Input: input, TriggerRef: c.Ref})
	if err != nil {
		return err
	}
	if replayed {
		g.Say("This reference has already started a run; this is that run.")
	}
	if c.Wait == 0 {
		return g.printRun(r, nil)
	}
	g.Say("Started %s; waiting until it ends.", term.Safe(r.ID))
	if r, err = g.waitRun(api, r.ID, c.Wait.D()); err != nil {
		return err
	}
	if err := g.printRun(r, nil); err != nil {
		return err
	}
	return g.exitOfRun(api, r)
}

// readJSON reads the value of a flag: JSON, @FILE or - for stdin; "" for none.
func readJSON(g *globals, flag, value string) (gatehouse.JSON, error) {
	src := []byte(value)
	name, file := strings.CutPrefix(value, "@")
	switch {
	case value == "":
		return "", nil
	case value == "-", file:
		var err error
		if src, err = term.ReadInput(&g.IO, name); err != nil {
			return "", err
		}
	}
	j, err := gatehouse.Canonicalize(src)
	var syntax *gatehouse.SyntaxError
	switch {
	case err == nil:
		return j, nil
	case value != "-" && !file:
		return "", term.Usagef("%s is not JSON: %v (for a file, write @FILE)", flag, err)
	case errors.As(err, &syntax):
		e := gatehouse.E(gatehouse.CodeMalformed, "%s is not valid JSON: %v", flag, err)
		e.Violations = gatehouse.Violations{{Pointer: syntax.Pointer, Detail: syntax.Detail}}
		return "", e
	}
	return "", err
}

// runListCmd lists runs.
type runListCmd struct {
	Status   gatehouse.RunStatus `enum:",queued,running,waiting_approval,waiting,failed_retryable,succeeded,failed_terminal,canceled" default:"" placeholder:"STATUS" help:"queued, running, waiting_approval, waiting, failed_retryable, succeeded, failed_terminal or canceled."`
	Workflow string              `placeholder:"NAME" help:"Only runs of this workflow."`
	Since    string              `placeholder:"WHEN" help:"Only runs created since then: a time such as 2026-01-02T15:04:05Z, or 2h for the last two hours."`
	Input    string              `placeholder:"FIELD=VALUE" help:"Only runs whose input has this member, such as customer=ACME; a page examines at most 5,000 runs."`
	paging   `embed:""`
}

func (*runListCmd) Help() string {
	return `
Piped, the columns are: id, status, workflow, version, trigger, ref, started by,
created at, ended at.

Examples:

    gatehouse run list --status waiting_approval
    gatehouse run list --workflow incident-triage --status failed_terminal --all
    gatehouse run list --since 2h
    gatehouse run list --input customer=ACME
    gatehouse run list --limit 5 --json
`
}

func (c *runListCmd) Run(g *globals, api service) error {
	f := gatehouse.RunFilter{Status: c.Status, Workflow: c.Workflow}
	if c.Since != "" {
		var err error
		if f.Since, err = parseSince(c.Since, g.Now()); err != nil {
			return err
		}
	}
	if c.Input != "" {
		var ok bool
		if f.InputField, f.InputValue, ok = gatehouse.ReadInputFilter(c.Input); !ok {
			return term.Usagef("--input must be a name and a value, such as customer=ACME")
		}
	}
	page, err := collect(g.Ctx, &c.paging,
		func(ctx context.Context, cursor string, limit int) (gatehouse.Page[*gatehouse.Run], error) {
			f.Cursor, f.Limit = cursor, limit
			return api.ListRuns(ctx, f)
		})
	none := g.none(len(page.Items), err, "runs", filters("workflow", c.Workflow, "input", c.Input),
		filters("status", string(c.Status), "since", c.Since))
	return showPage(g, page, err, none, func() *term.Table { return g.runTable(page.Items...) })
}

// runTable lists runs, with the same columns in all commands.
func (g *globals) runTable(runs ...*gatehouse.Run) *term.Table {
	t := &term.Table{
		Header: []string{"ID", "STATUS", "WORKFLOW", "VERSION", "TRIGGER", "REF", "BY", "CREATED", "ENDED"}, Wide: 5,
		Drop: []int{3, 4, 6, 8},
		Paint: func(column int, cell string) string {
			if column == 1 {
				return runStyle(gatehouse.RunStatus(cell))
			}
			return ""
		},
	}
	ids := term.IDsOf(&g.IO, runs, func(r *gatehouse.Run) string { return r.ID })
	for i, r := range runs {
		t.Add(ids[i], string(r.Status), r.Workflow, strconv.Itoa(r.Version), string(r.Trigger), r.TriggerRef,
			r.StartedBy,
			g.At(r.CreatedAt), g.AtPtr(r.FinishedAt))
	}
	return t
}

func runStyle(s gatehouse.RunStatus) string {
	switch s {
	case gatehouse.RunSucceeded:
		return term.Green
	case gatehouse.RunFailed:
		return term.Red
	case gatehouse.RunWaitingApproval:
		return term.Yellow
	case gatehouse.RunRunning, gatehouse.RunRetrying:
		return term.Blue
	}
	return term.Dim
}

// printRun prints one run as a row of a list, or as JSON.
func (g *globals) printRun(r *gatehouse.Run, err error) error {
	return show(g, r, err, func() *term.Table { return g.runTable(r) })
}

// waitRun polls until the run has ended, or the time is over.
func (g *globals) waitRun(api service, id string, timeout time.Duration) (*gatehouse.Run, error) {
	deadline, since := time.Now().Add(timeout), ""
	for {
		r, err := api.WatchRun(g.Ctx, id, since, max(min(time.Until(deadline), pollFor), 0))
		switch left := time.Until(deadline); {
		case err == nil && (r.Status.Final() || left <= 0):
			return r, nil
		case err == nil:
			since = r.Position
		case !term.Passing(err), left <= 0:
			return nil, err
		default:
			// The server is restarting, or busy; the run still exists.
			if err := g.Pause(min(term.RetryIn(err), left)); err != nil {
				return nil, err
			}
		}
	}
}

// exitOfRun returns the exit code for a run's state, as an error. A run that failed because an
// action was rejected, denied or expired has its own code.
func (g *globals) exitOfRun(api service, r *gatehouse.Run) error {
	switch r.Status {
	case gatehouse.RunSucceeded:
		return nil
	case gatehouse.RunCanceled:
		return term.Exit(term.ExitDecided)
	case gatehouse.RunFailed:
		d, err := api.RunDetail(g.Ctx, r.ID)
		if err != nil {
			return err
		}
		return term.Exit(exitOfFailure(d))
	}
	return term.Exit(term.ExitPending)
}

// exitOfFailure returns the exit code of a failed run: that of the rejected, denied or expired action that made the
// run fail; without such an action, that of any other error.
func exitOfFailure(d *gatehouse.RunDetail) int {
	for _, s := range d.Steps {
		if s.Status != gatehouse.StepFailed || s.ActionID == "" {
			continue
		}
		switch a := actionOf(d, s); {
		case a == nil:
		case a.Status == gatehouse.StatusRejected, a.Status == gatehouse.StatusDenied:
			return term.ExitRejected
		case a.Status == gatehouse.StatusExpired:
			return term.ExitExpired
		}
	}
	return term.ExitError
}

// actionOf returns the action that a step proposed; nil for none.
func actionOf(d *gatehouse.RunDetail, s *gatehouse.Step) *gatehouse.Action {
	for _, a := range d.Actions {
		if a.ID == s.ActionID {
			return a
		}
	}
	return nil
}

// runCancelCmd cancels a run.
type runCancelCmd struct {
	ID     string `arg:"" help:"The run."`
	Reason string `placeholder:"TEXT" help:"Why."`
}

func (*runCancelCmd) Help() string {
	return `
No new step starts, pending actions are withdrawn, and workers are told to stop.
A call that was already sent is completed first, so the run may end a little
later. Repeating the command changes nothing; if the run has ended in another
way, the command exits 12.

Examples:

    gatehouse run cancel run_01993b7e --reason "the ticket was closed manually"
`
}

func (c *runCancelCmd) Run(g *globals, api service) error {
	r, err := api.CancelRun(g.Ctx, c.ID, c.Reason)
	if err != nil {
		return err
	}
	if !r.Status.Final() {
		g.Say("The run starts no new step, and ends when the steps in progress have finished: gatehouse run watch %s",
			term.Safe(r.ID))
	}
	return g.printRun(r, nil)
}

// runRetryCmd repeats a run that has ended, as a new run.
type runRetryCmd struct {
	ID   string `arg:"" help:"The run, failed or canceled; with --from any that has ended."`
	From string `placeholder:"STEP" help:"Repeat this step and the steps that need it."`
}

func (*runRetryCmd) Help() string {
	return `
Starts a new run of the same version with the same input. Steps that succeeded are
copied with their results. Repeating the command prints the run that the first
one started; if the run has neither failed nor been canceled, the command exits 12.
With --from, the step and all steps that need it are repeated; a change that was
already made is not made twice.

Examples:

    gatehouse run retry run_01993b7e
    gatehouse run retry run_01993b7e --from draft
`
}

func (c *runRetryCmd) Run(g *globals, api service) error {
	if c.From != "" {
		return g.printRun(api.RetryRunFrom(g.Ctx, c.ID, c.From))
	}
	return g.printRun(api.RetryRun(g.Ctx, c.ID))
}

// runSignalCmd sends an event.
type runSignalCmd struct {
	ID   string `arg:"" help:"The run."`
	Name string `arg:"" help:"The event, as the workflow's wait names it."`
	Data string `placeholder:"JSON" help:"The event's data: JSON; @FILE reads it from a file, - from stdin."`
}

func (*runSignalCmd) Help() string {
	return `
A step that waits for the event continues; an early event is kept. Piped, the
columns are: id, run, event, by, at.

Examples:

    gatehouse run signal run_01993b7e paid --data '{"amount": "12.50"}'
`
}

func (c *runSignalCmd) Run(g *globals, api service) error {
	data, err := readJSON(g, "--data", c.Data)
	if err != nil {
		return err
	}
	s, err := api.SignalRun(g.Ctx, c.ID, c.Name, data)
	return show(g, s, err, func() *term.Table {
		return term.Row([]string{"ID", "RUN", "EVENT", "BY", "AT"}, s.ID, s.RunID, s.Name, s.By, g.At(s.At))
	})
}

// writeLine writes one document on one line, for output that continues.
func (g *globals) writeLine(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = g.Stdout.Write(append(term.SafeJSON(b), '\n'))
	return err
}
