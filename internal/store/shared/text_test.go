package shared

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestDecodeJSONReadsWhatWasWritten: a nested value is read as encoding/json reads it, also one that a connector wrote
// with a name twice or with bytes that are not UTF-8.
func TestDecodeJSONReadsWhatWasWritten(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"operation":"undo","operation":"restore"}`, "{\"operation\":\"\xff\"}", `{"operation":"undo","unknown":1}`, `null`,
	} {
		got, err := DecodeJSON[gatehouse.Reversal](text)
		var want gatehouse.Reversal
		if werr := json.Unmarshal([]byte(text), &want); err != nil || werr != nil {
			t.Errorf("%q: %v, %v", text, err, werr)
		} else if !reflect.DeepEqual(*got, want) {
			t.Errorf("%q: %+v, want %+v", text, *got, want)
		}
	}
}

// TestStoredCeilings: claims are stored as they stand in answers, and read as they were.
func TestStoredCeilings(t *testing.T) {
	t.Parallel()
	claims := []gatehouse.CeilingClaim{
		{Ceiling: "a day", Scope: "tenant/USD", Amount: "12.50", Limit: "1e3", Window: 86_400e9, Currency: "USD"},
		{Ceiling: "count", Scope: "agent:prn_1", Amount: "1", Limit: "20", Window: 90e9},
		{Ceiling: "empty", Scope: "tenant", Window: 1e9},
	}
	text, err := EncodeJSON(&extra{Ceilings: storeCeilings(claims)})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := json.Marshal(struct {
		Ceilings []gatehouse.CeilingClaim `json:"ceilings"`
	}{claims})
	if err != nil || text != string(plain) {
		t.Errorf("stored as %s, want %s, %v", text, plain, err)
	}
	x, err := DecodeJSON[extra](text)
	if err != nil {
		t.Fatal(err)
	}
	claims[2].Amount, claims[2].Limit = "0", "0"
	if got := loadCeilings(x.Ceilings); !reflect.DeepEqual(got, claims) {
		t.Errorf("read as %+v, want %+v", got, claims)
	}
}
