package kubernetes_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// TestPreview: the server's dry run of each operation, field by field.
func TestPreview(t *testing.T) {
	t.Parallel()
	as := gatehouse.PreviewAsProposed
	undo := &gatehouse.PreviewUndo{Possible: true}
	for name, test := range map[string]struct {
		change, pre gatehouse.JSON
		want        gatehouse.Preview
	}{
		"scale": {scaled, scale, gatehouse.Preview{Rows: 1, Undo: undo, Changes: []gatehouse.PreviewChange{
			{Path: "/replicas", Before: "2", After: "0", How: as},
		}}},
		"apply": {newImage, two, gatehouse.Preview{Rows: 1, Undo: undo, Changes: []gatehouse.PreviewChange{
			{Path: "/spec/template/spec/containers/app/image", Before: `"nginx:1"`, After: `"nginx:2"`, How: as},
		}}},
		"restart": {restart, `{"restartedAt":null}`, gatehouse.Preview{
			Rows: 1, Undo: &gatehouse.PreviewUndo{Why: "the pods are replaced"}, Changes: []gatehouse.PreviewChange{
				{Path: "/restartedAt", Before: "null", After: `"2026-11-24T10:00:00Z"`, How: as},
			},
		}},
		"delete": {`{}`, two, gatehouse.Preview{Rows: 1, Undo: undo}},
	} {
		c := newCluster(t)
		got, err := c.connector(force).Preview(t.Context(), c.call(name, test.change, test.pre))
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
			t.Errorf("%s: %s, %v", name, diff, err)
		}
		if n := c.effects(); n != 0 {
			t.Errorf("%s: the preview had %d effects", name, n)
		}
		for _, q := range c.queries {
			if !strings.HasPrefix(q, "GET") && !strings.HasPrefix(q, "DELETE") && !strings.Contains(q, "dryRun=All") {
				t.Errorf("%s: the preview asked %s", name, q)
			}
		}
	}
}

// TestPreviewOfFinalDelete: the preview says why a deleted object could not be created again.
func TestPreviewOfFinalDelete(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	bare := c.do("POST", "/api/v1/namespaces/"+c.namespace+"/configmaps", "kubectl", `{"metadata":{"name":"bare"}}`)
	space := c.do("GET", "/api/v1/namespaces/"+c.namespace, "", "")
	for _, test := range []struct {
		of, ref, why string
		doc          gatehouse.JSON
	}{
		{"configmaps", c.namespace + "/bare", "it has nothing but its name", bare},
		{"namespaces", c.namespace, "another object owns it, it has a finalizer, or it holds other objects", space},
	} {
		call := c.call("delete", `{}`, "")
		meta, _ := test.doc.Get("metadata")
		version, _ := meta.Get("resourceVersion")
		call.Target = gatehouse.Target{EntityType: test.of, EntityRef: test.ref}
		call.Target.Version, _ = version.Text()
		got, err := c.connector(nil).Preview(t.Context(), call)
		if err != nil || got.Undo == nil || got.Undo.Possible || !strings.HasPrefix(got.Undo.Why, test.why) {
			t.Errorf("%s: %+v, %+v, %+v, %v", test.of, got, got.Undo, got.Failure, err)
		}
	}
}

// TestPreviewRefused: what the server would refuse is a failure of the preview.
func TestPreviewRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	conn := c.connector(nil)
	got, err := conn.Preview(t.Context(), c.call("apply", five, `{"spec":{"replicas":4}}`))
	if err != nil || got.Failure == nil || got.Failure.Code != string(gatehouse.CodeTargetChanged) {
		t.Errorf("another state: %+v, %v", got, err)
	}
	got, err = conn.Preview(t.Context(), c.call("apply", `{"spec":{"replicaz":5}}`, two))
	if err != nil || got.Failure == nil || got.Failure.Code != "refused" {
		t.Errorf("an unknown field: %+v, %v", got, err)
	}
	gone := c.call("apply", five, two)
	gone.Target.EntityRef = strings.Replace(gone.Target.EntityRef, "/web", "/nothing", 1)
	if got, err = conn.Preview(t.Context(), gone); err != nil || got.Failure == nil {
		t.Errorf("a missing object: %+v, %v", got, err)
	}
	if conn.Previews(connector.Call{Operation: "apply"}) {
		t.Error("no target")
	}
	if n := c.effects(); n != 0 {
		t.Errorf("the previews had %d effects", n)
	}
}
