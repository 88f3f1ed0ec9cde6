package runs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/workflow"
)

// reflexion returns the lesson of a run that ends now: the attempt, its result, and what
// to do differently. It has only facts of the run, fixed texts, and quoted reasons of
// people and targets.
func (m *runTx) reflexion() (*gatehouse.Reflexion, error) {
	run := m.run
	if slices.ContainsFunc(m.def.Steps, func(s *workflow.Step) bool { return s.ForEach != nil }) {
		whole, err := m.tx.FindRun(run.ID)
		if err != nil {
			return nil, err
		}
		of := *run
		run, of.Steps = &of, whole.Steps
	}
	return &gatehouse.Reflexion{
		ID: gate.NewID("rfx"), Tenant: run.Tenant, RunID: run.ID, Workflow: run.Workflow, Version: run.Version,
		Outcome: run.Status, At: m.tx.Now(),
		Attempted: clip(attempted(run)), Happened: clip(happened(run)), Otherwise: clip(otherwise(run)),
	}, nil
}

func attempted(run *gatehouse.Run) string {
	var steps []string
	for _, s := range run.Steps {
		if s.Parent == "" {
			steps = append(steps, s.Key+" ("+s.Uses+")")
		}
	}
	return fmt.Sprintf("%s version %d, started by %s: %s.", run.Workflow, run.Version, run.Trigger,
		strings.Join(steps, ", "))
}

func happened(run *gatehouse.Run) string {
	var b strings.Builder
	switch run.Status {
	case gatehouse.RunSucceeded:
		b.WriteString("Every step succeeded")
	case gatehouse.RunCanceled:
		b.WriteString("It was canceled")
	default:
		b.WriteString("It failed")
	}
	if run.StartedAt != nil && run.FinishedAt != nil {
		fmt.Fprintf(&b, " after %s", run.FinishedAt.Sub(*run.StartedAt).Round(time.Second))
	}
	if f := run.Failure; f != nil {
		fmt.Fprintf(&b, ": %s: %s", f.Code, f.Detail)
	}
	b.WriteString(".")
	for _, s := range run.Steps {
		switch {
		case s.Skipped:
			fmt.Fprintf(&b, " %s was skipped, as its condition did not hold.", s.Key)
		case s.Attempts > 1:
			fmt.Fprintf(&b, " %s took %d attempts.", s.Key, s.Attempts)
		}
	}
	return b.String()
}

// lessons maps the code of a failure to what should be done differently.
var lessons = []struct {
	codes []string
	words string
}{
	{[]string{"rejected"}, "Do not propose this change again as it was: a reviewer rejected it, for the reason given."},
	{[]string{"expired"}, "Too few reviewers answered in time: propose while they are there, or give them longer."},
	{[]string{"denied", "authority_revoked"},
		"The policy does not allow this change: propose a change that it allows, or ask for a change of the policy or of " +
			"the approvers first."},
	{[]string{"target_changed"}, "Read the target just before proposing: it had changed since the proposal."},
	{[]string{"digest_mismatch", "not_approved"}, "The change was not the approved one: have an operator check it first."},
	{[]string{"expression", "input", "proposal", "invalid"},
		"Fix the workflow or its input: the same run would fail again."},
	{[]string{"budget_exceeded", "too_many_writes"}, "Do less in one run, or have the limit raised."},
	{[]string{"deadline_exceeded", "timeout", "lease_expired"}, "Allow for more time, or find out what kept it waiting."},
	{[]string{"duplicate_key"}, "Another change has this idempotency key: give each change a key of its own."},
	{[]string{"canceled"}, "Ask who canceled it before trying again."},
}

func otherwise(run *gatehouse.Run) string {
	if run.Status == gatehouse.RunSucceeded {
		for _, s := range run.Steps {
			if s.Attempts > 1 {
				return "It can be done the same way again; expect " + s.Key + " to need more than one attempt."
			}
		}
		return "Nothing: it can be done the same way again."
	}
	code := ""
	if run.Failure != nil {
		code = run.Failure.Code
	}
	for _, a := range lessons {
		if slices.Contains(a.codes, code) {
			return a.words
		}
	}
	return "Look at the failure, " + code + ", before trying again; a retried run takes over what has succeeded."
}
