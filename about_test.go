package gatehouse_test

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestAboutDigest: the digest covers only the entity, its version and its state, in the documented
// form.
func TestAboutDigest(t *testing.T) {
	t.Parallel()
	about := gatehouse.About{Connector: "shop", EntityType: "item", EntityRef: "A", Version: "7"}
	want := gatehouse.NewDigest(
		`{"connector":"shop","current_state":{"price":"10.00"},"entity_ref":"A","entity_type":"item","v":1,"version":"7"}`)
	if got := about.Seal(`{"price":"10.00"}`).StateDigest; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if about.StateDigest != "" {
		t.Error("Seal changes its receiver")
	}
	same := about
	same.Operation, same.StateDigest = "update", "sha256:claimed"
	if got := same.Seal(`{"price":"10.00"}`).StateDigest; got != want {
		t.Errorf("the operation or an earlier digest changes it: %s", got)
	}
	for name, other := range map[string]*gatehouse.About{
		"connector": {Connector: "shop2", EntityType: "item", EntityRef: "A", Version: "7"},
		"type":      {Connector: "shop", EntityType: "items", EntityRef: "A", Version: "7"},
		"ref":       {Connector: "shop", EntityType: "item", EntityRef: "B", Version: "7"},
		"version":   {Connector: "shop", EntityType: "item", EntityRef: "A", Version: "8"},
	} {
		if other.Seal(`{"price":"10.00"}`).StateDigest == want {
			t.Errorf("%s is not part of the digest", name)
		}
	}
	if about.Seal(`{"price":"10.0"}`).StateDigest == want || about.Seal("").StateDigest == want {
		t.Error("the state is not part of the digest")
	}
	none := gatehouse.About{Connector: "shop", EntityType: "item", EntityRef: "A"}
	if gatehouse.CodeOf(none.Validate("")) != gatehouse.CodeInvalid || none.Validate("{}") != nil ||
		about.Validate("") != nil {
		t.Error("a version or a state is needed, and one of them is enough")
	}
	about.Operation = "a b"
	if gatehouse.CodeOf(about.Validate("")) != gatehouse.CodeInvalid {
		t.Error("an invalid operation is accepted")
	}
}
