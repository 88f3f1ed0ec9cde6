package gatehouse_test

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestMergePatch has the examples of RFC 7396, appendix A, except those of a scalar patch, and numbers that
// keep every digit.
func TestMergePatch(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]gatehouse.JSON{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"e":null}`, `{"a":1}`, `{"a":1,"e":null}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		{`{"n":1.10,"m":2}`, `{"m":12345678901234567890.10}`, `{"m":12345678901234567890.10,"n":1.10}`},
	} {
		if got := gatehouse.MergePatch(c[0], c[1]); got != c[2] {
			t.Errorf("%s with %s is %s, want %s", c[0], c[1], got, c[2])
		}
	}
}

func TestEditRequestValidate(t *testing.T) {
	t.Parallel()
	good := gatehouse.EditRequest{Digest: "sha256:aa", Note: "why", Patch: `{"a":1}`}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for pointer, spoil := range map[string]func(*gatehouse.EditRequest){
		"/digest":          func(e *gatehouse.EditRequest) { e.Digest = "" },
		"/note":            func(e *gatehouse.EditRequest) { e.Note = "" },
		"/patch":           func(e *gatehouse.EditRequest) { e.Patch = `[1]` },
		"/proposed_change": func(e *gatehouse.EditRequest) { e.Patch = "" },
	} {
		e := good
		spoil(&e)
		if err := e.Validate(); err == nil || !strings.Contains(err.Error(), pointer) {
			t.Errorf("%s: %v", pointer, err)
		}
	}
	both := good
	both.ProposedChange = `{}`
	long := good
	long.Note = strings.Repeat("x", gatehouse.MaxNotesBytes+1)
	if both.Validate() == nil || long.Validate() == nil {
		t.Error("both a change and a patch, or too long a note, are accepted")
	}
	quiet := good
	quiet.Note, quiet.DryRun = "", true
	if err := quiet.Validate(); err != nil {
		t.Errorf("a dry run needs a note: %v", err)
	}
}

// TestEditorMayApprove: an editor may approve alone up to the level, and above it as one of
// several; at 0 never.
func TestEditorMayApprove(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		upTo, level gatehouse.RiskLevel
		required    int
		want        bool
	}{
		{3, 3, 1, true}, {3, 4, 1, false}, {3, 5, 2, true}, {2, 3, 1, false}, {5, 4, 1, true}, {0, 1, 1, false},
		{0, 3, 2, false},
	} {
		if got := gatehouse.EditorMayApprove(c.upTo, c.level, c.required); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
