package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/runline"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// maxShownValue bounds what is shown of a run's input and output, in columns.
const maxShownValue = 600

// run writes what there is of a run.
func (s *sheet) run(d *gatehouse.RunDetail, def *workflow.Definition) {
	r := d.Run
	fmt.Fprintf(s.w, "%s\n\n", paint(s.color, bold, s.fold(r.Workflow+": "+runStatusText(r), 0)))
	s.raw("id", safe(r.ID))
	s.line("status", string(r.Status))
	s.line("version", strconv.Itoa(r.Version))
	if r.Failure != nil {
		s.line("failure", r.Failure.Detail+" ("+r.Failure.Code+")")
	}
	s.line("trigger", strings.TrimSpace(string(r.Trigger)+" "+r.TriggerRef))
	s.line("started by", r.StartedBy)
	s.line("parent run", r.ParentRun)
	s.line("retry of", r.RetryOf)
	s.line("created", s.when(r.CreatedAt))
	s.line("started", s.whenPtr(r.StartedAt))
	s.line("ended", s.whenPtr(r.FinishedAt))
	if !r.Status.Final() {
		s.line("deadline", s.whenPtr(r.Deadline))
	}
	s.line("input", s.value(r.Input))
	s.line("output", s.value(r.Output))
	if r.Status.Final() {
		s.raw("evidence", "gatehouse evidence export "+safe(r.ID))
	}
	if def != nil {
		s.head("Steps")
		_, drawn, _ := strings.Cut(def.Text(r), "\n")
		for _, line := range safeLines(drawn, 0) {
			fmt.Fprintln(s.w, line)
		}
	}
	s.head("Timeline")
	s.timeline(d)
	s.runActions(d)
	s.failedAttempts(d)
	s.runCosts(d)
	s.runSignals(d)
}

func runStatusText(r *gatehouse.Run) string {
	if r.Stop != "" && !r.Status.Final() {
		return string(r.Status) + ", stopping: " + string(r.Stop)
	}
	return string(r.Status)
}

// value shows JSON up to a length; all of it is in --json.
func (s *sheet) value(j gatehouse.JSON) string {
	return shorten(safe(string(j)), maxShownValue)
}

// runActions writes what the steps proposed, and who decided.
func (s *sheet) runActions(d *gatehouse.RunDetail) {
	if len(d.Actions) == 0 {
		return
	}
	s.head("Actions")
	steps := make(map[string]string, len(d.Steps))
	for _, step := range d.Steps {
		steps[step.ActionID] = step.Key
	}
	for _, a := range d.Actions {
		s.item(fmt.Sprintf("%s %s %s %s: %s", a.ID, statusText(a), a.RiskLevel, steps[a.ID], card.RowText(a)))
		p := a.Approval
		if p != nil && a.Status == gatehouse.StatusPending {
			s.item("    " + votesText(p) + "; expires " + s.when(p.ExpiresAt))
		}
		if p != nil {
			for _, v := range p.Votes {
				s.item(fmt.Sprintf("    %s: %s %s, via %s", v.Name, v.Decision, s.when(v.At), v.Via))
			}
		}
		if a.DecidedAt != nil && (p == nil || len(p.Votes) == 0) {
			s.item(fmt.Sprintf("    decided %s by %s, via %s", s.when(*a.DecidedAt), a.DecidedBy, a.DecidedVia))
		}
		if rc := a.Receipt; rc != nil {
			s.item(fmt.Sprintf("    receipt %s: %s at attempt %d, external id %s", rc.ID, rc.Outcome, rc.Attempt, rc.ExternalID))
		}
	}
}

func (s *sheet) failedAttempts(d *gatehouse.RunDetail) {
	headed := false
	for _, a := range d.Attempts {
		step := d.StepByID(a.StepID)
		if step == nil || !runline.FailedAttempt(a) {
			continue
		}
		if !headed {
			s.head("Attempts that failed")
			headed = true
		}
		text := fmt.Sprintf("%s, attempt %d: %s %s after %s, worker %s", step.Key, a.Attempt, a.Outcome, s.when(a.FinishedAt),
			tookText(a.FinishedAt.Sub(a.StartedAt)), a.Worker)
		if a.Code != "" || a.Detail != "" {
			text += fmt.Sprintf(": %s (%s)", a.Detail, a.Code)
		}
		s.item(text)
	}
}

// modelCost is what the calls of one model cost.
type modelCost struct {
	Provider     string            `json:"provider"`
	Model        string            `json:"model"`
	Calls        int               `json:"calls"`
	InputTokens  int64             `json:"input_tokens"`
	OutputTokens int64             `json:"output_tokens"`
	Cost         gatehouse.Decimal `json:"cost"`
	Currency     string            `json:"currency"`
}

func (c modelCost) text() string {
	cost := "no price is configured"
	if c.Currency != "" {
		cost = string(c.Cost) + " " + c.Currency
	}
	return fmt.Sprintf("%s %s: %s, %d tokens in, %d out, %s", c.Provider, c.Model, count(c.Calls, "call"), c.InputTokens, c.OutputTokens, cost)
}

// costsOf adds up what models cost, in the order of their first call.
func costsOf(usage []*gatehouse.ModelUsage) []*modelCost {
	var out []*modelCost
	of := map[[3]string]*modelCost{}
	for _, u := range usage {
		key := [3]string{u.Provider, u.Model, u.Currency}
		c := of[key]
		if c == nil {
			c = &modelCost{Provider: u.Provider, Model: u.Model, Currency: u.Currency, Cost: "0"}
			of[key] = c
			out = append(out, c)
		}
		c.Calls++
		c.InputTokens += u.InputTokens
		c.OutputTokens += u.OutputTokens
		if u.Cost != "" {
			c.Cost = c.Cost.Add(u.Cost)
		}
	}
	return out
}

func (s *sheet) runCosts(d *gatehouse.RunDetail) {
	if len(d.Usage) == 0 {
		return
	}
	s.head("Models")
	for _, c := range costsOf(d.Usage) {
		s.item(c.text())
	}
}

func (s *sheet) runSignals(d *gatehouse.RunDetail) {
	if len(d.Signals) == 0 {
		return
	}
	s.head("Events")
	for _, e := range d.Signals {
		s.item(fmt.Sprintf("%s %s by %s: %s", e.Name, s.when(e.At), e.By, s.value(e.Data)))
	}
}
