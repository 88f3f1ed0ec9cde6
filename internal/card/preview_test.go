package card_test

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

func TestDescribePreview(t *testing.T) {
	t.Parallel()
	change := func(how gatehouse.PreviewHow) []gatehouse.PreviewChange {
		return []gatehouse.PreviewChange{{Path: "/a~1b/c", Before: "1", After: "2", Proposed: "3", How: how}}
	}
	for want, p := range map[string]gatehouse.Preview{
		"1 record would change, as proposed|Can be undone.": {
			Rows: 1, Changes: change(gatehouse.PreviewAsProposed), Undo: &gatehouse.PreviewUndo{Possible: true},
		},
		"The change would be made, as proposed|": {},
		"2 records would change, but not as proposed|": {Rows: 2, Differs: true,
			Changes: change(gatehouse.PreviewDiffers)},
		"1 record would change, with 1 field that the proposal does not name|Cannot be undone: it is gone.": {
			Rows: 1, Changes: change(gatehouse.PreviewAlso), Undo: &gatehouse.PreviewUndo{Why: "it is gone"},
		},
		"shop would refuse this|": {
			Failure: &gatehouse.PreviewFailure{Code: "x", Detail: "no (1)", TargetSays: "no"},
			Undo:    &gatehouse.PreviewUndo{Possible: true},
		},
	} {
		got, ok := card.DescribePreview("shop", &p, "")
		if !ok || got.Summary+"|"+got.Undo != want {
			t.Errorf("%q, want %q", got.Summary+"|"+got.Undo, want)
		}
		if len(got.Fields) != len(p.Changes) || len(got.Fields) == 1 && got.Fields[0].Name != "a/b/c" {
			t.Errorf("%s: the fields are %+v", want, got.Fields)
		}
	}
	if _, ok := card.DescribePreview("shop", &gatehouse.Preview{None: "no"}, ""); ok {
		t.Error("a preview that the target cannot make is described")
	}
	if _, ok := card.DescribePreview("shop", nil, ""); ok {
		t.Error("a nil preview is described")
	}
}
