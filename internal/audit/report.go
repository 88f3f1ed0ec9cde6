package audit

import (
	"fmt"

	"github.com/gatehouse-dev/gatehouse"
)

// FaultKind says what about a log does not hold.
type FaultKind string

// The kinds of fault.
const (
	// FaultIndex: an entry has another number than the next one: entries are
	// missing, twice there, or out of order.
	FaultIndex FaultKind = "index"
	// FaultLeafHash: an entry's body does not have the hash that it is stored with.
	FaultLeafHash FaultKind = "leaf_hash"
	// FaultTreeHash: a stored hash of the tree is not what the entries give.
	FaultTreeHash FaultKind = "tree_hash"
	// FaultMissing: the log ends before the size that its head names.
	FaultMissing FaultKind = "missing"
	// FaultBeyond: there is more than the head's size, which it does not commit to.
	FaultBeyond FaultKind = "beyond_head"
	// FaultRoot: the entries are consistent in themselves, but the root is another.
	FaultRoot FaultKind = "root"
	// FaultHead: a head held elsewhere is not one that this log ever had.
	FaultHead FaultKind = "held_head"
)

// Fault is the first thing found wrong.
type Fault struct {
	Kind FaultKind `json:"kind"`
	// Index is the entry concerned; for root and held_head the size of the
	// tree: the change lies below it.
	Index  int64  `json:"index"`
	Detail string `json:"detail"`
}

// Report is what a verification found.
type Report struct {
	Tenant string `json:"tenant,omitempty"`
	// Expected counts the entries that the head commits to, Found those that
	// were read, after a fault too.
	Expected int64 `json:"expected"`
	Found    int64 `json:"found"`
	// Root is the head's root; Computed is that of the entries read, up to
	// the first fault.
	Root     gatehouse.Hash `json:"root"`
	Computed gatehouse.Hash `json:"computed"`
	// HeldHeads counts the heads held elsewhere that the log agreed with.
	HeldHeads int `json:"held_heads"`
	// Unnumbered counts the leaves that wait for their number; they are
	// committed to by nothing yet. Only [Check] can tell. When
	// UnnumberedCapped is true there may be more.
	Unnumbered       int  `json:"unnumbered"`
	UnnumberedCapped bool `json:"unnumbered_capped,omitempty"`
	// Fault is nil when everything holds.
	Fault *Fault `json:"fault"`
}

// Err returns nil when everything holds, else an error that is [ErrDamaged]
// and tells the first fault.
func (r Report) Err() error {
	if r.Fault == nil {
		return nil
	}
	return fmt.Errorf("%w: %s; %d entries expected, %d found", ErrDamaged, r.Fault.Detail, r.Expected, r.Found)
}

func (r *Report) fault(kind FaultKind, index int64, format string, args ...any) {
	if r.Fault == nil {
		r.Fault = &Fault{kind, index, fmt.Sprintf(format, args...)}
	}
}
