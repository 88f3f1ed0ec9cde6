package sheet

import (
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// Preview is the preview of a pending action. Answer is nil if there is none; Why is then the reason
// why the target did not answer, "" if it was not asked.
type Preview struct {
	Answer *gatehouse.Preview
	Why    string
}

// AskPreview requests the preview of an action, if there can be one. After an error with code busy,
// the result has only Why; after any other error, for example when the caller may not ask, the
// result is empty.
func AskPreview(a *gatehouse.Action, ask func(id string) (*gatehouse.Preview, error)) Preview {
	if !a.CanPreview {
		return Preview{}
	}
	p, err := ask(a.ID)
	if gatehouse.CodeOf(err) == gatehouse.CodeBusy {
		return Preview{Why: err.Error()}
	}
	if err != nil {
		return Preview{}
	}
	return Preview{Answer: p}
}

// PreviewLine is one line of a preview; Bad marks a difference from the proposal.
type PreviewLine struct {
	Text string
	// Quote is set for a text that the target wrote.
	Quote, Bad bool
}

// Lines describes the preview; none when there is nothing to say. If the preview matches the
// proposal, the fields are left out, since the change itself is shown.
func (p Preview) Lines(a *gatehouse.Action, now time.Time) (list []PreviewLine) {
	add := func(bad bool, text string) {
		if text != "" {
			list = append(list, PreviewLine{Text: text, Bad: bad})
		}
	}
	if p.Why != "" {
		add(false, "not known: "+p.Why)
		return list
	}
	d, ok := card.DescribePreview(a.Connector, p.Answer, card.UndoText(a, now))
	if !ok {
		return nil
	}
	add(d.Bad, d.Summary)
	add(d.Bad, d.Detail)
	if d.Quote != "" {
		list = append(list, PreviewLine{Text: d.Quote, Quote: true})
	}
	if !d.Bad {
		d.Fields = nil
	}
	for _, f := range d.Fields {
		text := term.Safe(f.Name) + " " + previewValue(f.Before) + " → " + previewValue(f.After)
		if f.Proposed.Type != card.Absent {
			text += " (proposed: " + previewValue(f.Proposed) + ")"
		} else if f.Note != "" {
			text += " (" + f.Note + ")"
		}
		add(f.Bad, text)
	}
	add(false, d.More)
	add(false, d.Undo)
	return list
}

func previewValue(v card.Value) string {
	if v.Type == card.Absent {
		return "(none)"
	}
	return term.Safe(string(v.JSON))
}

// Undo describes whether the change could be undone, if [Preview.Lines] does not; "" otherwise.
func (p Preview) Undo(a *gatehouse.Action, now time.Time) string {
	if p.Answer != nil && p.Answer.None == "" {
		return ""
	}
	return card.UndoText(a, now)
}

// previewed writes the preview.
func (s *Sheet) previewed(a *gatehouse.Action) {
	lines := s.Preview.Lines(a, s.now())
	s.Line("undo", s.Preview.Undo(a, s.now()))
	if len(lines) == 0 {
		return
	}
	title := "What " + term.Safe(a.Connector) + " would do"
	if p := s.Preview.Answer; p != nil {
		title += ", asked " + s.When(p.AskedAt)
	}
	s.Head(title)
	for _, l := range lines {
		switch {
		case l.Quote:
			s.quote(l.Text)
		case l.Bad:
			s.Item("! " + l.Text)
		default:
			s.Item(l.Text)
		}
	}
}
