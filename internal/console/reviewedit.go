package console

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

// maxEditFields limits the form that edits field by field; a larger change is edited as JSON.
const maxEditFields = 150

// reviewEdit is the form in which a reviewer edits a change, field by field or as JSON.
type reviewEdit struct {
	a      *gatehouse.Action
	fields []editField // empty: the whole change as JSON
	// change is the whole change, typed as JSON or assembled from the fields.
	change, note, once string
	outcome            *gatehouse.Error
	// tried is the preview of the revision, nil when there was no preview or it was refused.
	tried *gatehouse.Action
	// correcting is set when a failed action is corrected.
	correcting bool
	// ownToo is set when the person may instead propose a change of their own.
	ownToo bool
}

// editField is a leaf of the change.
type editField struct {
	// name is the input's name in the form: "field-" and the position of the leaf. The digest in the form
	// prevents the name from referring to a leaf of another revision.
	name, path    string
	steps         []string
	before, agent card.Value
	// kind is text, lines, number, bool or json; typed is the text in the form.
	kind, typed string
}

func (f editField) label() string { return fieldName(card.Change{Path: f.path, Steps: f.steps}) }

// changed reports whether the typed text differs from the agent's value.
func (f editField) changed() bool { return asPosted(f.typed) != asPosted(f.text()) }

// text is the agent's value as text for the form.
func (f editField) text() string {
	if f.kind == "json" {
		return string(f.agent.JSON)
	}
	return f.agent.Text
}

// asPosted removes what a form does not keep: the kind of line break, and a leading line break.
func asPosted(s string) string {
	return strings.TrimPrefix(strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n"), "\n")
}

// value parses the typed text as a value of the agent's type.
func (f editField) value() (gatehouse.JSON, error) {
	switch {
	case !f.changed():
		return f.agent.JSON, nil
	case f.kind == "text", f.kind == "lines":
		return gatehouse.StringJSON(f.typed), nil
	}
	j, err := gatehouse.Canonicalize([]byte(f.typed))
	if err != nil {
		return "", gatehouse.E(gatehouse.CodeInvalid, "is not JSON: %v", err)
	}
	if _, number := j.Number(); f.kind == "number" && !number {
		return "", gatehouse.E(gatehouse.CodeInvalid, "must be a number, such as 12.50")
	}
	if f.kind == "bool" && j != "true" && j != "false" {
		return "", gatehouse.E(gatehouse.CodeInvalid, "must be true or false")
	}
	return j, nil
}

// mapLeaves replaces each leaf of a value. A leaf is anything but a non-empty object or array.
func mapLeaves(
	j gatehouse.JSON, steps []string, fn func(steps []string, leaf gatehouse.JSON) gatehouse.JSON,
) gatehouse.JSON {
	under := func(step string) []string { return append(steps[:len(steps):len(steps)], step) }
	if members, err := j.Fields(); err == nil && len(members) > 0 {
		for i, m := range members {
			members[i].Value = mapLeaves(m.Value, under(m.Name), fn)
		}
		return gatehouse.ObjectJSON(members...)
	}
	if elements, err := j.Elements(); err == nil && len(elements) > 0 {
		for i, e := range elements {
			elements[i] = mapLeaves(e, under(strconv.Itoa(i)), fn)
		}
		return gatehouse.ArrayJSON(elements...)
	}
	return fn(steps, j)
}

// newReviewEdit is the form with the action's present values.
func (v *view) newReviewEdit(a *gatehouse.Action) *reviewEdit {
	e := &reviewEdit{
		a: a, change: pretty(a.ProposedChange), once: v.requestID, ownToo: v.has(gatehouse.RoleProposer),
		correcting: v.corrects(a),
	}
	e.ownToo = e.ownToo && !e.correcting
	before := make(map[string]gatehouse.JSON)
	mapLeaves(a.CurrentState, nil, func(steps []string, leaf gatehouse.JSON) gatehouse.JSON {
		before[gatehouse.JoinPointer(steps...)] = leaf
		return leaf
	})
	mapLeaves(a.ProposedChange, nil, func(steps []string, leaf gatehouse.JSON) gatehouse.JSON {
		f := editField{
			name:  "field-" + strconv.Itoa(len(e.fields)),
			path:  gatehouse.JoinPointer(steps...),
			steps: steps,
			agent: card.NewValue(leaf),
		}
		f.before, f.kind = card.NewValue(before[f.path]), kindOf(f.agent)
		f.typed = f.text()
		e.fields = append(e.fields, f)
		return leaf
	})
	if len(e.fields) > maxEditFields || a.ProposedChange == "{}" {
		e.fields = nil
	}
	return e
}

func kindOf(x card.Value) string {
	switch {
	case x.Type == card.Number:
		return "number"
	case x.Type == card.Bool:
		return "bool"
	case x.Type != card.String,
		strings.ContainsFunc(x.Text, func(r rune) bool { return r < ' ' && !strings.ContainsRune("\n\r\t", r) }):
		return "json"
	case len(x.Text) > 80, slices.ContainsFunc(card.Visible(x.Text), func(s card.Span) bool {
		return s.Hostile() || s.Kind == card.SpanNewline
	}):
		return "lines"
	}
	return "text"
}

// mayEdit reports whether the person may edit a pending action as its reviewer.
func (v *view) mayEdit(a *gatehouse.Action) bool {
	return awaits(a) && gate.MayEdit(a, v.person, v.now) == nil
}

// corrects reports whether the person may correct a failed action.
func (v *view) corrects(a *gatehouse.Action) bool {
	return v.has(gatehouse.RoleOperator) && gate.Correctable(a)
}

// reviewEdit previews or stores a reviewer's edit. The parameter do is check, save or approve.
func (c *Console) reviewEdit(v *view) error {
	if err := v.parse(); err != nil {
		return err
	}
	a, err := c.cfg.Actions.FindAction(v.ctx, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	e := v.newReviewEdit(a)
	e.note, e.once = strings.TrimSpace(v.form("note")), v.form("once")
	do := v.form("do")
	request := gatehouse.EditRequest{
		Digest: gatehouse.Digest(v.form("digest")), Note: e.note,
		Approve: do == "approve", DryRun: do != "save" && do != "approve",
	}
	if request.ProposedChange, err = e.read(v); err == nil {
		a, err = c.cfg.Actions.Edit(
			v.once("review-edit", onceOf(e, request.DryRun), e.a.ID, string(request.ProposedChange), e.note, do), e.a.ID,
			request)
	}
	made, replayed := replayedID(err)
	switch {
	case replayed:
		return v.redirect(actionPath(made))
	case err == nil && !request.DryRun:
		return v.redirect(actionPath(a.ID))
	case err == nil:
		e.tried = a
		return v.render(http.StatusOK, "Edit", "/inbox", reviewEditForm(v, e))
	}
	if e.outcome = asError(err); e.outcome.Code == gatehouse.CodeInternal {
		return err
	}
	status := gatehouse.StatusOf(e.outcome.Code)
	if v.r.Header.Get("HX-Request") != "" {
		status = http.StatusOK // htmx swaps in no error page: the form shows the error and keeps the input
	}
	return v.render(status, "Edit", "/inbox", reviewEditForm(v, e))
}

// onceOf is the form's idempotency key. A preview stores nothing and needs none.
func onceOf(e *reviewEdit, dry bool) string {
	if dry {
		return ""
	}
	return e.once
}

// read assembles the change from the typed fields.
func (e *reviewEdit) read(v *view) (gatehouse.JSON, error) {
	if v.form("json") != "" {
		e.fields, e.change = nil, v.form("change")
		change, err := gatehouse.Canonicalize([]byte(e.change))
		if err != nil {
			return "", gatehouse.E(gatehouse.CodeMalformed, "the change is not JSON: %v", err)
		}
		return change, nil
	}
	var wrong gatehouse.Violations
	i := 0
	change := mapLeaves(e.a.ProposedChange, nil, func(_ []string, leaf gatehouse.JSON) gatehouse.JSON {
		if i >= len(e.fields) {
			return leaf
		}
		f := &e.fields[i]
		i++
		if values, given := v.r.PostForm[f.name]; given && len(values) == 1 {
			f.typed = v.form(f.name)
		}
		value, err := f.value()
		if err != nil {
			wrong.Add("/proposed_change"+f.path, "%s", asError(err).Detail)
		}
		return value
	})
	if err := wrong.Err(); err != nil {
		return "", err
	}
	return change, nil
}
