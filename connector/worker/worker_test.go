package workerconn_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	workerconn "github.com/gatehouse-dev/gatehouse/connector/worker"
)

func TestNew(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config workerconn.Config
		want   string
	}{
		"no operation": {workerconn.Config{}, "at least one"},
		"no worker": {
			workerconn.Config{Workers: []string{}, Operations: map[string]workerconn.Operation{"post": {}}},
			"workers: the list is empty",
		},
		"bad name": {workerconn.Config{Operations: map[string]workerconn.Operation{"a b": {}}},
			"cannot name an operation"},
		"bad floor": {workerconn.Config{Operations: map[string]workerconn.Operation{"post": {Floor: 6}}},
			"operations.post.floor: must be 1 to 5"},
		"bad field": {
			workerconn.Config{Operations: map[string]workerconn.Operation{"post": {Fields: connector.FieldLevels{"note": 0}}}},
			"operations.post.fields.note: must be 1 to 5"},
		"fields of a delete": {
			workerconn.Config{Operations: map[string]workerconn.Operation{"delete": {Fields: connector.FieldLevels{"note": 1}}}},
			"only floor lowers",
		},
		"bad class": {workerconn.Config{Operations: map[string]workerconn.Operation{"post": {Class: "D"}}},
			"must be A, B or C"},
	} {
		if _, err := workerconn.New(c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestOperations: missing settings have the careful defaults.
func TestOperations(t *testing.T) {
	t.Parallel()
	c, err := workerconn.New(workerconn.Config{Operations: map[string]workerconn.Operation{
		"plain": {}, "post": {Class: connector.ClassA, Floor: gatehouse.L5},
	}})
	connectortest.Must(t, err)
	if o, ok := c.Operation("plain"); !ok || o.Class != connector.ClassC ||
		connector.FloorOf(c, o, connector.Call{Operation: "plain"}) != gatehouse.L3 {
		t.Errorf("plain: %+v", o)
	}
	if o, ok := c.Operation("post"); !ok || o.Class != connector.ClassA ||
		connector.FloorOf(c, o, connector.Call{Operation: "post"}) != gatehouse.L5 {
		t.Errorf("post: %+v", o)
	}
	if _, ok := c.Operation("other"); ok {
		t.Error("an operation that nobody configured")
	}
	var failure *connector.Error
	if _, err := c.Execute(t.Context(), connector.Call{}); !errors.As(err, &failure) || failure.Kind != connector.NotSent {
		t.Errorf("called from within: %v", err)
	}
}

// TestFingerprint: an approval becomes invalid when its operation's meaning changes.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	of := func(o workerconn.Operation) string {
		c, err := workerconn.New(workerconn.Config{Operations: map[string]workerconn.Operation{"post": o}})
		connectortest.Must(t, err)
		return c.Fingerprint()
	}
	same := of(workerconn.Operation{Class: connector.ClassA})
	if same != of(workerconn.Operation{Class: connector.ClassA}) || len(same) != 64 {
		t.Errorf("fingerprint %s", same)
	}
	for _, o := range []workerconn.Operation{
		{Class: connector.ClassA, Floor: gatehouse.L4}, {Class: connector.ClassA, KeyRetention: 1e9},
	} {
		if of(o) != same {
			t.Errorf("%+v changes the fingerprint", o)
		}
	}
	if of(workerconn.Operation{}) == same {
		t.Error("another class has the same fingerprint")
	}
}

func TestFloors(t *testing.T) {
	t.Parallel()
	c, err := workerconn.New(workerconn.Config{Operations: map[string]workerconn.Operation{
		"update": {Fields: connector.FieldLevels{"note": 1, "text": 2, "price": 4}},
		"tag":    {Floor: 1, Fields: connector.FieldLevels{"price": 3}},
		"delete": {}, "bulk_delete": {},
	}})
	connectortest.Must(t, err)
	for _, test := range []struct {
		operation, change string
		refs              []string
		want              gatehouse.RiskLevel
	}{
		{"update", `{"note":"x"}`, nil, 1},
		{"update", `{"note":"x","text":"y"}`, nil, 2},
		{"update", `{"note":"x","other":"y"}`, nil, 3},
		{"update", `{"note":"x","price":"1"}`, nil, 4},
		{"update", `{}`, nil, 3},
		{"update", `{"note":"x"}`, []string{"a"}, 5},
		{"tag", `{"other":"x"}`, nil, 1},
		{"tag", `{"other":"x"}`, []string{"a", "b"}, 1},
		{"tag", `{"price":"1"}`, nil, 3},
		{"delete", `{}`, nil, 4},
		{"bulk_delete", `{}`, nil, 5},
		{"none", `{}`, nil, 5},
	} {
		call := connector.Call{Operation: test.operation, ProposedChange: gatehouse.JSON(test.change),
			Target: gatehouse.Target{EntityRefs: test.refs}}
		if got := c.Floor(call); got != test.want {
			t.Errorf("%s %s: %v, want %v", test.operation, test.change, got, test.want)
		}
	}
	want := []connector.Declaration{
		{Operation: "tag", Level: 1}, {Operation: "tag", Field: "price", Level: 3},
		{Operation: "update", Field: "note", Level: 1}, {Operation: "update", Field: "price", Level: 4},
		{Operation: "update", Field: "text", Level: 2},
	}
	if got := c.Declarations(); !slices.Equal(got, want) {
		t.Errorf("declared: %+v", got)
	}
}

// TestValidate: a field whose name is another spelling of a declared one is refused: it would get past the declared
// level.
func TestValidate(t *testing.T) {
	t.Parallel()
	c, err := workerconn.New(workerconn.Config{Operations: map[string]workerconn.Operation{
		"tag": {Floor: 1, Fields: connector.FieldLevels{"price": 3}},
	}})
	connectortest.Must(t, err)
	for change, want := range map[string]gatehouse.Code{
		`{"price":1}`: "", `{"other":1}`: "", `{"Price":1}`: gatehouse.CodeInvalid, `{" price":1}`: gatehouse.CodeInvalid,
	} {
		call := connector.Call{Operation: "tag", ProposedChange: gatehouse.JSON(change)}
		if code := gatehouse.CodeOf(c.Validate(call)); code != want {
			t.Errorf("%s: %q, want %q", change, code, want)
		}
	}
}
