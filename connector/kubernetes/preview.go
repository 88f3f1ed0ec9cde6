package kubernetes

import (
	"context"
	"net/http"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

var _ connector.Previewer = (*Connector)(nil)

// Previews implements [connector.Previewer]: the server makes a dry run of every operation.
func (c *Connector) Previews(call connector.Call) bool {
	_, known := c.Operation(call.Operation)
	_, ok := c.place(call)
	return known && ok && c.takes(call.Operation, call.Target.EntityType)
}

// Preview implements [connector.Previewer] by dryRun=All: admission runs, and nothing is stored.
func (c *Connector) Preview(ctx context.Context, call connector.Call) (gatehouse.Preview, error) {
	if err := c.Validate(call); err != nil {
		return connector.PreviewOfError(rest.Invalid(err))
	}
	p, _ := c.place(call)
	var was object
	if call.Operation != opCreate {
		var failed *connector.Error
		if was, failed = c.readAndCompare(ctx, call, p); failed != nil {
			return connector.PreviewOfError(failed)
		}
	}
	w, a, failed := c.dryRun(ctx, c.write(call, p, was), call)
	switch {
	case failed != nil:
		return connector.PreviewOfError(failed)
	case a == nil:
		return gatehouse.Preview{None: "a webhook of the cluster does not support dry runs"}, nil
	}

	out := gatehouse.Preview{Rows: 1}
	if w.method != http.MethodDelete {
		out.Changes = previewed(call, was.doc, a.JSON())
		for _, ch := range out.Changes {
			out.Differs = out.Differs || ch.How == gatehouse.PreviewDiffers
		}
	}
	if failed := fits(call, was, a); failed != nil {
		would, err := connector.PreviewOfError(failed)
		would.Changes, would.Differs = out.Changes, out.Differs
		return would, err
	}
	out.Undo = undoable(call, was)
	return out, nil
}

// previewed compares the object with the result of the dry run. The fields that a creation gets by
// default are left out.
func previewed(call connector.Call, was, will gatehouse.JSON) []gatehouse.PreviewChange {
	proposed := call.ProposedChange
	switch call.Operation {
	case opScale, opRestart:
		was, will = view(call.Operation, was), view(call.Operation, will)
	case opCreate:
		was, will = "", restoringChange(proposed, will, will)
	default:
		was, will = content(was), content(will)
	}
	return connector.PreviewChanges("", byName(was), byName(will), byName(proposed),
		func(proposed, after gatehouse.JSON) bool {
			return differs("", proposed, after) == nil
		})
}

// byName makes an object of each list whose elements have names, so that a change within one
// element is found there.
func byName(j gatehouse.JSON) gatehouse.JSON {
	var out []gatehouse.Member
	if names := named(j); names != nil {
		for name, e := range names {
			out = append(out, gatehouse.Member{Name: name, Value: byName(e)})
		}
		return gatehouse.ObjectJSON(out...)
	}
	if !j.IsObject() {
		return j
	}
	out, _ = j.Fields()
	for i := range out {
		out[i].Value = byName(out[i].Value)
	}
	return gatehouse.ObjectJSON(out...)
}

func undoable(call connector.Call, was object) *gatehouse.PreviewUndo {
	switch call.Operation {
	case opRestart:
		return &gatehouse.PreviewUndo{Why: "the pods are replaced"}
	case opDelete:
		_, why := manifest(call.Target.EntityType, was.doc)
		return &gatehouse.PreviewUndo{Possible: why == "", Why: why}
	}
	return &gatehouse.PreviewUndo{Possible: true}
}
