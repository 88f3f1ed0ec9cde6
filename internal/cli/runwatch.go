package cli

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	xterm "golang.org/x/term"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/sheet"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// runWatchCmd follows one run.
type runWatchCmd struct {
	ID      string              `arg:"" help:"The run."`
	Until   gatehouse.RunStatus `enum:",running,waiting_approval,waiting,failed_retryable,succeeded,failed_terminal,canceled" default:"" placeholder:"STATUS" help:"Stop at this status, too: running, waiting_approval, waiting, failed_retryable, succeeded, failed_terminal or canceled."`
	Timeout *gatehouse.Duration `placeholder:"DURATION" help:"Maximum time to follow; by default until the run has ended."`
}

func (*runWatchCmd) Help() string {
	return `
On a terminal the timeline is drawn and kept up to date, and the whole run is
shown at its end. Piped, a line is printed for each change, with the columns:
time, run or step, status, detail. With --json the run is printed at each change,
on a line of its own. The command waits for a server that restarts meanwhile.

Exits by the run's status: 0 succeeded, or at --until, 1 failed, 8 still
running at the timeout, 10 failed because a person rejected or the policy denied an
action, 11 failed because nobody decided in time, 12 canceled.

Examples:

    gatehouse run watch run_01993b7e
    gatehouse run watch run_01993b7e --timeout 1h && echo succeeded
    gatehouse run watch run_01993b7e --until waiting_approval --timeout 1m
`
}

// watchPoll is the length of one long poll.
const watchPoll = 2 * time.Second

func (c *runWatchCmd) Run(g *globals, api service) error {
	show := g.watcher(api)
	remaining := func() time.Duration { return math.MaxInt64 }
	if c.Timeout != nil {
		deadline := time.Now().Add(c.Timeout.D())
		remaining = func() time.Duration { return max(time.Until(deadline), 0) }
	}
	r, err := api.FindRun(g.Ctx, c.ID)
	if err != nil {
		return err
	}
	since := r.Position
	for {
		over := remaining() == 0
		switch {
		case err == nil:
			since = r.Position
			there := r.Status == c.Until
			last := there || over || r.Status.Final()
			if err := show(r, last); err != nil {
				return err
			}
			switch {
			case there:
				return nil
			case last:
				return g.exitOfRun(api, r)
			}
		case !term.Passing(err) || over:
			return err
		default:
			if err := g.Pause(min(term.RetryIn(err), remaining())); err != nil {
				return err
			}
		}
		r, err = api.WatchRun(g.Ctx, c.ID, since, min(watchPoll, remaining()))
	}
}

// watcher returns the function that shows a run after each read; last is true for the final read.
func (g *globals) watcher(api service) func(r *gatehouse.Run, last bool) error {
	w := &runWatcher{g: g, api: api, seen: make(map[string]string)}
	switch {
	case g.JSON:
		return w.printJSON
	case g.TTY:
		return w.draw
	}
	return w.lines
}

// runWatcher remembers the parts of a run that were shown.
type runWatcher struct {
	g   *globals
	api service
	// seen maps the run and its steps to their state when last shown.
	seen map[string]string
	// drawn is the number of lines on the terminal that the next draw replaces.
	drawn int
}

// changed stores the state of a key, and reports whether it differs from the key's last state.
func (w *runWatcher) changed(key, state string) bool {
	before, known := w.seen[key]
	w.seen[key] = state
	return !known || before != state
}

// printJSON prints the run as one line of JSON when something has changed.
func (w *runWatcher) printJSON(r *gatehouse.Run, _ bool) error {
	moved := w.changed("", string(r.Status)+string(r.Stop))
	for _, s := range r.Steps {
		moved = w.changed(s.Key, fmt.Sprint(s.Status, s.Generation)) || moved
	}
	if !moved {
		return nil
	}
	return w.g.writeLine(r)
}

// lines prints a line for each change.
func (w *runWatcher) lines(r *gatehouse.Run, _ bool) error {
	var b strings.Builder
	line := func(at time.Time, what, state, detail string) {
		fmt.Fprintf(&b, "%s\t%s\t%s\t%s\n", at.UTC().Format(time.RFC3339), term.Safe(what), term.Safe(state),
			term.Safe(detail))
	}
	for _, s := range r.Steps {
		// A blocked step has not begun, and gets no line. Items join the run's steps while the run is watched.
		if w.changed(s.Key, fmt.Sprint(s.Status, s.Generation)) && s.Status != gatehouse.StepBlocked {
			line(w.stepTime(s), s.Key, s.Word(), stepDetail(s))
		}
	}
	if w.changed("", string(r.Status)+string(r.Stop)) {
		detail := ""
		if r.Failure != nil {
			detail = r.Failure.Detail + " (" + r.Failure.Code + ")"
		}
		line(w.runTime(r), r.ID, sheet.RunStatusText(r), detail)
	}
	_, err := io.WriteString(w.g.Stdout, b.String())
	return err
}

// stepTime is when a step reached its state; now if that is not known.
func (w *runWatcher) stepTime(s *gatehouse.Step) time.Time {
	switch {
	case s.FinishedAt != nil:
		return *s.FinishedAt
	case s.Status == gatehouse.StepReady && s.ReadyAt != nil:
		return *s.ReadyAt
	case s.Status == gatehouse.StepRunning && s.StartedAt != nil:
		return *s.StartedAt
	}
	return w.g.Now()
}

func (w *runWatcher) runTime(r *gatehouse.Run) time.Time {
	switch {
	case r.FinishedAt != nil:
		return *r.FinishedAt
	case r.Status == gatehouse.RunQueued:
		return r.CreatedAt
	}
	return w.g.Now()
}

// stepDetail says why a step failed, or what it waits for.
func stepDetail(s *gatehouse.Step) string {
	switch {
	case s.Failure != nil:
		return s.Failure.Detail + " (" + s.Failure.Code + ")"
	case s.Status == gatehouse.StepWaitingApproval:
		return s.ActionID
	case s.Status == gatehouse.StepWaiting && s.ChildRun != "":
		return s.ChildRun
	case s.Status == gatehouse.StepWaiting && s.Event != "":
		return "event " + s.Event
	case (s.Status == gatehouse.StepWaiting || s.Status == gatehouse.StepRetrying) && s.DueAt != nil:
		return "until " + s.DueAt.UTC().Format(time.RFC3339)
	}
	return ""
}

// draw keeps the timeline on a terminal up to date. At the end, the whole run replaces the
// timeline.
func (w *runWatcher) draw(r *gatehouse.Run, last bool) error {
	d, err := w.api.RunDetail(w.g.Ctx, r.ID)
	if term.Passing(err) && !last {
		return nil // keep the lines that are drawn
	}
	if err != nil {
		return err
	}
	var b strings.Builder
	if w.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", w.drawn)
	}
	b.WriteString("\r\x1b[J")
	if last {
		if _, err := io.WriteString(w.g.Stdout, b.String()); err != nil {
			return err
		}
		sheet.New(&w.g.IO).Run(d, w.g.definitionOf(w.api, r))
		return nil
	}
	s := sheet.New(&w.g.IO)
	head := term.Safe(r.Workflow+" "+r.ID+": ") + term.Paint(w.g.Color, runStyle(r.Status),
		term.Safe(sheet.RunStatusText(r)))
	lines := append([]string{head}, s.TimelineRows(d)...)
	if most := w.g.rows() - 1; len(lines) > most {
		// Lines that scrolled off the screen could not be redrawn.
		lines = append(lines[:most-1], fmt.Sprintf("… and %d lines more: gatehouse run show %s", len(lines)-most+1,
			term.Safe(r.ID)))
	}
	for _, l := range lines {
		b.WriteString(l + "\n")
	}
	w.drawn = len(lines)
	_, err = io.WriteString(w.g.Stdout, b.String())
	return err
}

// rows is the number of lines of the terminal; 24 if it is not known.
func (g *globals) rows() int {
	if f, ok := g.Stdout.(*os.File); ok {
		if _, rows, err := xterm.GetSize(int(f.Fd())); err == nil && rows > 2 {
			return rows
		}
	}
	return 24
}
