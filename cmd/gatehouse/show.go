package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

// newSheet writes to stdout, folded to a terminal's width.
func (g *globals) newSheet() *sheet {
	s := &sheet{w: g.stdout, g: g, color: g.color}
	if g.tty {
		s.columns = g.columns
	}
	return s
}

// sheet writes an action in full: what the server knows first, then the
// change, then what others said. Nothing is cut. What agents wrote stands
// behind a bar, so that it cannot pass for a line of the server's.
type sheet struct {
	w       io.Writer
	g       *globals
	columns int
	color   bool
	// older is the action that the one shown is a rebase of, nil for none.
	older *gatehouse.Action
	// before is the iteration before the one shown, nil for none.
	before *gatehouse.Action
}

const labelWidth = 12

// line writes a label and a value, with a tab between them when it is piped.
// An empty value writes nothing.
func (s *sheet) line(label, value string) {
	if value == "" {
		return
	}
	s.raw(label, s.fold(value, labelWidth+1))
}

// raw writes a label and a value that is safe and folded already.
func (s *sheet) raw(label, value string) {
	if s.columns == 0 {
		fmt.Fprintf(s.w, "%s\t%s\n", label, value)
		return
	}
	fmt.Fprintf(s.w, "%s %s\n", paint(s.color, dim, fmt.Sprintf("%-*s", labelWidth, label)), value)
}

// fold makes a value safe, and continues it under itself where it is longer
// than a line.
func (s *sheet) fold(value string, indent int) string {
	room := 0
	if s.columns > 0 {
		room = max(s.columns-indent, 20)
	}
	return strings.Join(safeLines(safe(value), room), "\n"+strings.Repeat(" ", indent))
}

// when shows a time exactly, and to a person also how far it is.
func (s *sheet) when(t time.Time) string {
	exact := t.UTC().Format(time.RFC3339)
	if s.columns == 0 {
		return exact
	}
	return exact + " (" + distance(s.g.now(), t) + ")"
}

func (s *sheet) whenPtr(t *time.Time) string {
	if t == nil {
		return ""
	}
	return s.when(*t)
}

func (s *sheet) head(title string) {
	fmt.Fprintf(s.w, "\n%s\n", paint(s.color, bold, title))
}

// timing writes who is asked when, and what happens at the end.
func (s *sheet) timing(t *gatehouse.Timing, stage int, extended bool) {
	for i, line := range card.StageLines(t, stage) {
		s.line(fmt.Sprintf("stage %d", i+1), line)
	}
	s.line("reminders", card.Reminders(t))
	if t.OnTimeout != "" {
		s.line("at the end", card.Timeout(t, extended))
	}
}

// quote writes a text of somebody else.
func (s *sheet) quote(text string) {
	room := 0
	if s.columns > 0 {
		room = max(s.columns-4, 20)
	}
	for _, line := range safeLines(text, room) {
		fmt.Fprintf(s.w, "  %s %s\n", paint(s.color, dim, "│"), line)
	}
}

func (s *sheet) item(text string) {
	fmt.Fprintf(s.w, "  %s\n", s.fold(text, 2))
}

// action writes all there is.
func (s *sheet) action(a *gatehouse.Action) {
	fmt.Fprintf(s.w, "%s\n\n", paint(s.color, bold, s.fold(card.Sentence(a), 2)))
	s.facts(a)
	s.iteration(a)
	s.edited(a)
	s.moved(a)
	s.change(a)
	s.evaluations(a)
	s.policy(a)
	if a.Rationale != "" {
		s.head("Rationale, in the words of " + safe(a.ProposedBy))
		s.quote(a.Rationale)
	}
	s.extras(a)
	s.votes(a)
	s.outcome(a)
}

func (s *sheet) facts(a *gatehouse.Action) {
	s.line("id", a.ID)
	s.line("status", statusText(a))
	risk := riskText(a.RiskLevel, a.RiskName)
	if a.ClaimedRisk != 0 && a.ClaimedRisk != a.RiskLevel {
		risk += fmt.Sprintf(" (the proposer claimed %s)", a.ClaimedRisk)
	}
	s.line("risk", risk)
	s.line("type", a.ActionType)
	s.line("proposed", s.when(a.ProposedAt)+" by "+a.ProposedBy)
	s.line("on behalf of", a.OnBehalfOf)
	if p := a.Approval; p != nil {
		s.line("approval", votesText(p))
		if a.Status == gatehouse.StatusPending {
			s.line("expires", s.when(p.ExpiresAt))
			if m := p.TargetChanged; m != nil {
				text := "changed since the proposal, " + m.By + " said " + s.when(m.At)
				if m.Version != "" {
					text += ": its version is now " + m.Version
				}
				s.line("target", text)
			}
			s.timing(&p.Timing, p.Stage, p.Extended)
		}
	}
	if a.DecidedAt != nil {
		s.line("decided", fmt.Sprintf("%s by %s, via %s", s.when(*a.DecidedAt), a.DecidedBy, a.DecidedVia))
	}
	if a.HoldFor > 0 {
		s.line("hold", a.HoldFor.String()+" before it is sent")
	}
	s.line("supersedes", a.Supersedes)
	s.line("superseded", a.Superseded)
	s.line("rebased by", a.RebasedBy)
	s.line("edited by", a.EditedBy)
	s.line("reverses", a.Reverses)
	s.line("repeats", a.Repeats)
	if f := a.Failure; f != nil {
		s.line("target said", f.TargetSays)
		s.line("retry", strings.TrimPrefix(retryHint(f.Retry), "retry "))
	}
	s.line("reversed by", a.ReversedBy)
	if a.ArchivedAt != nil {
		s.line("archived", s.when(*a.ArchivedAt))
	}
	s.line("key", a.IdempotencyKey)
	// Not folded, so that it can be copied.
	s.raw("digest", safe(string(a.Digest)))
}

func statusText(a *gatehouse.Action) string {
	if a.Failure != nil {
		return fmt.Sprintf("%s: %s (%s)", a.Status, a.Failure.Detail, a.Failure.Code)
	}
	return string(a.Status)
}

// iteration writes who sent the iteration before back, and what has changed since.
func (s *sheet) iteration(a *gatehouse.Action) {
	if s.before == nil {
		return
	}
	n, _ := card.Iteration(a)
	s.head(fmt.Sprintf("Iteration %d: what has changed since the last, which is %s", n, s.before.Status))
	for _, v := range card.Refusers(s.before) {
		if v.Notes != "" {
			s.quote(v.Name + ": " + v.Notes)
		}
	}
	list := card.Revised(s.before, a)
	if len(list) == 0 {
		s.item("Nothing has changed: the same is asked once more.")
	}
	for _, c := range list {
		s.item(movedText(c))
	}
}

// edited writes what a reviewer made of the proposer's change, and why.
func (s *sheet) edited(a *gatehouse.Action) {
	if a.Edit == nil {
		return
	}
	s.head("What " + safe(a.EditedBy) + " changed of " + safe(a.ProposedBy) + "'s change, which is " + safe(a.Edit.Of))
	s.quote(a.Edit.Note)
	for _, f := range a.Edit.Changes {
		s.item(movedText(card.Change{
			Steps: card.Steps(f.Path), Before: card.NewValue(f.Before), After: card.NewValue(f.After),
		}))
	}
}

// moved writes what has moved at the target since the older action was proposed,
// of which this one is a rebase.
func (s *sheet) moved(a *gatehouse.Action) {
	if s.older == nil {
		return
	}
	s.head("What has moved since, as the gate read it")
	for _, c := range card.Moved(s.older, a) {
		s.item(movedText(c))
	}
}

// change writes the target, and each field before and after.
func (s *sheet) change(a *gatehouse.Action) {
	s.head("Change")
	s.line("connector", a.Connector+", operation "+a.Operation)
	s.line("definition", a.Fingerprint)
	s.line("target", targetText(a.Target))
	s.line("version", a.Target.Version)
	for i, ref := range a.Target.EntityRefs {
		s.line("key "+strconv.Itoa(i+1), ref)
	}
	if m := a.Magnitude; m != nil {
		s.line("claims", strings.TrimSpace(string(m.Amount)+" "+m.Currency)+" as its magnitude")
	}
	for _, c := range fieldChanges(a.CurrentState, a.ProposedChange) {
		text := c.text()
		if !c.changed {
			text += " (unchanged)"
		}
		s.item(text)
	}
	for _, m := range otherFields(a.CurrentState, a.ProposedChange) {
		s.item(fmt.Sprintf("%s %s (as it was seen, not part of the change)", m.Name, m.Value))
	}
	if d := a.ArtifactDiff; d != nil {
		title := "Diff (" + safe(d.Type) + ")"
		if d.LinesAdded != nil {
			title += fmt.Sprintf(", %d lines added", *d.LinesAdded)
		}
		if d.LinesRemoved != nil {
			title += fmt.Sprintf(", %d lines removed", *d.LinesRemoved)
		}
		s.head(title + ", as the proposer gave it")
		s.quote(strings.TrimPrefix(d.Summary+"\n"+d.Text, "\n"))
	}
}

func (s *sheet) evaluations(a *gatehouse.Action) {
	if len(a.Evaluations) == 0 {
		return
	}
	s.head("Evaluations, as the proposer reports them")
	for _, e := range a.Evaluations {
		text := fmt.Sprintf("%s: %s (%s", e.Result, e.Name, e.Kind)
		if e.Confidence != "" {
			text += ", confidence " + string(e.Confidence)
		}
		text += ")"
		if e.Details != "" {
			text += ": " + e.Details
		}
		s.item(text)
	}
}

func (s *sheet) policy(a *gatehouse.Action) {
	s.head(fmt.Sprintf("Policy: %s (version %d)", safe(string(a.Policy.Outcome)), a.Policy.Version))
	if len(a.Policy.Rules) > 0 {
		s.item("rules: " + strings.Join(a.Policy.Rules, ", "))
	}
	for _, reason := range a.Policy.Reasons {
		s.item(reason)
	}
	for _, c := range a.Ceilings {
		s.item(fmt.Sprintf("ceiling %s for %s: takes %s of %s per %s", c.Ceiling, c.Scope, c.Amount, c.Limit, c.Window))
	}
	for i := range a.Exceeds {
		s.item(excessLine(&a.Exceeds[i]))
	}
}

// extras writes what the proposer sent along.
func (s *sheet) extras(a *gatehouse.Action) {
	if c := a.Callback; c != nil {
		s.head("Callback")
		place := cmp.Or(c.URL, c.Subject, c.ExecutionARN, c.TaskTokenHash)
		s.item(c.Type + " " + place)
	}
	for _, x := range []struct {
		title string
		value gatehouse.JSON
	}{{"Context", a.Context}, {"Metadata", a.Metadata}} {
		if fields, err := x.value.Fields(); err == nil && len(fields) > 0 {
			s.head(x.title + ", as the proposer gave it")
			for _, f := range fields {
				s.item(fmt.Sprintf("%s: %s", f.Name, f.Value))
			}
		}
	}
}

func (s *sheet) votes(a *gatehouse.Action) {
	if a.Approval == nil || len(a.Approval.Votes) == 0 {
		return
	}
	s.head("Votes")
	for _, v := range a.Approval.Votes {
		who := v.Name
		if v.ForName != "" {
			who += ", for " + v.ForName
		}
		if v.Grant != "" {
			who += ", by " + v.Grant
		}
		s.item(fmt.Sprintf("%s: %s %s, via %s", who, v.Decision, s.when(v.At), v.Via))
		if v.Notes != "" {
			s.quote(v.Notes)
		}
	}
}

// outcome writes how far the work of carrying it out is.
func (s *sheet) outcome(a *gatehouse.Action) {
	if p := a.Push; p != nil {
		s.head("Push")
		s.line("id", p.ID)
		s.line("status", fmt.Sprintf("%s after %s", p.Status, count(p.Attempts, "attempt")))
		s.line("last error", p.LastError)
		s.line("next attempt", s.whenPtr(p.NextAttempt))
		s.line("picked", s.whenPtr(p.PickedAt))
		s.line("sent", s.whenPtr(p.SentAt))
		s.line("applied", s.whenPtr(p.AppliedAt))
	}
	r := a.Receipt
	if r == nil {
		return
	}
	s.head("Receipt")
	s.line("id", r.ID)
	s.line("outcome", fmt.Sprintf("%s at attempt %d, from %s", r.Outcome, r.Attempt, r.Source))
	if r.Error != "" {
		s.line("error", fmt.Sprintf("%s (%s)", r.Error, r.ErrorCode))
	}
	s.line("external id", r.ExternalID)
	s.line("request", string(r.RequestMetadata))
	s.line("response", string(r.ResponseMetadata))
	if r.Reversible {
		s.line("reversible", "yes: gatehouse reverse "+a.ID)
	} else {
		s.line("reversible", "no")
	}
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
