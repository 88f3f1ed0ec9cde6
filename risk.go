package gatehouse

import "fmt"

// RiskLevel grades an action from 1 (a note) to 5 (destructive or bulk). The
// server sets it: the maximum of what the policy, the connector's floor and
// the proposer say. Zero means "not stated".
type RiskLevel int

// The five levels.
const (
	L1 RiskLevel = 1 + iota // note or tag
	L2                      // safe field
	L3                      // medium write
	L4                      // creates an entity, soft-deletes
	L5                      // destructive or bulk
)

// NeedsPerson reports whether an action of this level needs a person's approval
// under every policy.
func (r RiskLevel) NeedsPerson() bool { return r >= L3 }

// NeedsConfirmation reports whether an approver must retype the salient value and
// decide the action on its own, never in bulk.
func (r RiskLevel) NeedsConfirmation() bool { return r >= L4 }

// Valid reports whether r is one of L1..L5.
func (r RiskLevel) Valid() bool { return r >= L1 && r <= L5 }

func (r RiskLevel) String() string { return fmt.Sprintf("L%d", int(r)) }
