package servicenow

import (
	"context"
	"net/http"
	"strings"

	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// journalOf is the journal field that an operation appends to.
func journalOf(operation string) string {
	if operation == opComment {
		return "comments"
	}
	return "work_notes"
}

// marker ends each note, so that it can be found again.
func marker(call connector.Call) string { return "[gatehouse " + call.ActionID + "]" }

// note appends to a journal. A note cannot be removed, and the answer does not show it.
func (c *Connector) note(ctx context.Context, call connector.Call) (connector.Result, *connector.Error) {
	on, failed := c.before(ctx, call)
	if failed != nil {
		return connector.Result{}, failed
	}
	entry, there, failed := c.noted(ctx, call)
	if failed != nil {
		return connector.Result{}, rest.NothingSent(failed)
	}
	if there {
		res := connector.Result{ExternalID: on.externalID(), ResponseMetadata: rest.Found(withoutText(entry).json)}
		return res, noteDiffers(call, entry)
	}
	body := marshal(map[string]string{journalOf(call.Operation): noteText(call)})
	res, a, failed := c.api.Do(ctx, http.MethodPatch, recordPath(call.Target), fieldParameters(), nil, body)
	if failed != nil {
		return res, failed
	}
	result, failed := resultOf(a)
	if failed != nil {
		return res, failed
	}
	res.ExternalID = record{result}.externalID()
	if entry, there, failed = c.noted(ctx, call); failed == nil && there {
		return res, noteDiffers(call, entry)
	}
	return res, &connector.Error{
		Code: "not_confirmed", Says: a.Text(a.JSON()),
		Detail: "the note was not found in the journal: it was dropped, or sys_journal_field could not be read",
	}
}

// noteText is an approved text with its marker.
func noteText(call connector.Call) string {
	text, _ := rest.TextOf(call.ProposedChange, "text")
	return text + "\n\n" + marker(call)
}

// noteDiffers compares a note in the journal with the approved one.
func noteDiffers(call connector.Call, entry record) *connector.Error {
	shown, _ := entry.value("value")
	if rest.SameText(noteText(call), shown) {
		return nil
	}
	return &connector.Error{
		Code: "not_as_approved", Detail: "the note exists, but its text is " + clip(shown) + " instead of the approved text",
	}
}

// withoutText is a note without its text.
func withoutText(entry record) record {
	return record{entry.fields([]string{"sys_id", "element", "element_id"})}
}

// noted searches for an action's note in the journal.
func (c *Connector) noted(ctx context.Context, call connector.Call) (record, bool, *connector.Error) {
	field, mark := journalOf(call.Operation), marker(call)
	query := "element_id=" + call.Target.EntityRef + "^element=" + field + "^valueLIKE" + mark
	found, failed := c.find(ctx, "sys_journal_field", query, "element_id", "element", "value")
	for _, r := range found {
		text, _ := r.value("value")
		if r.hasValue("element_id", call.Target.EntityRef) && r.hasValue("element", field) && strings.Contains(text, mark) {
			return r, true, nil
		}
	}
	return record{}, false, failed
}
