package sqlite

import (
	"math"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// TestCursorOfAFarTime: a cursor is refused if its time is so late that adding a bucket would overflow.
func TestCursorOfAFarTime(t *testing.T) {
	t.Parallel()
	c := shared.Cursor{Kind: shared.KindUrgency, Filter: shared.FilterHash([]string{"default"}), ID: "act_1",
		AsOf: math.MaxInt64}
	_, err := shared.ParseCursor(c.Encode(), shared.KindUrgency, "default")
	if gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
		t.Errorf("error %v", err)
	}
}

// FuzzCursor parses arbitrary texts as cursors: each is either refused as invalid, or is the encoding of the
// cursor that it means.
func FuzzCursor(f *testing.F) {
	f.Add("")
	f.Add("bnVsbA")
	f.Add(shared.Cursor{Kind: shared.KindUrgency, Filter: shared.FilterHash([]string{"default"}), ID: "act_1", AsOf: 1,
		Bucket: 3, Risk: 5}.Encode())
	f.Add(shared.Cursor{Kind: shared.KindNewest, Filter: shared.FilterHash([]string{"default"}), ID: "act_1"}.Encode())
	f.Fuzz(func(t *testing.T, s string) {
		c, err := shared.ParseCursor(s, shared.KindUrgency, "default")
		if err != nil {
			if gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
				t.Fatalf("error %v", err)
			}
			return
		}
		if s != "" && c.Encode() != s {
			t.Fatalf("%q is accepted and means %q", s, c.Encode())
		}
	})
}
