package jsonshape_test

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/jsonshape"
)

func TestCheckPointsAtErrors(t *testing.T) {
	t.Parallel()
	s, err := jsonshape.Compile(`{"additionalProperties":false,"properties":{"a/b":{"type":"integer"}},"type":"object"}`)
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[gatehouse.JSON]string{
		`{"a/b":1}`:          "",
		`{"a/b":"1"}`:        "/change/a~1b",
		`{"c":1}`:            "/change",
		`{"a/b":1e99999999}`: "/change",
		"":                   "/change",
	} {
		got := s.Check("/change", value)
		if want == "" && len(got) == 0 {
			continue
		}
		if len(got) != 1 || got[0].Pointer != want {
			t.Errorf("%s: %+v, want one at %q", value, got, want)
		}
	}
	if _, err := jsonshape.Compile(`{"$ref":"https://x.example/s"}`); err == nil {
		t.Error("a reference is accepted")
	}
}
