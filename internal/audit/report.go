package audit

import (
	"fmt"

	"github.com/gatehouse-dev/gatehouse"
)

// FaultKind says which property of a log is violated.
type FaultKind string

// The kinds of fault.
const (
	// FaultIndex: an entry has another number than expected: entries are missing,
	// duplicated, or out of order.
	FaultIndex FaultKind = "index"
	// FaultLeafHash: an entry's body does not match its stored hash.
	FaultLeafHash FaultKind = "leaf_hash"
	// FaultTreeHash: a stored hash of the tree is missing, or does not match the entries.
	FaultTreeHash FaultKind = "tree_hash"
	// FaultMissing: the log ends before the size that its head names.
	FaultMissing FaultKind = "missing"
	// FaultBeyond: entries or tree hashes are stored beyond the size of the head, which
	// does not commit to them.
	FaultBeyond FaultKind = "beyond_head"
	// FaultRoot: the entries are consistent with each other, but not with the
	// head's root.
	FaultRoot FaultKind = "root"
	// FaultHead: a head held elsewhere was never a head of this log.
	FaultHead FaultKind = "held_head"
)

// Fault is the first fault that was found.
type Fault struct {
	Kind FaultKind `json:"kind"`
	// Index is the entry concerned. For root and held_head it is the size of the
	// tree: the change lies below it.
	Index  int64  `json:"index"`
	Detail string `json:"detail"`
}

// Report is the result of a verification.
type Report struct {
	Tenant string `json:"tenant,omitempty"`
	// Expected counts the entries that the head commits to, Found those that were
	// read, including entries after a fault.
	Expected int64 `json:"expected"`
	Found    int64 `json:"found"`
	// Root is the head's root; Computed is the root of the entries that were read,
	// up to the first fault.
	Root     gatehouse.Hash `json:"root"`
	Computed gatehouse.Hash `json:"computed"`
	// HeldHeads counts the heads held elsewhere that the log agrees with.
	HeldHeads int `json:"held_heads"`
	// Unnumbered counts the leaves that wait for their number; no head commits to
	// them yet. Only [Check] and [CheckBeside] set it. When UnnumberedCapped is true
	// there may be more.
	Unnumbered       int  `json:"unnumbered"`
	UnnumberedCapped bool `json:"unnumbered_capped,omitempty"`
	// Fault is nil when everything holds.
	Fault *Fault `json:"fault"`
}

// Err returns nil when everything holds, else an error that wraps [ErrDamaged] and
// describes the first fault.
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
