package gatehouse

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// The bounds of a proposal. A body is at most 1 MiB as a whole.
const (
	MaxEntityRefs  = 10_000
	MaxTextBytes   = 64 << 10
	MaxNotesBytes  = 16 << 10
	MaxEvaluations = 100
	MaxExpiry      = 365 * 24 * time.Hour
)

// Validate checks everything about a proposal that needs no lookup. The error has
// code invalid.
func (p *Proposal) Validate() error {
	var v Violations
	need := func(pointer, s string, limit int) {
		if s == "" {
			v.Add(pointer, "is required")
			return
		}
		checkText(&v, pointer, s, limit)
	}

	need("/action_type", p.ActionType, 128)
	if p.ActionType != "" && (!ValidName(p.ActionType) || p.ActionType != strings.ToLower(p.ActionType)) {
		// Only one spelling is valid, so that Bulk_Delete does not escape a policy rule
		// for bulk_delete.
		v.Add("/action_type", "must be lower-case letters, digits, or any of ._@:+-")
	}

	need("/connector", p.Connector, 128)
	need("/operation", p.Operation, 128)

	p.Target.validate(&v)
	if p.ProposedChange == "" {
		v.Add("/proposed_change", "is required")
	} else if !p.ProposedChange.IsObject() {
		v.Add("/proposed_change", "must be an object")
	}
	for _, o := range []struct {
		pointer string
		value   JSON
	}{{"/current_state", p.CurrentState}, {"/context", p.Context}, {"/metadata", p.Metadata}} {
		if o.value != "" && !o.value.IsObject() {
			v.Add(o.pointer, "must be an object")
		}
	}

	checkText(&v, "/rationale", p.Rationale, MaxTextBytes)
	checkText(&v, "/on_behalf_of", p.OnBehalfOf, 128)
	checkText(&v, "/idempotency_key", p.IdempotencyKey, 255)
	if p.RiskLevel != 0 && !p.RiskLevel.Valid() {
		v.Add("/risk_level", "must be 1 to 5")
	}

	if p.Magnitude != nil {
		if p.Magnitude.Amount == "" {
			v.Add("/magnitude/amount", "is required")
		} else if _, err := ParseDecimal(string(p.Magnitude.Amount)); err != nil {
			v.Add("/magnitude/amount", "must be a decimal number such as 12.50")
		}
		checkText(&v, "/magnitude/currency", p.Magnitude.Currency, 16)
	}

	if p.ExpiresIn != 0 && p.ExpiresIn.D() < time.Second {
		v.Add("/expires_in", "must be at least 1s")
	}
	if p.ExpiresIn.D() > MaxExpiry {
		v.Add("/expires_in", "must be at most 365d")
	}

	p.validateEvidence(&v)
	p.Callback.validate(&v)
	return v.Err()
}

func (t *Target) validate(v *Violations) {
	if t.EntityType == "" {
		v.Add("/target/entity_type", "is required")
	}
	checkText(v, "/target/entity_type", t.EntityType, 128)
	checkText(v, "/target/entity_ref", t.EntityRef, 1024)
	checkText(v, "/target/version", t.Version, 1024)
	switch {
	case t.EntityRef == "" && len(t.EntityRefs) == 0:
		v.Add("/target/entity_ref", "is required (or entity_refs, for a bulk operation)")
	case t.EntityRef != "" && len(t.EntityRefs) > 0:
		v.Add("/target/entity_refs", "cannot be combined with entity_ref")
	case len(t.EntityRefs) > MaxEntityRefs:
		v.Add("/target/entity_refs", "has more than %d keys", MaxEntityRefs)
	}
	seen := make(map[string]bool, len(t.EntityRefs))
	for i, ref := range t.EntityRefs {
		pointer := fmt.Sprintf("/target/entity_refs/%d", i)
		if ref == "" {
			v.Add(pointer, "is empty")
		}
		if seen[ref] {
			v.Add(pointer, "appears twice")
		}
		seen[ref] = true
		checkText(v, pointer, ref, 1024)
		if len(*v) > 20 {
			return
		}
	}
}

func (p *Proposal) validateEvidence(v *Violations) {
	if len(p.Evaluations) > MaxEvaluations {
		v.Add("/evaluations", "has more than %d items", MaxEvaluations)
		return
	}

	for i, e := range p.Evaluations {
		at := fmt.Sprintf("/evaluations/%d", i)
		if e.Name == "" {
			v.Add(at+"/name", "is required")
		}
		checkText(v, at+"/name", e.Name, 256)
		checkText(v, at+"/details", e.Details, MaxTextBytes)
		switch e.Kind {
		case "deterministic", "probabilistic", "human":
		default:
			v.Add(at+"/kind", "must be deterministic, probabilistic or human")
		}
		switch e.Result {
		case "pass", "warn", "fail":
		default:
			v.Add(at+"/result", "must be pass, warn or fail")
		}
		if e.Confidence != "" {
			d, err := ParseDecimal(string(e.Confidence))
			if err != nil || d.Cmp("0") < 0 || d.Cmp("1") > 0 {
				v.Add(at+"/confidence", "must be a number from 0 to 1")
			}
		}
	}

	if d := p.ArtifactDiff; d != nil {
		if d.Type == "" {
			v.Add("/artifact_diff/type", "is required")
		}
		checkText(v, "/artifact_diff/type", d.Type, 64)
		checkText(v, "/artifact_diff/text", d.Text, 1<<20)
		checkText(v, "/artifact_diff/summary", d.Summary, MaxTextBytes)
		if n := d.LinesAdded; n != nil && *n < 0 {
			v.Add("/artifact_diff/lines_added", "is negative")
		}
		if n := d.LinesRemoved; n != nil && *n < 0 {
			v.Add("/artifact_diff/lines_removed", "is negative")
		}
	}
}

// CheckText adds a violation when a text is longer than limit bytes, is not UTF-8,
// or has a NUL character, which not every store can keep.
func (v *Violations) CheckText(pointer, s string, limit int) { checkText(v, pointer, s, limit) }

func checkText(v *Violations, pointer, s string, limit int) {
	switch {
	case len(s) > limit:
		v.Add(pointer, "is longer than %d bytes", limit)
	case !utf8.ValidString(s):
		v.Add(pointer, "is not UTF-8")
	case strings.ContainsRune(s, 0):
		v.Add(pointer, "contains a NUL character")
	}
}
