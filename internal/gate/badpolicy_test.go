package gate_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestPolicyThatCannotJudge: under a stored policy that does not load, or whose text was changed, every proposal is
// denied at L3 or higher, and the explanation says the same.
func TestPolicyThatCannotJudge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	bot := w.agent()
	const allow, broken = "version: 1\nrules: [{id: all, when: 'true', then: allow}]\n", "version: 9\n"
	sum := sha256.Sum256([]byte(broken))
	for name, v := range map[string]*gatehouse.PolicyVersion{
		"does not load": {Source: broken, SHA256: hex.EncodeToString(sum[:])},
		"changed":       {Source: allow, SHA256: hex.EncodeToString(sum[:])},
	} {
		v.Tenant, v.AppliedBy, v.AppliedAt = "default", "admin", w.clock.Now()
		must(t, w.store.Update(t.Context(), "default", func(tx gatehouse.Tx) error {
			_, err := tx.InsertPolicy(v)
			return err
		}))
		for floor, want := range map[gatehouse.RiskLevel]gatehouse.RiskLevel{
			gatehouse.L1: gatehouse.L3, gatehouse.L4: gatehouse.L4,
		} {
			w.targets.floor = floor
			p := proposal(func(p *gatehouse.Proposal) { p.IdempotencyKey = name + floor.String() })
			said, err := w.gate.ExplainPolicy(bot, p)
			must(t, err)
			a, _, err := w.gate.Propose(bot, p)
			must(t, err)
			if a.Status != gatehouse.StatusDenied || a.RiskLevel != want || said.RiskLevel != want ||
				said.Outcome != gatehouse.OutcomeDeny || len(said.Reasons) != 1 || said.Reasons[0] != a.Policy.Reasons[0] {
				t.Errorf("%s: %s at %s because of %q; explained at %s with %q", name, a.Status, a.RiskLevel, a.Policy.Reasons,
					said.RiskLevel, said.Reasons)
			}
		}
	}
}
