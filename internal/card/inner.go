package card

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"znkr.io/diff"
)

// Stretch is a piece of a value; Differs marks text that the other side does not
// have.
type Stretch struct {
	Text    string
	Differs bool
}

// maxInner is half the limit for the total size, in bytes, of the two texts that Inner compares.
const maxInner = 4 << 10

// Inner compares a text with its replacement: prose by words, anything else
// (an IBAN, an address, an id) by characters. ok is false when they differ so much
// that marks would say nothing, and for texts that are equal, empty or longer than
// 2 × maxInner together. The stretches of each side, joined, are that side.
func Inner(before, after string) (was, is []Stretch, ok bool) {
	if before == after || before == "" || after == "" || len(before)+len(after) > 2*maxInner {
		return nil, nil, false
	}
	x, y := tokensOf(before), tokensOf(after)
	prose := isProse(x) && isProse(y)
	if !prose {
		x, y = charactersOf(before), charactersOf(after)
	}
	if !prose && len(x) == len(y) {
		if was, is, ok := byPlace(x, y); ok {
			return was, is, true
		}
	}
	var kept, all int
	for _, e := range diff.Edits(x, y) {
		switch e.Op {
		case diff.Delete:
			was = stretch(was, e.X, true)
			all += len(e.X)
		case diff.Insert:
			is = stretch(is, e.Y, true)
			all += len(e.Y)
		default:
			was, is = stretch(was, e.X, false), stretch(is, e.X, false)
			kept += 2 * len(e.X)
			all += 2 * len(e.X)
		}
	}
	if 2*kept < all {
		return nil, nil, false
	}
	return closeUp(was), closeUp(is), true
}

// byPlace compares two texts of equal length character by character, so that two
// swapped digits are both marked on both sides; false when too much differs.
func byPlace(x, y []string) (was, is []Stretch, ok bool) {
	n := 0
	for i := range x {
		differs := x[i] != y[i]
		if differs {
			n++
		}
		was, is = stretch(was, x[i], differs), stretch(is, y[i], differs)
	}
	return was, is, 3*n <= len(x)
}

func stretch(list []Stretch, text string, differs bool) []Stretch {
	if n := len(list); n > 0 && list[n-1].Differs == differs {
		list[n-1].Text += text
		return list
	}
	return append(list, Stretch{text, differs})
}

// closeUp joins marks that only one character separates, because people read them as one.
func closeUp(list []Stretch) []Stretch {
	var out []Stretch
	for i, s := range list {
		if !s.Differs && i > 0 && i < len(list)-1 && utf8.RuneCountInString(s.Text) == 1 {
			s.Differs = true
		}
		out = stretch(out, s.Text, s.Differs)
	}
	return out
}

// tokensOf splits a text into words and the spaces between them.
func tokensOf(s string) []string {
	var out []string
	start, space := 0, false
	for i, r := range s {
		if is := unicode.IsSpace(r); i > 0 && (is || space) {
			out = append(out, s[start:i])
			start = i
			space = is
		} else {
			space = is
		}
	}
	return append(out, s[start:])
}

func charactersOf(s string) []string {
	out := make([]string, 0, len(s))
	for i := 0; i < len(s); {
		_, size := utf8.DecodeRuneInString(s[i:])
		out = append(out, s[i:i+size])
		i += size
	}
	return out
}

// isProse reports whether tokens read as prose: at least three words, most of them
// made of letters and punctuation alone.
func isProse(tokens []string) bool {
	words, letters := 0, 0
	for _, t := range tokens {
		if strings.TrimSpace(t) == "" {
			continue
		}
		words++
		if !strings.ContainsFunc(t,
			func(r rune) bool { return !unicode.IsLetter(r) && !strings.ContainsRune(".,;:!?'’-", r) }) {
			letters++
		}
	}
	return words >= 3 && 2*letters > words
}

// DiffSpan is a span, and whether it differs from the other side.
type DiffSpan struct {
	Span
	Differs bool
}

// VisibleWithin is [Visible] for a text in stretches: the whole text decides which
// characters show. A span that does not show as itself differs as a whole when any
// part of it does.
func VisibleWithin(list []Stretch) []DiffSpan {
	var whole strings.Builder
	var ends []int
	for _, s := range list {
		whole.WriteString(s.Text)
		ends = append(ends, whole.Len())
	}
	var out []DiffSpan
	at, i := 0, 0
	for _, span := range Visible(whole.String()) {
		end := at + len(span.Text)
		if span.Kind != SpanPlain && span.Kind != SpanMixed {
			differs := false
			for j := i; j < len(list) && (j == i || ends[j-1] < end); j++ {
				differs = differs || list[j].Differs && ends[j] > at
			}
			out = append(out, DiffSpan{span, differs})
			for at = end; i < len(list) && ends[i] <= at; i++ {
			}
			continue
		}
		from := at
		for at < end {
			for i < len(list) && ends[i] <= at {
				i++
			}
			to := min(end, ends[i])
			out = append(out, DiffSpan{span.part(at-from, to-from), list[i].Differs})
			at = to
		}
		for i < len(list) && ends[i] <= at {
			i++
		}
	}
	return out
}

// WithEdges returns the spans of a value with the spaces at both ends made visible.
func WithEdges(list []DiffSpan) []DiffSpan {
	if len(list) == 0 {
		return list
	}
	var out []DiffSpan
	for i, s := range list {
		lead, inner, trail := "", s.Text, ""
		if s.Kind == SpanPlain {
			if i == 0 {
				lead, _, _ = Edges(inner)
				inner = s.Text[len(lead):]
			}
			if i == len(list)-1 {
				kept := strings.TrimRight(inner, " ")
				inner, trail = kept, inner[len(kept):]
			}
		}
		add := func(text string, space bool) {
			if text == "" && (space || s.Text != "") {
				return
			}
			span := Span{Text: text, Kind: s.Kind, Shown: text, Name: s.Name}
			if s.Kind != SpanPlain {
				span = s.Span
			}
			if space {
				span = Span{
					Text: text, Kind: SpanSpace, Shown: strings.Repeat("␠", len(text)), Name: "space at the edge",
				}
			}
			out = append(out, DiffSpan{span, s.Differs})
		}
		add(lead, true)
		add(inner, false)
		add(trail, true)
	}
	return out
}

// Edges splits off the spaces at both ends of a text, which would not show there.
func Edges(s string) (lead, inner, trail string) {
	inner = strings.TrimLeft(s, " ")
	lead = s[:len(s)-len(inner)]
	trimmed := strings.TrimRight(inner, " ")
	return lead, trimmed, inner[len(trimmed):]
}

// Sides returns the stretches of both sides of a change, nil unless both are texts
// that are alike.
func (c Change) Sides() (was, is []Stretch) {
	if c.Kind != Changed || c.Text != nil || c.Before.Type != String || c.After.Type != String {
		return nil, nil
	}
	if c.Delta != nil && len(c.Before.Text) < 8 {
		return nil, nil // a number: its delta shows the difference
	}
	was, is, _ = Inner(c.Before.Text, c.After.Text)
	return was, is
}

// TypeOnly reports whether a change writes the same text with another JSON type.
func (c Change) TypeOnly() bool {
	return c.Kind == Changed && c.Before.Type != c.After.Type && c.Before.Text == c.After.Text
}

// innerLines compares the lines of a removed run with those of the added run that
// replaces it, when both have the same number of lines, at most 100.
func innerLines(lines []Line) {
	for i := 0; i < len(lines); {
		gone := i
		for i < len(lines) && lines[i].Kind == Minus {
			i++
		}
		come := i
		for i < len(lines) && lines[i].Kind == Plus {
			i++
		}
		if n := come - gone; n > 0 && n == i-come && n <= 100 {
			for j := range n {
				was, is, ok := Inner(lines[gone+j].Text, lines[come+j].Text)
				if ok {
					lines[gone+j].Parts, lines[come+j].Parts = was, is
				}
			}
		}
		if i == gone {
			i++
		}
	}
}

// Group is one line of a table of changes: a field, or a list element that is added
// or removed as a whole, with its fields as Changes.
type Group struct {
	// Element is the name of the list and Number the element's number, from 1; ""
	// and 0 for a field.
	Element string
	Number  int
	Kind    ChangeKind
	Changes []Change
}

// Groups combines the fields of each list element that is added or removed as a
// whole. Every change is in one group.
func Groups(changes []Change) []Group {
	var out []Group
	for _, c := range changes {
		at := elementOf(c)
		if n := len(out); at > 0 && n > 0 && out[n-1].Number > 0 && out[n-1].Kind == c.Kind {
			first := out[n-1].Changes[0]
			if elementOf(first) == at && slices.Equal(first.Steps[:at+1], c.Steps[:at+1]) {
				out[n-1].Changes = append(out[n-1].Changes, c)
				continue
			}
		}
		g := Group{Kind: c.Kind, Changes: []Change{c}}
		if at > 0 {
			g.Element, g.Number = c.Steps[at-1], number(c.Steps[at])+1
		}
		out = append(out, g)
	}
	for i, g := range out {
		if g.Number > 0 {
			slices.SortStableFunc(g.Changes, func(x, y Change) int { return elementOrder(x) - elementOrder(y) })
			out[i].Changes = g.Changes
		}
	}
	return out
}

// elementOf returns the position in Steps of an array index: that of the list element that is added or removed with
// the change; 0 if there is none, or if the element is a single value.
func elementOf(c Change) int {
	if c.Text != nil || c.Context || c.element == len(c.Steps)-1 {
		return 0
	}
	return c.element
}

func isIndex(s string) bool { return s != "" && len(s) < 10 && strings.Trim(s, "0123456789") == "" }

func number(s string) (n int) {
	for _, r := range s {
		n = 10*n + int(r-'0')
	}
	return n
}

// elementOrder returns the rank of a field within its list element: names first,
// then quantities, then amounts of money.
func elementOrder(c Change) int {
	name := strings.ToLower(c.Steps[len(c.Steps)-1])
	switch {
	case slices.Contains([]string{"sku", "id", "name", "item", "product", "title"}, name):
		return 0
	case slices.Contains([]string{"qty", "quantity", "count", "units"}, name):
		return 1
	case isMoney(name):
		return 2
	}
	return 3
}
