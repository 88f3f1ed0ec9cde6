package sheet

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/runline"
	"github.com/gatehouse-dev/gatehouse/internal/term"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// maxShownValue bounds the shown part of a run's input and output, and of an event's data, in columns.
const maxShownValue = 600

// Run writes a run.
func (s *Sheet) Run(d *gatehouse.RunDetail, def *workflow.Definition) {
	r := d.Run
	fmt.Fprintf(s.W, "%s\n\n", term.Paint(s.color, term.Bold, s.fold(r.Workflow+": "+RunStatusText(r), 0)))
	s.Raw("id", term.Safe(r.ID))
	s.Line("status", string(r.Status))
	s.Line("version", strconv.Itoa(r.Version))
	if r.Failure != nil {
		s.Line("failure", r.Failure.Detail+" ("+r.Failure.Code+")")
	}
	s.Line("trigger", strings.TrimSpace(string(r.Trigger)+" "+r.TriggerRef))
	s.Line("started by", r.StartedBy)
	s.Line("parent run", r.ParentRun)
	s.Line("retry of", r.RetryOf)
	s.Line("created", s.When(r.CreatedAt))
	s.Line("started", s.WhenPtr(r.StartedAt))
	s.Line("ended", s.WhenPtr(r.FinishedAt))
	if !r.Status.Final() {
		s.Line("deadline", s.WhenPtr(r.Deadline))
	}
	s.Line("input", s.value(r.Input))
	s.Line("output", s.value(r.Output))
	if r.Status.Final() {
		s.Raw("evidence", "gatehouse evidence export "+term.Safe(r.ID))
	}
	if def != nil {
		s.Head("Steps")
		_, drawn, _ := strings.Cut(def.Text(r), "\n")
		for _, line := range term.SafeLines(drawn, 0) {
			fmt.Fprintln(s.W, line)
		}
	}
	s.Head("Timeline")
	s.timeline(d)
	s.runActions(d)
	s.failedAttempts(d)
	s.runCosts(d)
	s.runSignals(d)
}

// RunStatusText returns the status of a run, and whether it is stopping.
func RunStatusText(r *gatehouse.Run) string {
	if r.Stop != "" && !r.Status.Final() {
		return string(r.Status) + ", stopping: " + string(r.Stop)
	}
	return string(r.Status)
}

// value shows the beginning of a JSON value; --json shows all of it.
func (s *Sheet) value(j gatehouse.JSON) string {
	return term.Shorten(term.Safe(string(j)), maxShownValue)
}

// runActions writes the actions that the steps proposed, and who decided.
func (s *Sheet) runActions(d *gatehouse.RunDetail) {
	if len(d.Actions) == 0 {
		return
	}
	s.Head("Actions")
	steps := make(map[string]string, len(d.Steps))
	for _, step := range d.Steps {
		steps[step.ActionID] = step.Key
	}
	for _, a := range d.Actions {
		s.Item(fmt.Sprintf("%s %s %s %s: %s", a.ID, statusText(a), a.RiskLevel, steps[a.ID], card.RowText(a)))
		p := a.Approval
		if p != nil && a.Status == gatehouse.StatusPending {
			s.Item("    " + VotesText(p) + "; expires " + s.When(p.ExpiresAt))
		}
		if p != nil {
			for _, v := range p.Votes {
				s.Item(fmt.Sprintf("    %s: %s %s, via %s", v.Name, v.Decision, s.When(v.At), v.Via))
			}
		}
		if a.DecidedAt != nil && (p == nil || len(p.Votes) == 0) {
			s.Item("    decided " + s.decided(a))
		}
		if rc := a.Receipt; rc != nil {
			s.Item(fmt.Sprintf("    receipt %s: %s at attempt %d%s", rc.ID, rc.Outcome, rc.Attempt,
				ExternalIDText(rc.ExternalID)))
		}
	}
}

func (s *Sheet) failedAttempts(d *gatehouse.RunDetail) {
	headed := false
	for _, a := range d.Attempts {
		step := d.StepByID(a.StepID)
		if step == nil || !runline.FailedAttempt(a) {
			continue
		}
		if !headed {
			s.Head("Attempts that failed")
			headed = true
		}
		text := fmt.Sprintf("%s, attempt %d: %s %s after %s, worker %s", step.Key, a.Attempt, a.Outcome,
			s.When(a.FinishedAt),
			tookText(a.FinishedAt.Sub(a.StartedAt)), a.Worker)
		if a.Code != "" || a.Detail != "" {
			text += fmt.Sprintf(": %s (%s)", a.Detail, a.Code)
		}
		s.Item(text)
	}
}

// ModelCost is the cost of the calls of one model.
type ModelCost runline.ModelCost

// Text is the cost on one line.
func (c ModelCost) Text() string {
	cost := "no price is configured"
	if c.Currency != "" {
		cost = string(c.Cost) + " " + c.Currency
	}
	return fmt.Sprintf("%s %s: %s, %d tokens in, %d out, %s", c.Provider, c.Model, term.Count(c.Calls, "call"),
		c.InputTokens, c.OutputTokens, cost)
}

func (s *Sheet) runCosts(d *gatehouse.RunDetail) {
	if len(d.Usage) == 0 {
		return
	}
	s.Head("Models")
	for _, c := range runline.CostsOf(d.Usage) {
		s.Item(ModelCost(*c).Text())
	}
}

func (s *Sheet) runSignals(d *gatehouse.RunDetail) {
	if len(d.Signals) == 0 {
		return
	}
	s.Head("Events")
	for _, e := range d.Signals {
		s.Item(fmt.Sprintf("%s %s by %s: %s", e.Name, s.When(e.At), e.By, s.value(e.Data)))
	}
}
