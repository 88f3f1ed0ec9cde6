package card_test

import (
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/card"
)

func TestUndoText(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 2, 14, 0, 0, 0, time.UTC)
	for want, u := range map[string]gatehouse.Undo{
		"Cannot be undone: an e-mail that was sent stays sent.":            {Why: "an e-mail that was sent stays sent"},
		"Cannot be undone: shop declares no operation that reverses this.": {},
		"Can be undone.": {Possible: true},
		"Can be undone as long as nobody changes the price.": {Possible: true, Unchanged: true},
		"Can be undone until 3 Dec 2026, 14:00 UTC, but people who have read it still know the text.": {
			Possible: true, Within: gatehouse.Duration(24 * time.Hour), Except: "people who have read it still know the text",
		},
	} {
		a := pendingWith(u)
		if got := card.UndoText(a, now); got != want {
			t.Errorf("%q, not %q", got, want)
		}
		a.Status = gatehouse.StatusApplied
		if got := card.UndoText(a, now); got != "" {
			t.Errorf("of an applied action: %q", got)
		}
	}
	a := pendingWith(gatehouse.Undo{Possible: true, NeedsBefore: true})
	a.CurrentState = `{"cost":"1"}`
	if got := card.UndoText(a, now); got != "Cannot be undone: the proposal does not say which value price has now." {
		t.Errorf("without the value before: %q", got)
	}
	a.CurrentState = `{"price":"1"}`
	if got := card.UndoText(a, now); got != "Can be undone." {
		t.Errorf("with the value before: %q", got)
	}
	a = pendingWith(gatehouse.Undo{Possible: true, Unchanged: true})
	a.HoldFor, a.Declared.Undo.Within = gatehouse.Duration(time.Hour), gatehouse.Duration(time.Hour)
	a.Target = gatehouse.Target{EntityType: "item", EntityRefs: []string{"a", "b"}}
	want := "Can be undone until 2 Dec 2026, 16:00 UTC as long as nobody changes the records."
	if got := card.UndoText(a, now); got != want {
		t.Errorf("%q, not %q", got, want)
	}
}

func pendingWith(u gatehouse.Undo) *gatehouse.Action {
	return &gatehouse.Action{
		Status: gatehouse.StatusPending, Declared: &gatehouse.Declared{Undo: &u},
		Proposal: gatehouse.Proposal{
			Connector: "shop", Operation: "update", Target: gatehouse.Target{EntityType: "item", EntityRef: "A"},
			ProposedChange: `{"price":"2"}`,
		},
	}
}

// TestUndoOfPreview: where the target's preview and the connector's declaration disagree about whether the
// change can be undone, the preview counts. Where both say that it can, the declared sentence stays. A
// failed preview has no sentence.
func TestUndoOfPreview(t *testing.T) {
	t.Parallel()
	const declared = "Can be undone as long as nobody changes it."
	for want, p := range map[string]gatehouse.Preview{
		declared:                        {Undo: &gatehouse.PreviewUndo{Possible: true}},
		"Cannot be undone: it is gone.": {Undo: &gatehouse.PreviewUndo{Why: "it is gone"}},
		"":                              {Failure: &gatehouse.PreviewFailure{Code: "x"}},
	} {
		if got, _ := card.DescribePreview("shop", &p, declared); got.Undo != want {
			t.Errorf("%q, not %q", got.Undo, want)
		}
	}
	p := gatehouse.Preview{Undo: &gatehouse.PreviewUndo{Possible: true}}
	if got, _ := card.DescribePreview("shop", &p, "Cannot be undone: x."); got.Undo != "Can be undone." || got.Lasting {
		t.Errorf("%+v", got)
	}
}
