package kubernetes

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// object is an object that was read.
type object struct {
	doc          gatehouse.JSON
	uid, version string
	key          string // the idempotency key of the call that created it
}

func objectOf(doc gatehouse.JSON) (object, bool) {
	meta := get(doc, "metadata")
	o := object{
		doc: doc, uid: rest.Text(meta, "uid"), version: rest.Text(meta, "resourceVersion"),
		key: rest.Text(get(meta, "annotations"), keyAnnotation),
	}
	return o, o.uid != "" && o.version != ""
}

// read reads the subject of an operation: an object, or its scale. why is the server's message if
// the object does not exist.
func (c *Connector) read(
	ctx context.Context, call connector.Call, p place,
) (o object, why string, failed *connector.Error) {
	path := p.path()
	if call.Operation == opScale {
		path = p.path("scale")
	}
	a, failed := c.api.Ask(ctx, http.MethodGet, path, nil)
	switch {
	case failed != nil:
		return o, "", failed
	case a.Status == http.StatusNotFound && isStatus(a.JSON()):
		return o, outcome(a).Detail, nil
	case a.Status != http.StatusOK:
		return o, "", rest.ReadFailure(outcome(a))
	}
	o, ok := objectOf(a.JSON())
	if !ok || rest.Text(get(o.doc, "metadata"), "name") != p.name {
		return o, "", &connector.Error{
			Kind: connector.Transient, Code: "check_failed", Detail: "the answer is not the object, or is larger than 1 MiB",
			Says: a.Text(a.JSON()),
		}
	}
	return o, "", nil
}

// view is the part of an object that an operation's change and pre-image describe.
func view(operation string, doc gatehouse.JSON) gatehouse.JSON {
	switch operation {
	case opScale:
		n := get(doc, "spec", "replicas")
		if n == "null" {
			n = "0" // the server leaves out a zero
		}
		return gatehouse.ObjectJSON(gatehouse.Member{Name: "replicas", Value: n})
	case opRestart:
		return gatehouse.ObjectJSON(gatehouse.Member{
			Name: "restartedAt", Value: get(doc, "spec", "template", "metadata", "annotations", restartedAt),
		})
	}
	return doc
}

// compare reports how an object differs from the call's description of it.
func compare(call connector.Call, o object) connector.State {
	shown := view(call.Operation, o.doc)
	s := rest.Compare(call, func(m gatehouse.Member) (gatehouse.JSON, bool) {
		got := get(shown, m.Name)
		return restoringChange(m.Value, got, got), len(differs("", m.Value, got)) == 0
	})
	if v := call.Target.Version; s.Matches && v != "" && v != o.version {
		return rest.OtherVersion(v, o.version)
	}
	return s
}

// readAndCompare reads the object before it is changed, and refuses a mismatch.
func (c *Connector) readAndCompare(ctx context.Context, call connector.Call, p place) (object, *connector.Error) {
	o, why, failed := c.read(ctx, call, p)
	switch {
	case failed != nil:
		return o, rest.NothingSent(failed)
	case why != "":
		return o, rest.TargetChanged(why)
	}
	if s := compare(call, o); !s.Matches {
		return o, rest.Changed(s)
	}
	return o, nil
}

// Check implements [connector.Checker]. If the object matches the proposal, a dry run shows whether
// the server would accept the change.
func (c *Connector) Check(ctx context.Context, call connector.Call) (connector.State, error) {
	p, ok := c.place(call)
	if !ok {
		return connector.State{Matches: true, Unchecked: true}, nil
	}
	o, why, failed := c.read(ctx, call, p)
	if failed != nil {
		return connector.State{}, failed
	}
	if call.Operation == opCreate {
		if why == "" && o.key != call.TargetKey() {
			return connector.State{
				Expected: "null", Actual: gatehouse.StringJSON(call.Target.EntityRef + " is there already"),
			}, nil
		}
		if why == "" {
			return connector.State{Matches: true}, nil
		}
	} else {
		if why != "" {
			return connector.State{Expected: gatehouse.StringJSON(call.Target.EntityRef), Actual: "null"}, nil
		}
		if s := compare(call, o); !s.Matches {
			return s, nil
		}
	}
	if _, failed = c.preview(ctx, c.write(call, p, o), call, o); failed == nil {
		return connector.State{Matches: true}, nil
	}
	if failed.Kind == connector.Terminal {
		return connector.State{
			Expected: gatehouse.StringJSON("accepted by a dry run"), Actual: gatehouse.StringJSON(failed.Detail),
		}, nil
	}
	return connector.State{}, failed
}

// ReadsState implements [connector.StateReader].
func (c *Connector) ReadsState(call connector.Call) bool { return call.Operation != opCreate }

// ReadState implements [connector.StateReader].
func (c *Connector) ReadState(ctx context.Context, call connector.Call) (connector.Snapshot, error) {
	p, ok := c.place(call)
	if !ok || !c.ReadsState(call) {
		return connector.Snapshot{}, rest.NoState()
	}
	o, why, failed := c.read(ctx, call, p)
	if failed != nil {
		return connector.Snapshot{}, failed
	}
	if why != "" {
		return connector.Snapshot{Gone: true}, nil
	}
	out := connector.Snapshot{Matches: compare(call, o).Matches}
	if call.Target.Version != "" {
		out.Version = o.version
	}
	of := call.ProposedChange
	if call.Operation == opDelete {
		of = "{}"
	}
	if call.CurrentState.IsObject() {
		of = both(of, call.CurrentState)
	}
	if of != "{}" {
		shown := view(call.Operation, o.doc)
		out.CurrentState = restoringChange(of, shown, shown)
	}
	return out, nil
}

// ReadBack implements [connector.ReadBacker]. It never returns Absent, because an earlier call may
// still arrive.
func (c *Connector) ReadBack(ctx context.Context, call connector.Call) (connector.Finding, connector.Result, error) {
	p, ok := c.place(call)
	if !ok {
		return connector.Inconclusive, connector.Result{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	o, why, failed := c.read(ctx, call, p)
	if failed != nil {
		return connector.Inconclusive, connector.Result{}, failed
	}
	id := o.uid
	var there bool
	switch call.Operation {
	case opCreate:
		there = why == "" && o.key == call.TargetKey() && len(differs("", call.ProposedChange, o.doc)) == 0
	case opDelete:
		there, id = why != "" || get(o.doc, "metadata", "deletionTimestamp") != "null", call.Target.EntityRef
	default:
		there = why == "" && len(differs("", call.ProposedChange, view(call.Operation, o.doc))) == 0
	}
	if !there {
		return connector.Inconclusive, connector.Result{}, nil
	}
	return connector.Present, rest.MadeBefore(id), nil
}

// manifest returns the manifest that creates a deleted object again. It returns "" and the reason if the
// new object would differ: another object owned the old one, the old one had a finalizer, or it contained
// other objects or data. It also returns "" if the object has nothing but its name.
func manifest(resource string, doc gatehouse.JSON) (change gatehouse.JSON, why string) {
	meta := get(doc, "metadata")
	if slices.Contains(holders, resource) || !isEmpty(get(meta, "ownerReferences")) || !isEmpty(get(meta, "finalizers")) {
		return "", "another object owns it, it has a finalizer, or it holds other objects or data"
	}
	members, _ := doc.Fields()
	members = slices.DeleteFunc(members, func(m gatehouse.Member) bool {
		return m.Name == "apiVersion" || m.Name == "kind" || m.Name == "status" || m.Name == "metadata"
	})
	var kept []gatehouse.Member
	if labels := get(meta, "labels"); !isEmpty(labels) {
		kept = append(kept, gatehouse.Member{Name: "labels", Value: labels})
	}
	annotations, _ := get(meta, "annotations").Fields()
	annotations = slices.DeleteFunc(annotations,
		func(m gatehouse.Member) bool { return strings.HasPrefix(m.Name, "gatehouse/") })
	if len(annotations) > 0 {
		kept = append(kept, gatehouse.Member{Name: "annotations", Value: gatehouse.ObjectJSON(annotations...)})
	}
	if kept != nil {
		members = append(members, gatehouse.Member{Name: "metadata", Value: gatehouse.ObjectJSON(kept...)})
	}
	if len(members) == 0 {
		return "", "it has nothing but its name, and a creation needs more"
	}
	return gatehouse.ObjectJSON(members...), ""
}

// holders are the resources whose objects contain other objects, or data: deleting the object
// deletes these too.
var holders = []string{
	"customresourcedefinitions.apiextensions.k8s.io", "namespaces", "persistentvolumeclaims", "persistentvolumes",
}
