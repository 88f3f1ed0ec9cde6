package card

import (
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// Preview is a preview in words. Texts from the target are raw: see [Visible].
type Preview struct {
	// Summary is the result in one line: "1 record would change, as proposed".
	Summary string
	// Bad is true when the result is not what was proposed.
	Bad bool
	// Detail is the reason for the target's refusal, Quote the target's own text, "" for none.
	Detail, Quote string
	Fields        []PreviewField
	// More and Undo are sentences, "" for none.
	More, Undo string
	// Lasting is true when the change cannot be undone.
	Lasting bool
}

// PreviewField is a field that would change.
type PreviewField struct {
	Name          string
	Before, After Value
	// Note says how the value differs from the proposal; "" when it does not.
	Note string
	// Proposed is the proposed value, if After differs from it.
	Proposed Value
	Bad      bool
}

// DescribePreview puts a preview into words; false when there is none. undo is the action's
// [UndoText]. Where the target's preview contradicts it, the preview counts; a failed preview has no
// Undo.
func DescribePreview(connector string, p *gatehouse.Preview, undo string) (out Preview, ok bool) {
	if p == nil || p.None != "" {
		return out, false
	}
	also := 0
	for _, c := range p.Changes {
		f := PreviewField{Name: previewName(c), Before: NewValue(c.Before), After: NewValue(c.After),
			Proposed: NewValue(c.Proposed)}
		switch c.How {
		case gatehouse.PreviewDiffers:
			f.Bad, f.Note = true, "proposed"
		case gatehouse.PreviewAlso:
			also++
			f.Bad, f.Note = true, "not in the proposal"
		}
		out.Fields = append(out.Fields, f)
	}
	if p.More > 0 {
		out.More = "And " + counted(p.More, "more field") + "."
	}
	switch f := p.Failure; {
	case f != nil:
		out.Summary, out.Bad, out.Detail, out.Quote = connector+" would refuse this", true, f.Detail, f.TargetSays
		if strings.Contains(f.Detail, f.TargetSays) {
			out.Quote = ""
		}
	case p.Differs:
		out.Summary, out.Bad = previewRows(p)+", but not as proposed", true
	case also > 0:
		out.Summary, out.Bad = previewRows(p)+", with "+counted(also, "field")+" that the proposal does not name", true
	default:
		out.Summary = previewRows(p) + ", as proposed"
	}
	switch u := p.Undo; {
	case p.Failure != nil:
	case u != nil && !u.Possible:
		out.Undo, out.Lasting = "Cannot be undone: "+u.Why+".", true
	case u != nil && (undo == "" || SaysIrreversible(undo)):
		out.Undo = "Can be undone."
	default:
		out.Undo, out.Lasting = undo, SaysIrreversible(undo)
	}
	return out, true
}

func previewRows(p *gatehouse.Preview) string {
	if p.Rows == 0 {
		return "The change would be made"
	}
	return counted(p.Rows, "record") + " would change"
}

// previewName is the name of a field: its steps, after the record's name in a bulk operation.
func previewName(c gatehouse.PreviewChange) string {
	name := strings.Join(gatehouse.SplitPointer(c.Path), "/")
	if c.Ref != "" {
		return c.Ref + ": " + name
	}
	return name
}
