package workflow

import (
	"fmt"
	"html"
	"strings"
	"unicode/utf8"

	"github.com/gatehouse-dev/gatehouse"
)

// SVG draws the graph from top to bottom. The page sets the colours: everything
// is in currentColor and has classes (wf-graph, wf-step, wf-<kind>, wf-<state>, wf-line, wf-arrow).
// Sign, word and outline show the state as well. There is no script, no style
// and no external reference.
func (d *Definition) SVG(run *gatehouse.Run) string {
	steps, needs := d.drawn(run), d.direct()
	box := minBox
	for _, s := range steps {
		box = max(box, 24+idWidth*(len(s.ID)+2), 24+charWidth*len(s.does()), 24+charWidth*utf8.RuneCountInString(s.state()))
	}
	box = min(box, maxBox)
	l := arrange(d.Layers(), needs, box)

	var b strings.Builder
	title := d.Name
	if run != nil {
		title += fmt.Sprintf(" v%d, run %s: %s", run.Version, run.ID, run.Status)
	}
	fmt.Fprintf(&b,
		`<svg xmlns="http://www.w3.org/2000/svg" class="wf-graph" role="img" aria-labelledby="wf-%s-title wf-%s-desc" viewBox="0 0 %d %d" width="%d" height="%d" font-family="ui-monospace, monospace" fill="none" stroke="currentColor">`,
		d.Name, d.Name, l.width, l.height, l.width, l.height)
	fmt.Fprintf(&b, "\n<title id=\"wf-%s-title\">%s</title>\n<desc id=\"wf-%s-desc\">%s</desc>\n",
		d.Name, escape(title), d.Name, escape(d.words(steps, needs)))
	for _, row := range l.rows {
		for _, p := range row {
			p.lines(&b)
		}
	}
	for _, row := range l.rows {
		for _, p := range row {
			if p.step != nil {
				p.box(&b, steps[p.step.ID])
			}
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// words describes the graph for readers who cannot see it.
func (d *Definition) words(steps map[string]drawn, needs map[string][]string) string {
	var b strings.Builder
	if d.Description != "" {
		b.WriteString(d.Description + ". ")
	}
	if len(d.Steps) == 1 {
		b.WriteString("1 step.")
	} else {
		fmt.Fprintf(&b, "%d steps.", len(d.Steps))
	}
	for _, s := range d.Steps {
		one := steps[s.ID]
		fmt.Fprintf(&b, " %s: %s", s.ID, one.does())
		if after := needs[s.ID]; len(after) > 0 {
			b.WriteString(" after " + strings.Join(after, ", "))
		}
		if one.word != "" {
			b.WriteString("; " + one.state())
		}
		b.WriteString(".")
	}
	return b.String()
}

func (p *place) lines(b *strings.Builder) {
	for _, above := range p.up {
		x1, y1, x2, y2 := above.middle(), above.y+boxHeight, p.middle(), p.y
		fmt.Fprintf(b, `<path class="wf-line" d="M%d %dC%d %d %d %d %d %d`, x1, y1, x1, y1+rowGap/2, x2, y2-rowGap/2, x2, y2)
		if p.step == nil {
			fmt.Fprintf(b, `V%d"/>`+"\n", y2+boxHeight)
			continue
		}
		b.WriteString("\"/>\n")
	}
	if p.step != nil && len(p.up) > 0 {
		x := p.middle()
		fmt.Fprintf(b, `<path class="wf-arrow" fill="currentColor" stroke="none" d="M%d %dl-4 -7h8z"/>`+"\n", x, p.y)
	}
}

// outline returns the attributes of a state's box.
func outline(status gatehouse.StepStatus) string {
	switch status {
	case gatehouse.StepFailed:
		return ` stroke-width="3"`
	case gatehouse.StepRunning:
		return ` stroke-width="2"`
	case gatehouse.StepWaitingApproval:
		return ` stroke-width="2" stroke-dasharray="6 3"`
	case gatehouse.StepWaiting, gatehouse.StepRetrying:
		return ` stroke-dasharray="6 3"`
	case gatehouse.StepBlocked, gatehouse.StepCanceled:
		return ` stroke-dasharray="2 3"`
	}
	return ""
}

func (p *place) box(b *strings.Builder, s drawn) {
	class := "wf-step wf-" + string(s.Kind)
	if s.status != "" {
		class += " wf-" + strings.ReplaceAll(string(s.status), "_", "-")
	}
	full := s.ID + ": " + s.does()
	if s.word != "" {
		full += "; " + s.state()
	}
	fmt.Fprintf(b, `<g class="%s"><title>%s</title>`, escape(class), escape(full))
	radius := 6
	if s.Kind == KindApproval || s.Kind == KindConnector {
		radius = boxHeight / 2 // steps that pass the gate are round
	}
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" rx="%d"%s/>`, p.x, p.y, p.w, boxHeight, radius,
		outline(s.status))
	head := s.ID
	if s.sign != "" {
		head = s.sign + " " + head
	}
	texts := []string{head, s.does()}
	if s.word != "" {
		texts = append(texts, s.state())
	}
	y := p.y + 25
	if len(texts) > 2 {
		y = p.y + 18
	}
	for i, text := range texts {
		size, width, weight := 11, charWidth, ""
		if i == 0 {
			size, width, weight = 13, idWidth, ` font-weight="600"`
		}
		fmt.Fprintf(b,
			`<text x="%d" y="%d" text-anchor="middle" font-size="%d"%s fill="currentColor" stroke="none">%s</text>`,
			p.middle(), y+i*16, size, weight, escape(short(text, (p.w-16)/width)))
	}
	b.WriteString("</g>\n")
}

func short(s string, limit int) string {
	if r := []rune(s); len(r) > limit {
		return string(r[:limit-1]) + "…"
	}
	return s
}

// escape makes text safe in XML. Line ends, tabs and characters that XML does not
// allow become spaces; the other characters that plainText removes are removed.
func escape(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0xFFFE || r == 0xFFFF || r == utf8.RuneError {
			return ' '
		}
		return r
	}, s)
	return html.EscapeString(plainText(s))
}
