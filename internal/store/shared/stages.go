package shared

import "github.com/gatehouse-dev/gatehouse"

// EncodeTiming encodes the frozen timing of an approval as JSON; "" for none.
func EncodeTiming(o *gatehouse.Approval) (string, error) {
	if o.IsZero() {
		return "", nil
	}
	frozen := o.Frozen()
	return EncodeJSON(&frozen)
}
