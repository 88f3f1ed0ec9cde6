package gatehouse

import "time"

// Preview is the effect that a pending action would have now, as its target reports it. A
// preview changes nothing, and decides nothing.
type Preview struct {
	// None is the reason why there is no preview; no other field is set then. It is ""
	// when there is a preview.
	None string `json:"none,omitempty"`
	// Rows is how many rows or objects would change; 0 when the target does not say.
	Rows int `json:"rows,omitempty"`
	// Changes are the fields that would change, and the fields that would differ
	// from the proposal: at most [MaxPreviewChanges].
	Changes []PreviewChange `json:"changes,omitempty"`
	// More is the number of changes that are left out.
	More int `json:"more,omitempty"`
	// Differs is true when a field would hold another value than the proposed one.
	Differs bool `json:"differs,omitempty"`
	// Failure is why the target would refuse; nil when it would not.
	Failure *PreviewFailure `json:"failure,omitempty"`
	// Undo tells whether the change could be undone; nil when it is not known.
	Undo *PreviewUndo `json:"undo,omitempty"`
	// AskedAt is when the target was asked.
	AskedAt time.Time `json:"asked_at,omitzero"`
}

// The limits of a preview.
const (
	// MaxPreviewChanges bounds the changes of a preview.
	MaxPreviewChanges = 50
	// MaxPreviewValue bounds each value of a preview, in bytes. A longer one is cut.
	MaxPreviewValue = 1 << 10
)

// PreviewChange is a field as it would be after the action.
type PreviewChange struct {
	// Ref is the row or object, where the action changes several; "" for one.
	Ref string `json:"ref,omitempty"`
	// Path is an RFC 6901 pointer within the row or object.
	Path string `json:"path"`
	// Before and After are the values; "" when there is none. Proposed is the action's
	// value if it differs from After.
	Before   JSON `json:"before,omitempty"`
	After    JSON `json:"after,omitempty"`
	Proposed JSON `json:"proposed,omitempty"`
	// How compares the value with the action.
	How PreviewHow `json:"how"`
}

// PreviewHow compares a field of a preview with the action.
type PreviewHow string

// The comparisons.
const (
	// PreviewAsProposed: the field would hold the proposed value.
	PreviewAsProposed PreviewHow = "as_proposed"
	// PreviewDiffers: the field would hold another value than the proposed one.
	PreviewDiffers PreviewHow = "differs"
	// PreviewAlso: the field would change, and the action does not name it.
	PreviewAlso PreviewHow = "also"
)

// PreviewFailure is the failure that the action would end with.
type PreviewFailure struct {
	// Code is for programs, such as constraint_violation; Detail is for people.
	Code   string `json:"code"`
	Detail string `json:"detail"`
	// TargetSays is the target's own message; "" for nothing.
	TargetSays string `json:"target_says,omitempty"`
}

// PreviewUndo tells whether a change could be undone.
type PreviewUndo struct {
	// Possible is true when the connector could reverse the change.
	Possible bool `json:"possible"`
	// Why says why not; "" when it is possible.
	Why string `json:"why,omitempty"`
}
