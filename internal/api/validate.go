package api

import (
	"fmt"

	"github.com/gatehouse-dev/gatehouse"
)

// These checks need no state, so they come first: an approval without a digest
// is 422 even if the action has expired.

func checkNotes(v *gatehouse.Violations, pointer, notes string) {
	if len(notes) > gatehouse.MaxNotesBytes {
		v.Add(pointer, "is longer than %d bytes", gatehouse.MaxNotesBytes)
	}
}

func checkKind(v *gatehouse.Violations, kind gatehouse.DecisionKind) {
	switch kind {
	case gatehouse.Approve, gatehouse.Reject:
	case "":
		v.Add("/decision", "is required: approved or rejected")
	default:
		v.Add("/decision", "must be approved or rejected")
	}
}

func checkDigest(v *gatehouse.Violations, pointer string, kind gatehouse.DecisionKind, digest gatehouse.Digest) {
	if kind == gatehouse.Approve && digest == "" {
		v.Add(pointer, "is required to approve: the digest of what you saw")
	}
}

func checkDecision(d *gatehouse.Decision) error {
	var v gatehouse.Violations
	checkKind(&v, d.Decision)
	checkDigest(&v, "/digest", d.Decision, d.Digest)
	checkNotes(&v, "/notes", d.Notes)
	return v.Err()
}

func checkShort(kind gatehouse.DecisionKind) func(*shortDecision) error {
	return func(d *shortDecision) error {
		var v gatehouse.Violations
		checkDigest(&v, "/digest", kind, d.Digest)
		checkNotes(&v, "/notes", d.Notes)
		return v.Err()
	}
}

func checkBulk(b *gatehouse.BulkDecision) error {
	var v gatehouse.Violations
	checkKind(&v, b.Decision)
	checkNotes(&v, "/notes", b.Notes)
	if n := len(b.Items); n == 0 || n > gatehouse.MaxBulk {
		v.Add("/items", "must hold 1 to %d items", gatehouse.MaxBulk)
		return v.Err()
	}
	for i := range b.Items {
		at := fmt.Sprintf("/items/%d", i)
		if b.Items[i].ActionID == "" {
			v.Add(at+"/action_id", "is required")
		}
		checkDigest(&v, at+"/digest", b.Decision, b.Items[i].Digest)
	}
	return v.Err()
}

func checkReverse(r *gatehouse.ReverseRequest) error {
	var v gatehouse.Violations
	if len(r.Rationale) > gatehouse.MaxTextBytes {
		v.Add("/rationale", "is longer than %d bytes", gatehouse.MaxTextBytes)
	}
	return v.Err()
}

// MaxDrain bounds the limit of one drain.
const MaxDrain = 1000

func checkDrain(r *gatehouse.DrainRequest) error {
	var v gatehouse.Violations
	if r.Limit < 0 || r.Limit > MaxDrain {
		v.Add("/limit", "must be an integer from 1 to %d", MaxDrain)
	}
	return v.Err()
}

func checkTenant(t *newTenant) error {
	var v gatehouse.Violations
	if !gatehouse.ValidName(t.ID) {
		v.Add("/id", gatehouse.NameRule)
	}
	return v.Err()
}

func checkSource(p *policySource) error { return checkText(p.Source) }

func checkProposedSource(p *gatehouse.PolicyProposal) error { return checkText(p.Source) }

func checkText(source string) error {
	var v gatehouse.Violations
	if source == "" {
		v.Add("/source", "is required")
	}
	return v.Err()
}
