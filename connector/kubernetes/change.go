package kubernetes

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// write is a request that changes something, or its dry run.
type write struct {
	method, path string
	query        url.Values
	contentType  string
	body         gatehouse.JSON
	success      []int
}

func singleMember(name string, value gatehouse.JSON) gatehouse.JSON {
	return gatehouse.ObjectJSON(gatehouse.Member{Name: name, Value: value})
}

// write makes the call's request for an object that was read.
func (c *Connector) write(call connector.Call, p place, o object) write {
	w := write{
		method: http.MethodPatch, path: p.path(), contentType: "application/merge-patch+json",
		query: url.Values{"fieldManager": {c.manager}, "fieldValidation": {"Strict"}}, success: []int{http.StatusOK},
	}
	same := gatehouse.MustJSON(map[string]string{"uid": o.uid, "resourceVersion": o.version})
	switch call.Operation {
	case opScale:
		w.path = p.path("scale")
		w.body = gatehouse.ObjectJSON(
			gatehouse.Member{Name: "metadata", Value: same}, gatehouse.Member{Name: "spec", Value: call.ProposedChange})
	case opRestart:
		at := singleMember("annotations", singleMember(restartedAt, get(call.ProposedChange, "restartedAt")))
		w.body = gatehouse.ObjectJSON(
			gatehouse.Member{Name: "metadata", Value: same},
			gatehouse.Member{Name: "spec", Value: singleMember("template", singleMember("metadata", at))})
	case opDelete:
		w.method, w.query, w.contentType = http.MethodDelete, nil, "application/json"
		w.success = []int{http.StatusOK, http.StatusAccepted}
		w.body = gatehouse.MustJSON(map[string]any{
			"apiVersion": "v1", "kind": "DeleteOptions",
			"preconditions":     map[string]string{"uid": o.uid, "resourceVersion": o.version},
			"propagationPolicy": cmp.Or(rest.Text(call.ProposedChange, "propagation"), "Background"),
		})
	case opApply:
		w.contentType = "application/apply-patch+yaml" // JSON is YAML
		if c.resources[call.Target.EntityType].Force {
			w.query.Set("force", "true")
		}
		w.body = p.requestBody(call.ProposedChange, same)
	default:
		w.method, w.path, w.contentType = http.MethodPost, p.collection, "application/json"
		w.success = []int{http.StatusCreated}
		w.body = p.requestBody(call.ProposedChange,
			singleMember("annotations", singleMember(keyAnnotation, gatehouse.StringJSON(call.TargetKey()))))
	}
	return w
}

// requestBody is the change as a manifest: with the fields that identify the object, and further
// metadata.
func (p place) requestBody(change, metadata gatehouse.JSON) gatehouse.JSON {
	change = withoutNull(change)
	metadata = both(orObject(member(change, "metadata")), metadata)
	metadata = rest.With(metadata, "name", gatehouse.StringJSON(p.name))
	if p.namespace != "" {
		metadata = rest.With(metadata, "namespace", gatehouse.StringJSON(p.namespace))
	}
	change = rest.With(change, "metadata", metadata)
	change = rest.With(change, "apiVersion", gatehouse.StringJSON(p.apiVersion))
	return rest.With(change, "kind", gatehouse.StringJSON(p.kind))
}

func orObject(j gatehouse.JSON) gatehouse.JSON {
	if !j.IsObject() {
		return "{}"
	}
	return j
}

// dry is the dry run of the request. For a deletion, the option must be in the body, because the
// server ignores the query of a request with a body.
func (w write) dry() write {
	if w.method == http.MethodDelete {
		w.body = rest.With(w.body, "dryRun", `["All"]`)
		return w
	}
	query := url.Values{"dryRun": {"All"}}
	for name := range w.query {
		query.Set(name, w.query.Get(name))
	}
	w.query = query
	return w
}

func (w write) done(status int) bool {
	return slices.Contains(w.success, status)
}

// preview makes a dry run, and returns the request that may follow. A failure is never ambiguous:
// it is Terminal if the server refuses the change, or would set values other than the approved
// ones.
func (c *Connector) preview(ctx context.Context, w write, call connector.Call, o object) (write, *connector.Error) {
	w, a, failed := c.dryRun(ctx, w, call)
	if failed == nil && a != nil {
		failed = fits(call, o, a)
	}
	return w, failed
}

// dryRun is preview without a comparison of the values. The answer is nil when the server cannot
// make a dry run of a change whose effect is known.
func (c *Connector) dryRun(ctx context.Context, w write, call connector.Call) (write, *rest.Answer, *connector.Error) {
	for {
		dry := w.dry()
		header := http.Header{"Content-Type": {w.contentType}}
		a, failed := c.api.AskWith(ctx, dry.method, dry.path, dry.query, header, dry.body)
		if failed != nil {
			return w, nil, rest.NothingSent(failed)
		}
		if w.done(a.Status) {
			return w, a, nil
		}
		e := rest.ReadFailure(outcome(a))
		switch {
		case call.Operation == opApply && w.query.Get("force") == "" && ours(a.JSON(), c.manager):
			w.query.Set("force", "true") // the version protects all other fields
			continue
		case strings.Contains(e.Detail, "does not support dry run") && call.Operation != opApply &&
			call.Operation != opCreate:
			return w, nil, nil // a webhook with side effects; what these operations change is known
		}
		return w, nil, rest.NothingSent(e)
	}
}

// fits compares the result of a dry run with the approved change.
func fits(call connector.Call, o object, a *rest.Answer) *connector.Error {
	if call.Operation == opDelete {
		return nil
	}
	will := a.JSON()
	if !will.IsObject() {
		return rest.NotSent("check_failed", "the answer to the dry run is not the object, or larger than 1 MiB")
	}
	wrong := differs("", call.ProposedChange, view(call.Operation, will))
	if call.Operation == opApply {
		wrong = append(wrong, outside("", call.ProposedChange, content(o.doc), content(will))...)
	}
	if wrong == nil {
		return nil
	}
	return &connector.Error{
		Kind: connector.Terminal, Code: "not_as_approved",
		Detail: "nothing was sent, since a dry run shows that " + strings.Join(wrong, "; "),
	}
}

// content is an object without the fields that the server sets by itself.
func content(doc gatehouse.JSON) gatehouse.JSON {
	meta := get(doc, "metadata")
	return rest.With(rest.With(doc, "status", "null"), "metadata", gatehouse.ObjectJSON(
		gatehouse.Member{Name: "labels", Value: get(meta, "labels")},
		gatehouse.Member{Name: "annotations", Value: get(meta, "annotations")}))
}

// send makes the only writing call.
func (c *Connector) send(ctx context.Context, w write) (connector.Result, gatehouse.JSON, *connector.Error) {
	res, a, failed := c.api.Do(ctx, w.method, w.path, w.query, http.Header{"Content-Type": {w.contentType}}, w.body)
	if failed != nil {
		return res, "", failed
	}
	doc := a.JSON()
	switch {
	case !w.done(a.Status):
		return res, doc, outcome(a)
	case !doc.IsObject():
		return res, doc, &connector.Error{
			Code: "answer_unreadable", Detail: a.Describe() + ", but the body is not a JSON object", Says: a.Text(doc),
		}
	}
	return res, doc, nil
}

// change applies, scales or restarts.
func (c *Connector) change(ctx context.Context, call connector.Call, p place) (connector.Result, *connector.Error) {
	was, failed := c.readAndCompare(ctx, call, p)
	if failed != nil {
		return connector.Result{}, failed
	}
	w, failed := c.preview(ctx, c.write(call, p, was), call, was)
	if failed != nil {
		return connector.Result{}, failed
	}
	res, doc, failed := c.send(ctx, w)
	if failed != nil {
		return res, failed
	}
	res.ExternalID = was.uid
	before, now := view(call.Operation, was.doc), view(call.Operation, doc)
	if failed := notAsApproved(call, now, "the object was changed"); failed != nil {
		return res, failed
	}
	if call.Operation == opRestart {
		return res, nil // a restart cannot be undone
	}
	res.Reversal = &gatehouse.Reversal{
		Operation: call.Operation, Target: call.Target, CurrentState: restoringChange(call.ProposedChange, now, now),
		ProposedChange: restoringChange(call.ProposedChange, before, now),
	}
	res.Reversal.Target.Version = "" // each write of the status sets another version
	return res, nil
}

// notAsApproved compares an object, or its view, with the approved change. done is what is known to have happened.
func notAsApproved(call connector.Call, now gatehouse.JSON, done string) *connector.Error {
	wrong := differs("", call.ProposedChange, now)
	if wrong == nil {
		return nil
	}
	return &connector.Error{Code: "not_as_approved", Detail: done + ", but " + strings.Join(wrong, "; ")}
}

// create creates an object. An existing object with this call's key was created by an earlier
// attempt.
func (c *Connector) create(ctx context.Context, call connector.Call, p place) (connector.Result, *connector.Error) {
	if res, there, failed := c.created(ctx, call, p); failed != nil || there {
		return res, failed
	}
	w, failed := c.preview(ctx, c.write(call, p, object{}), call, object{})
	var res connector.Result
	var doc gatehouse.JSON
	if failed == nil {
		res, doc, failed = c.send(ctx, w)
	}
	if failed != nil {
		if failed.Code == "already_exists" {
			if res, there, again := c.created(ctx, call, p); there {
				return res, again
			}
		}
		return res, failed
	}
	made, ok := objectOf(doc)
	if !ok {
		return res, &connector.Error{Code: "answer_unreadable", Detail: "the answer to the creation has no uid"}
	}
	res.ExternalID = made.uid
	if failed := notAsApproved(call, doc, "the object was created"); failed != nil {
		return res, failed
	}
	res.Reversal = reversalOfCreate(call, made)
	return res, nil
}

// created searches for a call's object. Another object of the same name is a failure. If the object is not as
// approved, created returns true together with a failure.
func (c *Connector) created(
	ctx context.Context, call connector.Call, p place,
) (connector.Result, bool, *connector.Error) {
	o, why, failed := c.read(ctx, call, p)
	switch {
	case failed != nil:
		return connector.Result{}, false, rest.NothingSent(failed)
	case why != "":
		return connector.Result{}, false, nil
	case o.key != call.TargetKey():
		return connector.Result{}, false, &connector.Error{
			Kind: connector.Terminal, Code: "already_exists", Detail: "another object has this name",
		}
	}
	res := rest.MadeBefore(o.uid)
	if failed := notAsApproved(call, o.doc, "the object exists"); failed != nil {
		return res, true, failed
	}
	res.Reversal = reversalOfCreate(call, o)
	return res, true, nil
}

// reversalOfCreate is the reversal of a creation: a deletion that fails if somebody has changed the object since. A
// change of the spec increases the object's generation; a write of its status or of other metadata does
// not. If the object has no generation, its version is compared instead.
func reversalOfCreate(call connector.Call, made object) *gatehouse.Reversal {
	r := &gatehouse.Reversal{
		Operation: opDelete, Target: call.Target, ProposedChange: "{}",
		CurrentState: restoringChange(call.ProposedChange, made.doc, made.doc),
	}
	generation := get(made.doc, "metadata", "generation")
	if generation == "null" {
		r.Target.Version = made.version
		return r
	}
	meta, ok := r.CurrentState.Get("metadata")
	if !ok {
		meta = "{}"
	}
	r.CurrentState = rest.With(r.CurrentState, "metadata", rest.With(meta, "generation", generation))
	return r
}

// remove deletes an object, and describes how to create it again.
func (c *Connector) remove(ctx context.Context, call connector.Call, p place) (connector.Result, *connector.Error) {
	was, failed := c.readAndCompare(ctx, call, p)
	if failed != nil {
		return connector.Result{}, failed
	}
	w, failed := c.preview(ctx, c.write(call, p, was), call, was)
	if failed != nil {
		return connector.Result{}, failed
	}
	res, _, failed := c.send(ctx, w)
	if failed != nil {
		return res, failed
	}
	res.ExternalID = call.Target.EntityRef
	if change, _ := manifest(call.Target.EntityType, was.doc); change != "" {
		res.Reversal = &gatehouse.Reversal{Operation: opCreate, Target: call.Target, ProposedChange: change}
		res.Reversal.Target.Version = ""
	}
	return res, nil
}
