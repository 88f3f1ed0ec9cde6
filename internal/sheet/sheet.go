// Package sheet shows an action or a run in full: on a terminal folded to its width, piped as lines of a label
// and a value.
package sheet

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// New returns a sheet that writes to stdout, folded to the terminal's width.
func New(g *term.IO) *Sheet {
	columns := 0
	if g.TTY {
		columns = g.Columns
	}
	return On(g.Stdout, g.Now, columns, g.Color)
}

// On returns a sheet that writes to w, folded to a number of columns; 0 does not fold.
func On(w io.Writer, now func() time.Time, columns int, color bool) *Sheet {
	return &Sheet{W: w, now: now, columns: columns, color: color}
}

// Sheet writes an action or a run. It writes an action in full: first the server's data, then the
// change, then texts of others. Rationale, comments, notes and the attached diff are behind a bar, so
// that no line of them can pass for a line of the server. Other values from agents follow a label, or
// are indented below a heading.
type Sheet struct {
	W       io.Writer
	now     func() time.Time
	columns int
	color   bool
	// Older is the action that the shown one rebases, nil for none.
	Older *gatehouse.Action
	// Before is the iteration before the one shown, nil for none.
	Before *gatehouse.Action
	// Target is the target of the shown action, as it was read.
	Target Target
	// Preview is the preview of the shown action.
	Preview Preview
}

// LabelWidth is the width of labels on a terminal, in columns.
const LabelWidth = 12

// Line writes a label and a value, with a tab between them when the output is piped.
// An empty value writes nothing.
func (s *Sheet) Line(label, value string) {
	if value == "" {
		return
	}
	s.Raw(label, s.fold(value, LabelWidth+1))
}

// Raw writes a label and a value that is already safe and folded.
func (s *Sheet) Raw(label, value string) {
	if s.columns == 0 {
		fmt.Fprintf(s.W, "%s\t%s\n", label, value)
		return
	}
	fmt.Fprintf(s.W, "%s %s\n", term.Paint(s.color, term.Dim, fmt.Sprintf("%-*s", LabelWidth, label)), value)
}

// fold makes a value safe, and continues it on further lines if it is too long for one.
func (s *Sheet) fold(value string, indent int) string {
	room := 0
	if s.columns > 0 {
		room = max(s.columns-indent, 20)
	}
	return strings.Join(term.SafeLines(term.Safe(value), room), "\n"+strings.Repeat(" ", indent))
}

// When shows a time exactly, and to a person also the distance from now.
func (s *Sheet) When(t time.Time) string {
	exact := t.UTC().Format(time.RFC3339)
	if s.columns == 0 {
		return exact
	}
	return exact + " (" + term.Distance(s.now(), t) + ")"
}

// WhenPtr is When; "" for nil.
func (s *Sheet) WhenPtr(t *time.Time) string {
	if t == nil {
		return ""
	}
	return s.When(*t)
}

// Head begins a section.
func (s *Sheet) Head(title string) {
	fmt.Fprintf(s.W, "\n%s\n", term.Paint(s.color, term.Bold, title))
}

// Timing writes the stages with their people, the reminders, and the effect of the timeout.
func (s *Sheet) Timing(t *gatehouse.Timing, stage int, extended bool) {
	for i, line := range card.StageLines(t, stage) {
		s.Line(fmt.Sprintf("stage %d", i+1), line)
	}
	s.Line("reminders", card.Reminders(t))
	if t.OnTimeout != "" {
		s.Line("at the end", card.Timeout(t, extended))
	}
}

// quote writes a text that somebody else wrote.
func (s *Sheet) quote(text string) {
	room := 0
	if s.columns > 0 {
		room = max(s.columns-4, 20)
	}
	for _, line := range term.SafeLines(text, room) {
		fmt.Fprintf(s.W, "  %s %s\n", term.Paint(s.color, term.Dim, "│"), line)
	}
}

// Item writes an indented line.
func (s *Sheet) Item(text string) {
	fmt.Fprintf(s.W, "  %s\n", s.fold(text, 2))
}

// Action writes the whole action.
func (s *Sheet) Action(a *gatehouse.Action) {
	fmt.Fprintf(s.W, "%s\n\n", term.Paint(s.color, term.Bold, s.fold(s.Target.Sentence(a), 2)))
	s.Facts(a)
	s.targetNow(a)
	s.iteration(a)
	s.edited(a)
	s.moved(a)
	s.change(a)
	s.previewed(a)
	s.Evaluations(a)
	s.Policy(a)
	if a.Rationale != "" {
		s.Head("Rationale, in the words of " + term.Safe(a.ProposedBy))
		s.quote(a.Rationale)
	}
	s.Conversation(a)
	s.Extras(a)
	s.Votes(a)
	s.outcome(a)
}

// Facts writes the state of an action, its proposer, and the times.
func (s *Sheet) Facts(a *gatehouse.Action) {
	s.Line("id", a.ID)
	s.Line("status", statusText(a))
	risk := RiskText(a.RiskLevel, a.RiskName)
	if a.ClaimedRisk != 0 && a.ClaimedRisk != a.RiskLevel {
		risk += fmt.Sprintf(" (the proposer claimed %s)", a.ClaimedRisk)
	}
	s.Line("risk", risk)
	s.Line("type", a.ActionType)
	s.Line("proposed", s.When(a.ProposedAt)+" by "+a.ProposedBy)
	s.Line("on behalf of", a.OnBehalfOf)
	if p := a.Approval; p != nil {
		s.Line("approval", VotesText(p))
		if p.Assignee != nil {
			s.Line("assigned to", p.Assignee.Name)
		}
		if a.Status == gatehouse.StatusPending {
			if v, at := a.HeldRejection(); v != nil {
				s.Line("rejected", "by "+v.Name+"; takes effect "+s.When(at)+", until then it can be undone")
			}
			s.Line("expires", s.When(p.ExpiresAt))
			if about := p.About; about != nil {
				s.Line("about", AboutText(a))
				s.Line("state digest", string(about.StateDigest))
			}
			if m := p.TargetChanged; m != nil {
				text := "changed since the proposal, " + m.By + " said " + s.When(m.At)
				if m.Version != "" {
					text += ": its version is now " + m.Version
				}
				s.Line("target", text)
			}
			s.Timing(&p.Timing, p.Stage, p.Extended)
		}
	}
	if a.DecidedAt != nil {
		s.Line("decided", s.decided(a))
	}
	if a.HoldFor > 0 {
		s.Line("hold", a.HoldFor.String()+" before it is sent")
	}
	s.Line("supersedes", a.Supersedes)
	s.Line("superseded", a.Superseded)
	s.Line("rebased by", a.RebasedBy)
	s.Line("undone by", a.UndoneBy)
	s.Line("canceled by", a.CanceledBy)
	s.Line("edited by", a.EditedBy)
	s.Line("reverses", a.Reverses)
	s.Line("repeats", a.Repeats)
	if f := a.Failure; f != nil {
		s.Line("target said", f.TargetSays)
		s.Line("retry", strings.TrimPrefix(RetryHint(f.Retry), "retry "))
	}
	s.Line("reversed by", a.ReversedBy)
	if a.ArchivedAt != nil {
		s.Line("archived", s.When(*a.ArchivedAt))
	}
	s.Line("key", a.IdempotencyKey)
	// Not folded, so that it can be copied.
	s.Raw("digest", term.Safe(string(a.Digest)))
}

// targetNow writes the target's state, and how it differs from the proposal.
func (s *Sheet) targetNow(a *gatehouse.Action) {
	line, _ := s.Target.Now(a)
	s.Line("target now", line)
	if b, _ := s.Target.Before(a); b.Provenance == card.Differs {
		s.Head("What " + term.Safe(a.ProposedBy) + " says, and what is at the target now")
		for _, c := range b.Moved() {
			s.Item(MovedText(c))
		}
	}
}

func statusText(a *gatehouse.Action) string {
	if a.Failure != nil {
		return fmt.Sprintf("%s: %s (%s)", a.Status, a.Failure.Detail, a.Failure.Code)
	}
	return string(a.Status)
}

// iteration writes the notes of the people who rejected the previous iteration, and the changes since then.
func (s *Sheet) iteration(a *gatehouse.Action) {
	if s.Before == nil {
		return
	}
	n, _ := card.Iteration(a)
	s.Head(fmt.Sprintf("Iteration %d: changes since the previous iteration, which is %s", n, s.Before.Status))
	for _, v := range card.Refusers(s.Before) {
		if v.Notes != "" {
			s.quote(v.Name + ": " + v.Notes)
		}
	}
	list := card.Revised(s.Before, a)
	if len(list) == 0 {
		s.Item("Nothing has changed: this is the same proposal again.")
	}
	for _, c := range list {
		s.Item(MovedText(c))
	}
}

// edited writes the changes of a reviewer to the proposal, and the reason.
func (s *Sheet) edited(a *gatehouse.Action) {
	if a.Edit == nil {
		return
	}
	s.Head("What " + term.Safe(a.EditedBy) + " changed in " + term.Safe(a.ProposedBy) + "'s change (" +
		term.Safe(a.Edit.Of) + ")")
	s.quote(a.Edit.Note)
	for _, f := range a.Edit.Changes {
		s.Item(MovedText(card.Change{
			Steps: gatehouse.SplitPointer(f.Path), Before: card.NewValue(f.Before), After: card.NewValue(f.After),
		}))
	}
}

// moved writes the changes of the target since the older action, which this one rebases, was
// proposed.
func (s *Sheet) moved(a *gatehouse.Action) {
	if s.Older == nil {
		return
	}
	s.Head("Changes of the target since the older action, as the gate read them")
	for _, c := range card.Moved(s.Older, a) {
		s.Item(MovedText(c))
	}
}

// change writes the target, and each field before and after.
func (s *Sheet) change(a *gatehouse.Action) {
	s.Head("Change")
	s.Line("connector", a.Connector+", operation "+a.Operation)
	s.Line("definition", a.Fingerprint)
	s.Line("target", TargetText(a.Target))
	s.Line("version", a.Target.Version)
	for i, ref := range a.Target.EntityRefs {
		s.Line("key "+strconv.Itoa(i+1), ref)
	}
	if m := a.Magnitude; m != nil {
		s.Line("claims", strings.TrimSpace(string(m.Amount)+" "+m.Currency)+" as its magnitude")
	}
	unchanged := card.UnchangedClaim
	if b, _ := s.Target.Before(a); b.Provenance == card.ByTarget {
		unchanged = " (unchanged)"
	}
	for _, c := range fieldChanges(a.CurrentState, a.ProposedChange) {
		text := c.text()
		if !c.changed {
			text += unchanged
		}
		s.Item(text)
	}
	for _, m := range otherFields(a.CurrentState, a.ProposedChange) {
		s.Item(fmt.Sprintf("%s %s (state before the change, not part of it)", m.Name, m.Value))
	}
	if d := a.ArtifactDiff; d != nil {
		title := "Diff (" + term.Safe(d.Type) + ")"
		if d.LinesAdded != nil {
			title += fmt.Sprintf(", %d lines added", *d.LinesAdded)
		}
		if d.LinesRemoved != nil {
			title += fmt.Sprintf(", %d lines removed", *d.LinesRemoved)
		}
		s.Head(title + ", as the proposer gave it")
		s.quote(strings.TrimPrefix(d.Summary+"\n"+d.Text, "\n"))
	}
}

// Evaluated returns the lines about the results of registered evaluators.
func Evaluated(a *gatehouse.Action) (lines []string) {
	if a.Approval == nil {
		return nil
	}
	for _, e := range a.Approval.Evaluated {
		text := e.By + ": " + e.Result
		if e.Result == "pass" {
			text = "✓ " + text
		}
		if e.Score != "" {
			text += ", score " + string(e.Score)
		}
		if e.Text != "" {
			text += ": " + e.Text
		}
		lines = append(lines, text)
	}
	return lines
}

// Evaluations writes the results of registered evaluators, and the proposer's report of its own
// checks.
func (s *Sheet) Evaluations(a *gatehouse.Action) {
	if lines := Evaluated(a); len(lines) > 0 {
		s.Head("Registered evaluators")
		for _, line := range lines {
			s.Item(line)
		}
	}
	if len(a.Evaluations) == 0 {
		return
	}
	s.Head("Evaluations, as the proposer reports them")
	for _, e := range a.Evaluations {
		text := fmt.Sprintf("%s: %s (%s", e.Result, e.Name, e.Kind)
		if e.Confidence != "" {
			text += ", confidence " + string(e.Confidence)
		}
		text += ")"
		if e.Details != "" {
			text += ": " + e.Details
		}
		s.Item(text)
	}
}

// Policy writes the policy's judgement, and the ceilings that apply.
func (s *Sheet) Policy(a *gatehouse.Action) {
	s.Head(fmt.Sprintf("Policy: %s (version %d)", term.Safe(string(a.Policy.Outcome)), a.Policy.Version))
	if len(a.Policy.Rules) > 0 {
		s.Item("rules: " + strings.Join(a.Policy.Rules, ", "))
	}
	for _, reason := range a.Policy.Reasons {
		s.Item(reason)
	}
	for _, c := range a.Ceilings {
		s.Item(fmt.Sprintf("ceiling %s for %s: takes %s of %s per %s", c.Ceiling, c.Scope, c.Amount, c.Limit, c.Window))
	}
	for i := range a.Exceeds {
		s.Item(excessLine(&a.Exceeds[i]))
	}
}

// Extras writes the other data that the proposer sent.
func (s *Sheet) Extras(a *gatehouse.Action) {
	if c := a.Callback; c != nil {
		s.Head("Callback")
		place := cmp.Or(c.URL, c.Subject, c.ExecutionARN, c.TaskTokenHash)
		s.Item(c.Type + " " + place)
	}
	for _, x := range []struct {
		title string
		value gatehouse.JSON
	}{{"Context", a.Context}, {"Metadata", a.Metadata}} {
		if fields, err := x.value.Fields(); err == nil && len(fields) > 0 {
			s.Head(x.title + ", as the proposer gave it")
			for _, f := range fields {
				s.Item(fmt.Sprintf("%s: %s", f.Name, f.Value))
			}
		}
	}
}

// Votes writes the votes.
func (s *Sheet) Votes(a *gatehouse.Action) {
	if a.Approval == nil || len(a.Approval.Votes) == 0 {
		return
	}
	s.Head("Votes")
	for _, v := range a.Approval.Votes {
		who := v.Name
		if v.ForName != "" {
			who += ", for " + v.ForName
		}
		if v.Grant != "" {
			who += ", by " + v.Grant
		}
		s.Item(fmt.Sprintf("%s: %s %s, via %s", who, v.Decision, s.When(v.At), v.Via))
		if v.Notes != "" {
			s.quote(v.Notes)
		}
	}
}

// outcome writes the state of the push.
func (s *Sheet) outcome(a *gatehouse.Action) {
	if p := a.Push; p != nil {
		s.Head("Push")
		s.Line("id", p.ID)
		s.Line("status", fmt.Sprintf("%s after %s", p.Status, term.Count(p.Attempts, "attempt")))
		s.Line("last error", p.LastError)
		s.Line("next attempt", s.WhenPtr(p.NextAttempt))
		s.Line("picked", s.WhenPtr(p.PickedAt))
		s.Line("sent", s.WhenPtr(p.SentAt))
		s.Line("applied", s.WhenPtr(p.AppliedAt))
	}
	r := a.Receipt
	if r == nil {
		return
	}
	s.Head("Receipt")
	s.Line("id", r.ID)
	s.Line("outcome", fmt.Sprintf("%s at attempt %d, from %s", r.Outcome, r.Attempt, r.Source))
	if r.Error != "" {
		s.Line("error", fmt.Sprintf("%s (%s)", r.Error, r.ErrorCode))
	}
	s.Line("external id", r.ExternalID)
	s.Line("request", string(r.RequestMetadata))
	s.Line("response", string(r.ResponseMetadata))
	s.Line("reversible", s.Target.reversible(a))
}

// decided formats the time of a decision, the person, and the channel. An action that ended
// undecided has only a time.
func (s *Sheet) decided(a *gatehouse.Action) string {
	text := s.When(*a.DecidedAt)
	if a.DecidedBy != "" {
		text += " by " + a.DecidedBy
	}
	if a.DecidedVia != "" {
		text += ", via " + string(a.DecidedVia)
	}
	return text
}

// ExternalIDText ends a line about a receipt with the target's id, if it gave one.
func ExternalIDText(id string) string {
	if id == "" {
		return ""
	}
	return ", external id " + id
}
