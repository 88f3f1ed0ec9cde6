package cli

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/sheet"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// waitCmd waits for an action.
type waitCmd struct {
	ID      string             `arg:"" help:"The action."`
	Until   gatehouse.Until    `enum:"decided,finished" default:"finished" help:"What to wait for: decided or finished."`
	Timeout gatehouse.Duration `default:"10m" help:"Maximum time to wait."`

	Questions bool `help:"Stop waiting, with exit code 8, when somebody asks a question."`
}

func (*waitCmd) Help() string {
	return `
Prints the action when the wait ends, and exits by its status: 0 applied or
reversed (with --until decided also approved), 1 failed, 8 still pending at the
timeout, 10 rejected or denied, 11 expired, 12 canceled or superseded, 13 unknown.
A question that is asked meanwhile is printed on stderr; see gatehouse comment.

Examples:

    gatehouse wait act_01993b7e --until decided --timeout 1h
    gatehouse wait act_01993b7e && echo applied
`
}

func (c *waitCmd) Run(g *globals, api service) error {
	return g.wait(api, c.ID, waiting{c.Until, c.Timeout.D(), c.Questions})
}

// pollFor is the length of one long poll: below the time-outs of the usual
// proxies between client and server.
const pollFor = 25 * time.Second

// waiting says what to wait for, and how long. With questions, a question ends the wait.
type waiting struct {
	until     gatehouse.Until
	timeout   time.Duration
	questions bool
}

// wait polls until the action has reached the awaited state, a question ends the wait, or the timeout is over. It
// then prints the action, and returns the action's exit code as an error, nil for 0.
func (g *globals) wait(api service, id string, w waiting) error {
	until, deadline, seen := w.until, time.Now().Add(w.timeout), 0
	poll := time.Second // the first poll is short, so that the caller soon reads what the action waits for
	for {
		left := time.Until(deadline)
		a, err := api.WaitAsked(g.Ctx, id, max(min(left, poll), 0), until, seen)
		if poll < pollFor && err == nil && a.Status == gatehouse.StatusPending {
			g.Say("%s is pending: %s. Waiting; Ctrl-C stops the wait, not the action.", a.ID, waitsFor(a))
		}
		poll = pollFor
		asked := err == nil && a.AskedAfter(seen)
		if asked {
			seen = g.sayQuestions(a, seen)
		}
		switch {
		case err == nil && (reached(a.Status, until) || !time.Now().Before(deadline) || asked && w.questions):
			if err := g.printAction(a); err != nil {
				return err
			}
			g.sayReason(a)
			return exitOfStatus(a.Status, until)
		case err == nil:
		case !term.Passing(err), time.Until(deadline) <= 0:
			return err
		default:
			// The server is restarting, or busy; the action still exists.
			if err := g.Pause(min(term.RetryIn(err), time.Until(deadline))); err != nil {
				return err
			}
		}
	}
}

// waitsFor says whose decision an action waits for.
func waitsFor(a *gatehouse.Action) string {
	if a.Approval == nil {
		return "nobody has been asked yet"
	}
	return sheet.VotesText(a.Approval)
}

func reached(s gatehouse.Status, until gatehouse.Until) bool {
	if until == gatehouse.UntilDecided {
		return s.Decided()
	}
	return s.Finished()
}
