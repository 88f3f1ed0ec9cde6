package card

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gatehouse-dev/gatehouse"
)

// Limits bound what a view shows; 0 means no limit.
type Limits struct {
	Fields int // fields of the change with the rewritten ones, without the context
	Value  int // characters of one value
	Keys   int // keys of a bulk operation
	Lines  int // lines of the artifact diff, and of one long text
	Total  int // characters of the whole subject: see [Hidden]
}

// Hidden reports whether a view with these limits leaves out any part of the
// decision's subject, and which: it must not offer approval then. The subject is
// the target with its keys, every changed field, before and after, every rewritten
// field, and the artifact diff. The context and unchanged lines may be folded.
func Hidden(a *gatehouse.Action, l Limits) (hidden bool, reasons []string) {
	return hiddenIn(a, Changes(a), l)
}

// hiddenIn is [Hidden] for a caller that already has the changes.
func hiddenIn(a *gatehouse.Action, changes []Change, l Limits) (hidden bool, reasons []string) {
	over := func(n, limit int, what string) {
		if limit > 0 && n > limit {
			reasons = append(reasons, fmt.Sprintf("%s of %s are not shown", thousands(n-limit), counted(n, what)))
		}
	}

	var fields, total, cutValues, cutTexts int
	for _, c := range changes {
		if c.Context {
			continue
		}
		fields++
		n := utf8.RuneCountInString(c.Path)
		text := c.Text
		if text != nil && c.Rewritten() {
			whole := CompareText("", c.After.Text) // no line may be folded
			text = &whole
		}
		if text != nil {
			size, cut := textSize(text, l)
			n, cutValues, cutTexts = n+size, cutValues+cut, cutTexts+tooLong(text.Blocks, l)
		} else {
			values := []Value{c.Before, c.After}
			if c.Common || c.Rewritten() {
				values = values[:1] // the other value is shown once for all records, or is the same
			}
			for _, v := range values {
				size := utf8.RuneCountInString(v.Text)
				n += size
				if l.Value > 0 && size > l.Value {
					cutValues++
				}
			}
		}
		total += n
	}

	over(fields, l.Fields, "field")
	if cutValues > 0 {
		reasons = append(reasons, counted(cutValues, "value")+" would be cut")
	}
	if cutTexts > 0 {
		reasons = append(reasons, counted(cutTexts, "long text")+" would be cut")
	}

	over(len(a.Target.EntityRefs), l.Keys, "key")
	if l.Value > 0 &&
		slices.ContainsFunc(append([]string{a.Target.EntityRef}, a.Target.EntityRefs...), func(ref string) bool {
			return utf8.RuneCountInString(ref) > l.Value
		}) {
		reasons = append(reasons, "the name of a target would be cut")
	}
	total += utf8.RuneCountInString(a.Target.EntityRef) + utf8.RuneCountInString(strings.Join(a.Target.EntityRefs, ""))

	if d := a.ArtifactDiff; d != nil {
		total += utf8.RuneCountInString(d.Text)
		over(len(splitLines(d.Text)), l.Lines, "line")
		if l.Value > 0 {
			for _, line := range splitLines(d.Text) {
				if utf8.RuneCountInString(line) > l.Value {
					reasons = append(reasons, "a line of the diff would be cut")
					break
				}
			}
		}
	}

	if l.Total > 0 && total > l.Total {
		reasons = append(reasons,
			fmt.Sprintf("%s are more than the %s that are shown", counted(total, "character"), thousands(l.Total)))
	}
	return len(reasons) > 0, reasons
}

// textSize counts the characters of a text's shown lines, and the lines that would
// be cut.
func textSize(t *Text, l Limits) (n, cut int) {
	for _, b := range t.Blocks {
		if b.Folded {
			continue
		}
		for _, line := range b.Lines {
			size := utf8.RuneCountInString(line.Text)
			n += size
			if l.Value > 0 && size > l.Value {
				cut++
			}
		}
	}
	return n, cut
}

// tooLong returns 1 when the blocks show more lines than the limit, else 0.
func tooLong(blocks []Block, l Limits) int {
	n := 0
	for _, b := range blocks {
		if !b.Folded {
			n += len(b.Lines)
		}
	}
	if l.Lines > 0 && n > l.Lines {
		return 1
	}
	return 0
}
