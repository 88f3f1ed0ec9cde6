package sqlite

import (
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// FuzzCursor feeds hostile cursors to a list: each is either refused as invalid
// or identical to a cursor that this list produced.
func FuzzCursor(f *testing.F) {
	f.Add("")
	f.Add("bnVsbA")
	f.Add(cursorAt{Kind: kindUrgency, Filter: filterHash([]string{"default"}), ID: "act_1", AsOf: 1, Bucket: 3, Risk: 5}.encode())
	f.Add(cursorAt{Kind: kindNewest, Filter: filterHash([]string{"default"}), ID: "act_1"}.encode())
	f.Fuzz(func(t *testing.T, s string) {
		c, err := parseCursor(s, kindUrgency, "default")
		if err != nil {
			if gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
				t.Fatalf("error %v", err)
			}
			return
		}
		if s != "" && c.encode() != s {
			t.Fatalf("%q is accepted and means %q", s, c.encode())
		}
	})
}
