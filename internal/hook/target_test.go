package hook_test

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/hook"
)

func TestTargetFields(t *testing.T) {
	t.Parallel()
	f := hook.TargetFields{EntityType: "/table", EntityRef: "/record/0/id", Version: "/v"}
	for body, want := range map[string]gatehouse.TargetChange{
		`{"table": "item", "record": [{"id": "S-1"}], "v": "8"}`: {EntityType: "item", EntityRef: "S-1", Version: "8"},
		`{"table": "item", "record": [{"id": 12345678901234567890}], "v": 1.10}`: {
			EntityType: "item", EntityRef: "12345678901234567890", Version: "1.10",
		},
		`{"table": "item", "record": [{"id": "S-1"}], "v": null}`: {EntityType: "item", EntityRef: "S-1"},
		`{"table": "item", "record": [{"id": "S-1"}]}`:            {EntityType: "item", EntityRef: "S-1"},
	} {
		want.Connector = "erp"
		if got, err := f.Change("erp", []byte(body)); err != nil || got != want {
			t.Errorf("%s: %+v, %v", body, got, err)
		}
	}
	fixed := hook.TargetFields{EntityType: "item", EntityRef: "/id"}
	got, err := fixed.Change("erp", []byte(`{"id": "a", "item": "x"}`))
	if err != nil || got.EntityType != "item" || got.Version != "" {
		t.Errorf("%+v, %v", got, err)
	}
	for body, code := range map[string]gatehouse.Code{
		`{"table": "item"}`:                                                       gatehouse.CodeInvalid,
		`{"table": "", "record": [{"id": "S-1"}]}`:                                gatehouse.CodeInvalid,
		`{"table": "item", "record": [{"id": null}]}`:                             gatehouse.CodeInvalid,
		`{"table": "item", "record": [{"id": true}]}`:                             gatehouse.CodeInvalid,
		`{"table": {"a": 1}, "record": [{"id": "S"}]}`:                            gatehouse.CodeInvalid,
		`{"table": "t", "record": [{"id": "S"}], "v": []}`:                        gatehouse.CodeInvalid,
		`{"table": "t", "record": [{"id": "` + strings.Repeat("x", 1025) + `"}]}`: gatehouse.CodeInvalid,
		`[]`:            gatehouse.CodeInvalid,
		``:              gatehouse.CodeMalformed,
		`payload=%7B`:   gatehouse.CodeMalformed,
		`{"a":1,"a":2}`: gatehouse.CodeMalformed,
	} {
		if got, err := f.Change("erp", []byte(body)); gatehouse.CodeOf(err) != code || got != (gatehouse.TargetChange{}) {
			t.Errorf("%s: %+v, %v", body, got, err)
		}
	}
}
