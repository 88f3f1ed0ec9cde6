package card

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// Artifact is a proposal's text diff, as its proposer gave it. The lines of its
// blocks, as [Line.Raw] returns them, make up the whole text: nothing is left out.
type Artifact struct {
	Blocks []Block
	// Plain is the reason why the text is not a unified diff; "" for a unified diff.
	// A text that is not a unified diff is shown unchanged, as lines of kind Plain.
	Plain string
	// Added and Removed count the lines, 0 when Plain.
	Added, Removed int
	// Claim says how the proposer's own counts differ from these; "" when they
	// agree, or when there is nothing to compare.
	Claim string
}

// ParseArtifact reads the text of an artifact diff; nil when there is none.
func ParseArtifact(d *gatehouse.ArtifactDiff) *Artifact {
	if d == nil {
		return nil
	}
	a := ParseUnified(d.Text)
	if a.Plain != "" {
		return &a
	}
	for _, c := range []struct {
		claimed *int
		counted int
		what    string
	}{{d.LinesAdded, a.Added, "added"}, {d.LinesRemoved, a.Removed, "removed"}} {
		if c.claimed != nil && *c.claimed != c.counted {
			if a.Claim != "" {
				a.Claim += "; "
			}
			a.Claim += fmt.Sprintf("the proposer says %s %s, there are %s", counted(*c.claimed, "line"), c.what,
				thousands(c.counted))
		}
	}
	return &a
}

// ParseUnified reads a unified diff, as diff -u and git write it, strictly: the counts of each hunk
// must be right, and a line between the hunks that looks like a change is an error. A text that is
// not such a diff is shown as plain text, so that no change can hide in what looks like a comment.
func ParseUnified(text string) Artifact {
	p := unified{lines: splitLines(text)}
	if err := p.parse(); err != "" {
		return plainArtifact(p.lines, err)
	}
	return p.out
}

func plainArtifact(raw []string, why string) Artifact {
	a := Artifact{Plain: why}
	if len(raw) == 0 {
		return a
	}
	lines := make([]Line, len(raw))
	for i, l := range raw {
		lines[i] = newLine(Plain, l)
	}
	a.Blocks = []Block{{Lines: lines}}
	return a
}

func newLine(kind LineKind, raw string) Line {
	text, ended := strings.CutSuffix(raw, "\n")
	return Line{Kind: kind, Text: text, Open: !ended}
}

// Raw returns the line as it is in the diff, without its line feed.
func (l Line) Raw() string {
	switch l.Kind {
	case Plus:
		return "+" + l.Text
	case Minus:
		return "-" + l.Text
	case Context:
		return " " + l.Text
	}
	return l.Text
}

// unified parses one diff.
type unified struct {
	lines []string
	pos   int
	out   Artifact
	block []Line
}

func (p *unified) add(l Line) { p.block = append(p.block, l) }

func (p *unified) flush() {
	if len(p.block) > 0 {
		p.out.Blocks = append(p.out.Blocks, Block{Lines: p.block})
		p.block = nil
	}
}

// parse returns the error, "" for none.
func (p *unified) parse() string {
	hunks := 0
	for p.pos < len(p.lines) {
		raw := p.lines[p.pos]
		switch {
		case strings.HasPrefix(raw, "@@"):
			p.flush()
			if why := p.hunk(); why != "" {
				return why
			}
			hunks++
		case p.fileHeader():
			p.flush()
			p.add(newLine(Header, raw))
			p.add(newLine(Header, p.lines[p.pos+1]))
			p.pos += 2
		case strings.HasPrefix(raw, "+"), strings.HasPrefix(raw, "-"), strings.HasPrefix(raw, " ") && hunks > 0:
			return fmt.Sprintf("line %d looks like a change, but is in no hunk", p.pos+1)
		default:
			p.add(newLine(Header, raw))
			p.pos++
		}
	}
	p.flush()
	if hunks == 0 {
		return "there is no hunk"
	}
	return ""
}

// fileHeader reports whether the two lines at pos name the files, and a hunk
// follows.
func (p *unified) fileHeader() bool {
	return p.pos+2 < len(p.lines) && strings.HasPrefix(p.lines[p.pos], "--- ") &&
		strings.HasPrefix(p.lines[p.pos+1], "+++ ") &&
		strings.HasPrefix(p.lines[p.pos+2], "@@")
}

// hunk reads one hunk with its header. It returns the error, "" for none.
func (p *unified) hunk() string {
	at := p.pos + 1
	h, ok := parseHead(strings.TrimSuffix(p.lines[p.pos], "\n"))
	if !ok {
		return fmt.Sprintf("line %d is not a hunk header", at)
	}
	p.add(newLine(Header, p.lines[p.pos]))
	p.pos++

	before, after := h.before, h.after
	for h.olds > 0 || h.news > 0 {
		if p.pos >= len(p.lines) {
			return fmt.Sprintf("the hunk at line %d ends too early", at)
		}
		raw := p.lines[p.pos]
		p.pos++
		var l Line
		switch raw[0] {
		case ' ':
			l = newLine(Context, raw[1:])
			l.Before, l.After = before, after
		case '-':
			l = newLine(Minus, raw[1:])
			l.Before = before
			p.out.Removed++
		case '+':
			l = newLine(Plus, raw[1:])
			l.After = after
			p.out.Added++
		case '\\':
			p.add(newLine(Header, raw))
			continue
		default:
			return fmt.Sprintf("line %d does not begin with a space, +, - or \\", p.pos)
		}
		if l.Kind != Plus {
			before++
			h.olds--
		}
		if l.Kind != Minus {
			after++
			h.news--
		}
		if h.olds < 0 || h.news < 0 {
			return fmt.Sprintf("the hunk at line %d has more lines than it says", at)
		}
		p.add(l)
	}

	if p.pos < len(p.lines) && strings.HasPrefix(p.lines[p.pos], `\`) {
		p.add(newLine(Header, p.lines[p.pos]))
		p.pos++
	}
	p.flush()
	return ""
}

// head is the header of a hunk: the line numbers where it begins, and its numbers
// of lines.
type head struct{ before, olds, after, news int }

// parseHead reads "@@ -1,3 +1,4 @@ anything".
func parseHead(s string) (h head, ok bool) {
	rest, ok := strings.CutPrefix(s, "@@ -")
	if !ok {
		return h, false
	}
	ranges, _, ok := strings.Cut(rest, " @@")
	if !ok {
		return h, false
	}
	olds, news, ok := strings.Cut(ranges, " +")
	if !ok {
		return h, false
	}
	var okOld, okNew bool
	h.before, h.olds, okOld = parseRange(olds)
	h.after, h.news, okNew = parseRange(news)
	return h, okOld && okNew && h.olds+h.news > 0
}

// parseRange reads "12,3", or "12" for one line.
func parseRange(s string) (start, count int, ok bool) {
	a, b, both := strings.Cut(s, ",")
	start, ok = parseCount(a)
	if !ok || !both {
		return start, 1, ok
	}
	count, ok = parseCount(b)
	return start, count, ok
}

func parseCount(s string) (int, bool) {
	if s == "" || len(s) > 9 || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}
