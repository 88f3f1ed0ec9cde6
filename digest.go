package gatehouse

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// CanonicalAction returns the canonical form of the data that an approval binds:
//
//	{"v":1,"tenant","revision","connector":{"name","fingerprint"},"operation",
//	 "target","current_state","proposed_change","magnitude","idempotency_key"}
//
// The members are shown in reading order; the canonical form sorts them by name. An
// absent current_state or magnitude is null. The target always has entity_type; it has
// entity_ref, entity_refs and version only if they are set. The magnitude has amount,
// the string as it was given, and currency only if it is set. p.IdempotencyKey must be
// the final one, as the server set it.
func CanonicalAction(tenant string, revision int, connectorName, fingerprint string, p *Proposal) JSON {
	return ObjectJSON(
		Member{"connector", ObjectJSON(
			Member{"fingerprint", StringJSON(fingerprint)},
			Member{"name", StringJSON(connectorName)},
		)},
		Member{"current_state", p.CurrentState},
		Member{"idempotency_key", StringJSON(p.IdempotencyKey)},
		Member{"magnitude", p.Magnitude.canonical()},
		Member{"operation", StringJSON(p.Operation)},
		Member{"proposed_change", p.ProposedChange},
		Member{"revision", JSON(strconv.Itoa(revision))},
		Member{"target", p.Target.canonical()},
		Member{"tenant", StringJSON(tenant)},
		Member{"v", "1"},
	)
}

// ComputeDigest returns the digest of [CanonicalAction].
func ComputeDigest(tenant string, revision int, connectorName, fingerprint string, p *Proposal) Digest {
	return NewDigest(CanonicalAction(tenant, revision, connectorName, fingerprint, p))
}

// Canonical returns the [CanonicalAction] of the action's fields as they are now.
func (a *Action) Canonical() JSON {
	return CanonicalAction(a.Tenant, a.Revision, a.Connector, a.Fingerprint, &a.Proposal)
}

// ComputeDigest returns the digest of the action's fields as they are now. It equals
// a.Digest unless a field was changed.
func (a *Action) ComputeDigest() Digest { return NewDigest(a.Canonical()) }

func (t *Target) canonical() JSON {
	members := make([]Member, 0, 4)
	if t.EntityRef != "" {
		members = append(members, Member{"entity_ref", StringJSON(t.EntityRef)})
	}
	if len(t.EntityRefs) > 0 {
		refs := make([]JSON, len(t.EntityRefs))
		for i, ref := range t.EntityRefs {
			refs[i] = StringJSON(ref)
		}
		members = append(members, Member{"entity_refs", ArrayJSON(refs...)})
	}
	members = append(members, Member{"entity_type", StringJSON(t.EntityType)})
	if t.Version != "" {
		members = append(members, Member{"version", StringJSON(t.Version)})
	}
	return ObjectJSON(members...)
}

func (m *Magnitude) canonical() JSON {
	if m == nil {
		return ""
	}
	members := append(make([]Member, 0, 2), Member{"amount", StringJSON(string(m.Amount))})
	if m.Currency != "" {
		members = append(members, Member{"currency", StringJSON(m.Currency)})
	}
	return ObjectJSON(members...)
}

// EffectHash returns the SHA-256 of a proposal's effect: its connector, operation, target
// without version, and change. It depends neither on the proposer nor on the time, nor on
// the order of entity_refs.
func (p *Proposal) EffectHash() Hash {
	target := p.Target
	target.Version = ""
	target.EntityRefs = slices.Sorted(slices.Values(target.EntityRefs))
	return sha256.Sum256([]byte(ObjectJSON(
		Member{"connector", StringJSON(p.Connector)},
		Member{"operation", StringJSON(p.Operation)},
		Member{"proposed_change", p.ProposedChange},
		Member{"target", target.canonical()},
	)))
}

// ContentHash returns the SHA-256 of the canonical JSON of the whole proposal:
// the same content sent twice has one hash, whatever the order of its members
// or its white space. It panics when a JSON member of p is not JSON.
func (p *Proposal) ContentHash() [32]byte {
	b, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("gatehouse: marshal a proposal: %v", err))
	}
	// A member may itself use the full MaxDepth.
	c := parser{src: b, maxDepth: MaxDepth + 4}
	if err := c.document(); err != nil {
		panic(fmt.Sprintf("gatehouse: canonicalize a proposal: %v", err))
	}
	return sha256.Sum256(c.out)
}
