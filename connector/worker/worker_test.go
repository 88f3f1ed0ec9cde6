package workerconn_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	workerconn "github.com/gatehouse-dev/gatehouse/connector/worker"
)

func TestNew(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config workerconn.Config
		want   string
	}{
		"no operation": {workerconn.Config{}, "at least one"},
		"bad name":     {workerconn.Config{Operations: map[string]workerconn.Operation{"a b": {}}}, "cannot name an operation"},
		"bad class":    {workerconn.Config{Operations: map[string]workerconn.Operation{"post": {Class: "D"}}}, "must be A, B or C"},
	} {
		if _, err := workerconn.New(c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestOperations: what is not said is the careful choice.
func TestOperations(t *testing.T) {
	t.Parallel()
	c, err := workerconn.New(workerconn.Config{Operations: map[string]workerconn.Operation{
		"plain": {}, "post": {Class: connector.ClassA, RiskLevel: gatehouse.L5},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if o, ok := c.Operation("plain"); !ok || o.Class != connector.ClassC || o.Floor != gatehouse.L3 {
		t.Errorf("plain: %+v", o)
	}
	if o, ok := c.Operation("post"); !ok || o.Class != connector.ClassA || o.Floor != gatehouse.L5 {
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

// TestFingerprint: an approval does not outlive another meaning of its
// operation.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	of := func(o workerconn.Operation) string {
		c, err := workerconn.New(workerconn.Config{Operations: map[string]workerconn.Operation{"post": o}})
		if err != nil {
			t.Fatal(err)
		}
		return c.Fingerprint()
	}
	same := of(workerconn.Operation{Class: connector.ClassA})
	if same != of(workerconn.Operation{Class: connector.ClassA}) || len(same) != 64 {
		t.Errorf("fingerprint %s", same)
	}
	for _, o := range []workerconn.Operation{{}, {Class: connector.ClassA, RiskLevel: gatehouse.L4}, {Class: connector.ClassA, KeyRetention: 1e9}} {
		if of(o) == same {
			t.Errorf("%+v has the same fingerprint", o)
		}
	}
}
