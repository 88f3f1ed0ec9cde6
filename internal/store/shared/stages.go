package shared

import "github.com/gatehouse-dev/gatehouse"

// EncodeTiming encodes the timing of an approval as JSON, without the times that [gatehouse.Approval.See] derives;
// "" for none.
func EncodeTiming(o *gatehouse.Approval) (string, error) {
	if o.IsZero() {
		return "", nil
	}
	frozen := o.Frozen()
	return EncodeJSON(&frozen)
}
