package dispatch

import (
	"context"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// Previews reports whether Preview can ask the target of an action.
func (r *Registry) Previews(a *gatehouse.Action) bool {
	_, ok := r.previewer(a)
	return ok
}

// previewer returns the connector of an action, if it can preview the action.
func (r *Registry) previewer(a *gatehouse.Action) (connector.Previewer, bool) {
	c, _, err := r.operation(a.Tenant, a.Connector, a.Operation)
	p, ok := c.(connector.Previewer)
	return p, err == nil && ok && c.Fingerprint() == a.Fingerprint && previews(p, callOf(a, 0))
}

// Preview asks an action's target what the action would do. The result is bounded, in
// canonical form, and free of secrets. An error is a *connector.Error.
func (r *Registry) Preview(ctx context.Context, a *gatehouse.Action) (gatehouse.Preview, error) {
	p, ok := r.previewer(a)
	if !ok {
		return gatehouse.Preview{None: "this action cannot be previewed"}, nil
	}
	done, failure := r.acquireReadSlot(ctx, a.Tenant, a.Connector)
	if failure != nil {
		return gatehouse.Preview{}, failure
	}
	defer done()
	out, failure := r.preview(ctx, p, callOf(a, 0))
	if failure != nil {
		return gatehouse.Preview{}, failure
	}
	return boundPreview(r.redactor(a.Tenant), out), nil
}

// previews returns the connector's Previews, and false if that panics.
func previews(c connector.Previewer, call connector.Call) (previews bool) {
	var failure *connector.Error
	defer recoverTo(&failure)
	return c.Previews(call)
}

func (r *Registry) preview(
	ctx context.Context, c connector.Previewer, call connector.Call,
) (p gatehouse.Preview, failure *connector.Error) {
	defer func() { failure = redactFailure(r.redactor(call.Tenant), failure) }()
	defer recoverTo(&failure)
	p, err := c.Preview(ctx, call)
	return p, asError(err)
}

// boundPreview returns a preview fit for people: bounded, and free of secrets.
func boundPreview(by *connector.Redactor, p gatehouse.Preview) gatehouse.Preview {
	if p.None != "" {
		return gatehouse.Preview{None: previewText(by, p.None)}
	}
	all := p.Changes
	if len(all) > gatehouse.MaxPreviewChanges {
		all = mostRelevant(all)
	}
	p.More += len(p.Changes) - len(all)
	p.Changes = make([]gatehouse.PreviewChange, len(all))
	for i, c := range all {
		p.Changes[i] = gatehouse.PreviewChange{
			Ref: previewText(by, c.Ref), Path: previewText(by, c.Path), How: c.How,
			Before: previewValue(by, c.Before), After: previewValue(by, c.After), Proposed: previewValue(by, c.Proposed),
		}
	}
	if f := p.Failure; f != nil {
		p.Failure = &gatehouse.PreviewFailure{
			Code: previewText(by, f.Code), Detail: previewText(by, f.Detail),
			TargetSays: clipTo(redactCutEnd(by, by.Text(f.TargetSays)), gatehouse.MaxTargetSays),
		}
	}
	if u := p.Undo; u != nil {
		p.Undo = &gatehouse.PreviewUndo{Possible: u.Possible, Why: previewText(by, u.Why)}
	}
	return p
}

// mostRelevant keeps at most MaxPreviewChanges changes. It drops the changes that equal the
// proposal first.
func mostRelevant(all []gatehouse.PreviewChange) []gatehouse.PreviewChange {
	var out []gatehouse.PreviewChange
	for _, how := range []gatehouse.PreviewHow{
		gatehouse.PreviewDiffers, gatehouse.PreviewAlso, gatehouse.PreviewAsProposed,
	} {
		for _, c := range all {
			if c.How == how && len(out) < gatehouse.MaxPreviewChanges {
				out = append(out, c)
			}
		}
	}
	return out
}

func previewText(by *connector.Redactor, s string) string {
	return clipTo(by.Text(s), gatehouse.MaxPreviewValue)
}

// previewValue returns a value of a preview. A value that is not JSON or is too long becomes a string,
// the beginning of its text.
func previewValue(by *connector.Redactor, j gatehouse.JSON) gatehouse.JSON {
	if j == "" {
		return ""
	}
	if len(j) <= gatehouse.MaxPreviewValue {
		if canonical, err := gatehouse.Canonicalize([]byte(by.JSON(j))); err == nil {
			return canonical
		}
	}
	return gatehouse.StringJSON(previewText(by, string(j)))
}
