package usecase

import (
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// The fast encoder must write the same bytes as the general one: leaves are
// canonical JSON.
func TestObjectIsMustJSON(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 12, 0, 0, 120_000_000, time.UTC)
	for _, data := range []map[string]any{
		{},
		{"b": 1, "a": "x\n\"<é\u2028", "via": gatehouse.ViaAPI, "decision": gatehouse.Approve,
			"outcome": gatehouse.OutcomeDeny},
		{"yes": true, "no": false, "n": -7, "at": at, "due": &at, "never": (*time.Time)(nil)},
		{"rules": []string{"r2", "r1"}, "none": []string{}, "nil": []string(nil)},
		{"magnitude": &gatehouse.Magnitude{Amount: "12.50", Currency: "EUR"}, "null": nil, "status": gatehouse.StatusPending},
	} {
		if got, want := Object(data), gatehouse.MustJSON(data); got != want {
			t.Errorf("Object(%v) = %s, want %s", data, got, want)
		}
	}
}
