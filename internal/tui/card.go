package tui

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/sheet"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// page is a card as terminal lines, which are safe and fit the width. Nothing is cut: the person
// scrolls to the rest.
type page struct {
	lines []string
	// payload is the number of lines up to the end of the content that is decided on.
	payload int
	// hunks are the lines at which changes begin.
	hunks []int
}

// view has a person's settings for a card.
type view struct {
	width  int
	color  bool
	why    bool // with the policy's judgement
	whole  bool // with unchanged content
	silent bool // without the votes of others
	now    time.Time
	// answersFor names the people for whom the person decides by delegation; empty if the action asks the person.
	answersFor []string
	// target is the action's target, as read.
	target sheet.Target
	// preview is what the target would do.
	preview sheet.Preview
	// commentsErr is the reason why the comments on the action could not be read.
	commentsErr error
}

// pager writes the lines of a page.
type pager struct {
	page
	view
}

// cardPage lays an action out.
func cardPage(a *gatehouse.Action, v view) page {
	p := &pager{view: v}
	p.text(term.Bold, v.target.Sentence(a))
	if len(v.answersFor) > 0 {
		p.text(term.Yellow, "You answer for "+strings.Join(v.answersFor, ", ")+".")
	}
	p.text("", "")
	p.targetNow(a)
	p.change(a)
	p.artifact(a)
	p.payload = len(p.lines)
	if p.addPreview(a) {
		p.payload = len(p.lines) // must be seen before an approval, like the change
	}
	p.evaluations(a)
	if v.why {
		p.policy(a)
	}
	if a.Rationale != "" {
		p.head("Rationale, in the words of " + a.ProposedBy)
		p.quote(a.Rationale)
	}
	p.conversation(a)
	p.facts(a)
	p.votes(a)
	return p.page
}

// targetNow adds the target's present state.
func (p *pager) targetNow(a *gatehouse.Action) {
	line, bad := p.target.Now(a)
	if line == "" {
		return
	}
	style := term.Dim
	if bad {
		style = term.Yellow
	}
	p.indented(style, "  ", "target "+line)
	b, _ := p.target.Before(a)
	for _, c := range b.Moved() {
		p.hunk()
		p.indented(term.Yellow, "  ! ", sheet.MovedText(c))
	}
}

// addPreview adds the target's preview, and reports whether it differs from the proposal.
func (p *pager) addPreview(a *gatehouse.Action) (bad bool) {
	if undo := p.preview.Undo(a, p.now); undo != "" {
		p.indented("", "  ", undo)
	}
	lines := p.preview.Lines(a, p.now)
	if len(lines) == 0 {
		return false
	}
	title := "What " + a.Connector + " would do"
	if asked := p.preview.Answer; asked != nil {
		title += ", asked " + term.Distance(p.now, asked.AskedAt)
	}
	p.head(title)
	for _, l := range lines {
		switch {
		case l.Quote:
			p.quote(l.Text)
		case l.Bad:
			p.hunk()
			p.indented(term.Yellow, "  ! ", l.Text)
		default:
			p.indented("", "    ", l.Text)
		}
		bad = bad || l.Bad
	}
	return bad
}

// text adds a text of one line, wrapped to the width.
func (p *pager) text(style, s string) { p.indented(style, "", s) }

// indented adds a text of one line after a lead, and wraps it with the indent of the lead.
func (p *pager) indented(style, lead, s string) {
	indent := term.ColumnsOf(lead)
	if indent > p.width/2 {
		indent = 2 // a narrow terminal
	}
	// Text from others has no line ends after term.Safe.
	rest := term.Safe(s)
	first := lead
	for {
		room := max(p.width-term.ColumnsOf(first), 2)
		part := rest
		if term.ColumnsOf(rest) > room {
			part = term.CutAtWord(rest, room)
		}
		p.lines = append(p.lines, first+term.Paint(p.color, style, part))
		if rest = rest[len(part):]; rest == "" {
			return
		}
		first = strings.Repeat(" ", indent)
	}
}

func (p *pager) head(title string) {
	p.lines = append(p.lines, "")
	p.text(term.Bold, title)
}

// quote adds another person's text, behind a bar.
func (p *pager) quote(s string) {
	for _, line := range term.SafeLines(s, max(p.width-4, 8)) {
		p.lines = append(p.lines, "  "+term.Paint(p.color, term.Dim, "│")+" "+line)
	}
}

// hunk marks the next line as the first of a change.
func (p *pager) hunk() { p.hunks = append(p.hunks, len(p.lines)) }

// change adds the target and every field before and after. It folds a rewritten field only if the
// target was read: otherwise the value before is only a claim.
func (p *pager) change(a *gatehouse.Action) {
	before, _ := p.target.Before(a)
	a = before.Shown
	folded := 0
	for _, c := range card.Changes(a) {
		if c.Rewritten() && before.Provenance == card.ByProposer {
			p.hunk()
			p.indented(term.Yellow, "  = ",
				fieldName(c)+" set to "+string(c.After.JSON)+card.UnchangedClaim)
			continue
		}
		if c.Kind == card.Same {
			if !p.whole {
				folded++
				continue
			}
			p.indented(term.Dim, "    ", c.Path+" "+string(c.Before.JSON)+" (unchanged)")
			continue
		}
		p.hunk()
		p.field(c)
	}
	if folded > 0 {
		p.indented(term.Dim, "    ", fmt.Sprintf("… %s unchanged; enter shows them", isOrAre(folded, "field")))
	}
	if n := len(a.Target.EntityRefs); n > 0 {
		p.hunk()
		p.text(term.Bold, fmt.Sprintf("%d keys of %s", n, a.Target.EntityType))
		keys := make([]string, n)
		for i, ref := range a.Target.EntityRefs {
			keys[i] = term.Safe(ref)
		}
		p.indented("", "  ", strings.Join(keys, ", "))
	} else {
		p.indented("", "  ", "in "+a.Connector+": "+a.Operation+" "+sheet.TargetText(a.Target)+versionText(a.Target))
	}
	if about := sheet.AboutText(a); about != "" {
		p.indented("", "  ", "about "+about)
	}
	amounts := card.Amounts(a)
	if claim := card.Claim(a, amounts); claim != "" {
		for _, x := range amounts {
			p.indented("", "  ", "amount "+x.String())
		}
		p.indented(term.Yellow, "  ", "the agent claims "+claim)
	}
}

func versionText(t gatehouse.Target) string {
	if t.Version == "" {
		return ""
	}
	return ", version " + t.Version
}

func fieldName(c card.Change) string { return strings.TrimPrefix(c.Path, "/") }

// field adds one field that changes.
func (p *pager) field(c card.Change) {
	name := fieldName(c)
	if c.Text != nil {
		p.indented(term.Bold, "  ", fmt.Sprintf("%s: +%d -%d lines", name, c.Text.Added, c.Text.Removed))
		p.blocks(c.Text.Blocks)
		return
	}
	if c.Common {
		p.minus(name + " " + string(c.Before.JSON))
		return
	}
	switch c.Kind {
	case card.Added:
		p.plus(name + " " + string(c.After.JSON))
	case card.Removed:
		p.minus(name + " " + string(c.Before.JSON))
	default:
		text := fmt.Sprintf("%s %s → %s", name, c.Before.JSON, c.After.JSON)
		if c.Delta != nil {
			text += " (" + c.Delta.String() + ")"
		}
		p.indented(term.Yellow, "  ~ ", text)
	}
}

func (p *pager) plus(s string)  { p.indented(term.Green, "  + ", s) }
func (p *pager) minus(s string) { p.indented(term.Red, "  - ", s) }

// blocks adds the lines of a comparison.
func (p *pager) blocks(blocks []card.Block) {
	inside := false
	for _, b := range blocks {
		if b.Folded && !p.whole {
			p.indented(term.Dim, "    ", fmt.Sprintf("… %s unchanged; enter shows them",
				isOrAre(len(b.Lines), "line")))
			inside = false
			continue
		}
		for _, l := range b.Lines {
			changed := l.Kind == card.Plus || l.Kind == card.Minus
			if changed && !inside {
				p.hunk()
			}
			inside = changed
			switch l.Kind {
			case card.Plus:
				p.plus(l.Text)
			case card.Minus:
				p.minus(l.Text)
			case card.Header:
				p.indented(term.Dim, "  ", l.Text)
			default:
				p.indented("", "    ", l.Text)
			}
			if l.Open && changed {
				p.indented(term.Dim, "    ", "(no newline at the end)")
			}
		}
	}
}

// artifact adds the diff that the proposer sent.
func (p *pager) artifact(a *gatehouse.Action) {
	d := card.ParseArtifact(a.ArtifactDiff)
	if d == nil {
		return
	}
	p.head("Diff (" + a.ArtifactDiff.Type + "), as the proposer gave it")
	if a.ArtifactDiff.Summary != "" {
		p.quote(a.ArtifactDiff.Summary)
	}
	if d.Plain != "" {
		p.text(term.Dim, "not a unified diff: "+d.Plain)
		p.hunk()
	}
	if d.Claim != "" {
		p.text(term.Yellow, d.Claim)
	}
	p.blocks(d.Blocks)
}

// sheet writes with the functions of "gatehouse show", wrapped to the width.
func (p *pager) sheet(write func(s *sheet.Sheet)) {
	var b bytes.Buffer
	// The sheet's columns are wider than a narrow terminal, so its lines are wrapped again.
	write(sheet.On(&b, func() time.Time { return p.now }, max(p.width, 40), p.color && p.width >= 40))
	for line := range strings.SplitSeq(strings.TrimSuffix(b.String(), "\n"), "\n") {
		if p.width < 40 {
			p.indented("", "", line)
			continue
		}
		p.lines = append(p.lines, line)
	}
}

func (p *pager) evaluations(a *gatehouse.Action) {
	if len(a.Evaluations) > 0 || len(sheet.Evaluated(a)) > 0 {
		p.sheet(func(s *sheet.Sheet) { s.Evaluations(a) })
	}
}

func (p *pager) policy(a *gatehouse.Action) {
	p.sheet(func(s *sheet.Sheet) { s.Policy(a) })
}

func (p *pager) facts(a *gatehouse.Action) {
	p.lines = append(p.lines, "")
	p.sheet(func(s *sheet.Sheet) {
		s.Facts(a)
		s.Line("definition", a.Fingerprint)
		s.Extras(a)
	})
}

func (p *pager) votes(a *gatehouse.Action) {
	if a.Approval == nil || len(a.Approval.Votes) == 0 || p.silent {
		return
	}
	p.sheet(func(s *sheet.Sheet) { s.Votes(a) })
}
