package mcp

import (
	"context"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// maxEdited bounds the text about an edit for a model, in bytes.
const maxEdited = 8 << 10

// last follows the replacements of an action, and returns the newest one.
func last(ctx context.Context, gate Gate, a *gatehouse.Action) (*gatehouse.Action, error) {
	for a.Status == gatehouse.StatusSuperseded && a.Superseded != "" {
		var err error
		if a, err = gate.FindAction(ctx, a.Superseded); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// editText tells a model what a reviewer changed in its call, and why; "" without an
// edit. It ends with all arguments that are valid now, as far as they fit.
func editText(a *gatehouse.Action) string {
	if a.Edit == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString("A reviewer, " + a.EditedBy + ", changed the arguments of this call. Reason: " +
		clip(a.Edit.Note, maxEdited/4) + "\nChanged:")
	for _, f := range a.Edit.Changes {
		b.WriteString("\n  " + f.Path + " from " + side(f.Before) + " to " + side(f.After))
		if b.Len() > maxEdited/2 {
			b.WriteString("\n  and more")
			break
		}
	}
	b.WriteString("\nThe arguments that are valid now: " + string(a.ProposedChange))
	return clip(b.String(), maxEdited) + "\n"
}

func side(value gatehouse.JSON) string {
	if value == "" {
		return "nothing"
	}
	return string(value)
}

// withEdit inserts a reviewer's changes before the content of a server's result. The
// rest of the result stays as the server wrote it.
func withEdit(result []byte, a *gatehouse.Action) []byte {
	edit := editText(a)
	if edit == "" {
		return result
	}
	content := []byte("[" + string(gatehouse.ObjectJSON(
		gatehouse.Member{Name: "type", Value: `"text"`},
		gatehouse.Member{Name: "text", Value: gatehouse.StringJSON(edit)},
	)))
	if given := memberOf(result, "content"); len(given) > 0 && given[0] == '[' {
		for _, block := range elements(given) {
			content = append(append(content, ','), block...)
		}
	}
	return setMember(result, "content", append(content, ']'))
}
