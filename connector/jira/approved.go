package jira

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// differs compares an issue with the approved change. If nothing has changed at all, Jira has not
// applied the update.
func differs(change gatehouse.JSON, was, now issue) *connector.Error {
	members, _ := change.Fields()
	var wrong []string
	for _, m := range members {
		if got := now.value(m.Name); !asApproved(m, got) {
			wrong = append(wrong, m.Name+" is "+rest.Brief(got)+" instead of "+rest.Brief(m.Value))
		}
	}
	if wrong == nil {
		return nil
	}
	e := &connector.Error{Code: "not_as_approved", Detail: "the issue was changed, but " + strings.Join(wrong, "; ")}
	if was.updated != "" && was.updated == now.updated {
		e.Kind, e.Detail = connector.Terminal, "Jira has dropped the change: "+strings.Join(wrong, "; ")
	}
	return e
}

// createdDiffers compares a created issue with the approved one. Labels that others have added are no difference.
func createdDiffers(call connector.Call, made issue) *connector.Error {
	approved, _ := call.ProposedChange.Get(labelsField)
	labels := added(approved, markLabel(call))
	want, _ := labels.Elements()
	shown, _ := made.value(labelsField).Elements()
	shown = append(shown, made.marks...)
	got := gatehouse.ArrayJSON(shown...)
	if !slices.ContainsFunc(want, func(label gatehouse.JSON) bool { return !slices.Contains(shown, label) }) {
		got = labels
	}
	made.fields = rest.With(made.fields, labelsField, got)
	return differs(rest.With(call.ProposedChange, labelsField, labels), issue{}, made)
}

// commentDiffers compares a comment with the approved one.
func commentDiffers(call connector.Call, comment gatehouse.JSON) *connector.Error {
	body, _ := comment.Get("body")
	shown := textOf(body)
	if sameText(rest.Text(call.ProposedChange, "text"), shown) {
		return nil
	}
	return &connector.Error{
		Code: "not_as_approved", Detail: "the comment exists, but its text is " +
			rest.Brief(gatehouse.StringJSON(shown)) + " instead of the approved text",
	}
}

// asApproved reports whether Jira shows a field as approved, though possibly in another form than it was sent.
func asApproved(m gatehouse.Member, got gatehouse.JSON) bool {
	approved, isText := m.Value.Text()
	shown, isTextToo := got.Text()
	switch {
	case m.Name == "assignee" && byDefault(m.Value):
		return true
	case isText && isTextToo:
		return sameText(approved, shown) || sameTime(approved, shown)
	case got == "null": // an emptied field
		return m.Value == "null" || m.Value == `""` || m.Value == "[]"
	}
	return holds(m.Value, got) || byID(m.Value, got)
}

// blankLines are blank lines between other lines.
var blankLines = regexp.MustCompile(`\n([ \t\r]*\n)+`)

// sameText compares texts without blank lines, because empty paragraphs of a document may be lost.
func sameText(a, b string) bool {
	return rest.SameText(blankLines.ReplaceAllString(a, "\n"), blankLines.ReplaceAllString(b, "\n"))
}

// sameTime compares points in time: Jira shows them in the time zone of the connector's account.
func sameTime(a, b string) bool {
	const layout = "2006-01-02T15:04:05.000-0700"
	at, err := time.Parse(layout, a)
	bt, errToo := time.Parse(layout, b)
	return err == nil && errToo == nil && at.Equal(bt)
}

// byDefault reports whether an approved assignee is the project's default assignee: whomever Jira selects, or nobody.
func byDefault(approved gatehouse.JSON) bool {
	return rest.Text(approved, "id") == "-1" || rest.Text(approved, "accountId") == "-1"
}

// byID reports whether Jira shows the object with the approved id, or a list that contains it. A sprint and a team, for
// example, are set by their ids alone.
func byID(approved, got gatehouse.JSON) bool {
	shown, err := got.Elements()
	if err != nil {
		shown = []gatehouse.JSON{got}
	}
	return slices.ContainsFunc(shown, func(o gatehouse.JSON) bool {
		id, ok := o.Get("id")
		return ok && approved.Equal(id)
	})
}
