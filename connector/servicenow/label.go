package servicenow

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// A label (called tag in the user interface) is a record of the table label. An entry of the table
// label_entry assigns it to a record.

// label carries out add_label and remove_label. If the record already has the label to add, or lacks
// the label to remove, label sends no change, and the result has no reversal.
func (c *Connector) label(ctx context.Context, call connector.Call) (connector.Result, *connector.Error) {
	on, failed := c.before(ctx, call)
	if failed != nil {
		return connector.Result{}, failed
	}
	id, failed := c.labelID(ctx, call)
	if failed != nil {
		return connector.Result{}, rest.NothingSent(failed)
	}
	entry, has, failed := c.labelEntry(ctx, call, id)
	if failed != nil {
		return connector.Result{}, rest.NothingSent(failed)
	}
	adds := call.Operation == opAddLabel
	if adds == has {
		return connector.Result{ExternalID: on.externalID(), ResponseMetadata: rest.Found(entry.json)}, nil
	}

	entryID, _ := entry.value("sys_id")
	method, path, body := http.MethodDelete, tablePath("label_entry")+"/"+entryID, gatehouse.JSON("")
	if adds {
		method, path = http.MethodPost, tablePath("label_entry")
		body = marshal(map[string]string{
			"label": id, "table": call.Target.EntityType, "table_key": call.Target.EntityRef, "title": on.externalID(),
		})
	}
	res, a, failed := c.api.Do(ctx, method, path, fieldParameters("label", "table", "table_key"), nil, body)
	res.ExternalID = on.externalID()
	if failed != nil {
		return res, failed
	}
	if failed := labelled(call, a, id); failed != nil {
		return res, failed
	}
	res.Reversal = &gatehouse.Reversal{Operation: opAddLabel, Target: call.Target, ProposedChange: call.ProposedChange}
	if adds {
		res.Reversal.Operation = opRemoveLabel
	}
	res.Reversal.Target.Version = ""
	return res, nil
}

// labelled reads the answer: 204 for a deletion, or the new entry.
func labelled(call connector.Call, a *rest.Answer, id string) *connector.Error {
	if call.Operation == opRemoveLabel {
		if a.Status == http.StatusNoContent {
			return nil
		}
		return a.Failure()
	}
	result, failed := resultOf(a)
	if failed != nil {
		return failed
	}
	if r := (record{result}); !isEntry(r, call, id) {
		return &connector.Error{
			Code: "not_as_approved",
			Says: a.Text(a.JSON()),
			Detail: "the instance created an entry for another label or record: " +
				"this user may not write all fields of label_entry",
		}
	}
	return nil
}

func isEntry(r record, call connector.Call, label string) bool {
	return r.hasValue("label", label) && r.hasValue("table", call.Target.EntityType) &&
		r.hasValue("table_key", call.Target.EntityRef)
}

// labelID finds the label with the approved name.
func (c *Connector) labelID(ctx context.Context, call connector.Call) (string, *connector.Error) {
	name, _ := rest.TextOf(call.ProposedChange, "label")
	found, failed := c.find(ctx, "label", "name="+name, "name")
	for _, r := range found {
		if id, ok := r.value("sys_id"); ok && r.hasValue("name", name) {
			return id, nil
		}
	}
	if failed == nil {
		failed = &connector.Error{
			Kind: connector.Terminal,
			Code: "no_such_label",
			Detail: "there is no label " + gatehouse.Quote(name) +
				", or this user may not read it; make it in ServiceNow first",
		}
	}
	return "", failed
}

// labelEntry finds the entry that assigns the label to the record.
func (c *Connector) labelEntry(ctx context.Context, call connector.Call, id string) (record, bool, *connector.Error) {
	query := "label=" + id + "^table=" + call.Target.EntityType + "^table_key=" + call.Target.EntityRef
	found, failed := c.find(ctx, "label_entry", query, "label", "table", "table_key")
	for _, r := range found {
		if isEntry(r, call, id) {
			return r, true, nil
		}
	}
	return record{json: "{}"}, false, failed
}
