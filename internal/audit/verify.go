package audit

import (
	"cmp"
	"iter"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// VerifyEntries verifies a whole log offline: entries from 0 on, in order, against
// a head, such as a checkpoint's. It trusts no statement of an entry about itself:
// it recomputes leaf hashes from the bodies, and the root from the leaf hashes.
// held are earlier heads of the log, kept out of reach of the log's operator: for each
// of them, the first Size entries must give its Root.
//
// It reads all entries, to count them, and keeps a logarithmic number of hashes.
// The error is the iterator's; faults of the log are in the report.
func VerifyEntries(
	entries iter.Seq2[*gatehouse.Entry, error], head gatehouse.LogHead, held ...gatehouse.LogHead,
) (Report, error) {
	v := newVerifier(head, held)
	for e, err := range entries {
		if err != nil {
			return v.report, err
		}
		v.add(e)
	}
	v.finish()
	return v.report, nil
}

// verifier processes the entries of one log in order.
type verifier struct {
	head   gatehouse.LogHead
	held   []gatehouse.LogHead // the heads that are not compared yet, the smallest first
	tree   Tree
	report Report
	buf    []byte
	// stored holds the hashes that the last added entry completed.
	stored []gatehouse.Hash
}

func newVerifier(head gatehouse.LogHead, held []gatehouse.LogHead) *verifier {
	v := &verifier{head: head, held: slices.Clone(held)}
	v.report = Report{Tenant: head.Tenant, Expected: head.Size, Root: head.Root}
	slices.SortFunc(v.held, func(a, b gatehouse.LogHead) int { return cmp.Compare(a.Size, b.Size) })
	v.meetHeld()
	return v
}

// add processes the next entry. After the first fault it only counts.
func (v *verifier) add(e *gatehouse.Entry) {
	r := &v.report
	r.Found++
	if r.Fault != nil {
		return
	}
	next := v.tree.Size()
	switch {
	case e.Index != next:
		r.fault(FaultIndex, next, "entry %d is expected, but entry %d comes", next, e.Index)
		return
	case next >= v.head.Size:
		r.fault(FaultBeyond, next, "entry %d lies beyond the head, whose size is %d", next, v.head.Size)
		return
	}
	var h gatehouse.Hash
	h, v.buf = leafHash(e.Body, v.buf)
	if h != e.LeafHash {
		r.fault(FaultLeafHash, next, "entry %d has the leaf hash %s, but its bytes give %s", next, text(e.LeafHash), text(h))
		return
	}
	v.stored = v.tree.Append(h, v.stored[:0])
	v.meetHeld()
}

// meetHeld compares the tree with the held heads of its size.
func (v *verifier) meetHeld() {
	for len(v.held) > 0 && v.held[0].Size <= v.tree.Size() {
		held := v.held[0]
		v.held = v.held[1:]
		if held.Size != v.tree.Size() || held.Root != v.tree.Root() {
			v.report.fault(FaultHead, held.Size, "the first %d entries give the root %s, but the head held elsewhere says %s",
				held.Size, text(v.tree.Root()), text(held.Root))
			return
		}
		v.report.HeldHeads++
	}
}

// finish compares the final tree with the head.
func (v *verifier) finish() {
	r := &v.report
	size := v.tree.Size()
	r.Computed = v.tree.Root()
	if r.Fault != nil {
		return
	}
	switch {
	case size != v.head.Size:
		r.fault(FaultMissing, size, "the log ends before entry %d, but its head says %d entries", size, v.head.Size)
	case r.Computed != v.head.Root:
		r.fault(FaultRoot, size, "the %d entries give the root %s, but the head says %s", size, text(r.Computed),
			text(v.head.Root))
	case len(v.held) > 0:
		r.fault(FaultHead, v.held[0].Size, "a head held elsewhere says %d entries, but the log has %d", v.held[0].Size, size)
	}
}

func text(h gatehouse.Hash) string {
	b, _ := h.MarshalText()
	return string(b)
}
