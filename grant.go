package gatehouse

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// The bounds of a grant.
const (
	// MaxGrantLevel is the highest risk level that a grant covers, whatever the policy
	// says.
	MaxGrantLevel = L3
	// MinGrantWindow and MaxGrantWindow bound the duration of a grant; the policy can
	// lower the maximum.
	MinGrantWindow = time.Minute
	MaxGrantWindow = 24 * time.Hour
	// MaxGrantCount is the highest number of actions of one grant.
	MaxGrantCount = 1000
	// MaxGrantAmounts is the highest number of currencies of one grant.
	MaxGrantAmounts = 10
	// MaxGrantCondition is the greatest length of a condition, in bytes.
	MaxGrantCondition = 4096
	// MaxGrants is the highest number of open grants for one operation of one agent.
	MaxGrants = 20
)

// Grant is an approval given in advance: one person approves the next actions of one
// agent that meet a condition, up to a number, an amount of money, and a time. Each
// action that uses it is judged by the policy, has its own approval with a vote of the
// grantor, and counts against the ceilings, in the transaction that proposes it.
type Grant struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
	// Grantor is the id of the person who gave the grant, and who must have the right to decide at each use.
	Grantor     string `json:"grantor"`
	GrantorName string `json:"grantor_name"`
	// Agent is the id of the one principal that may use the grant.
	Agent     string `json:"agent"`
	AgentName string `json:"agent_name"`
	// Connector, Fingerprint and Operation are those of the covered actions. After
	// a change of its definition, the connector is not covered.
	Connector   string `json:"connector"`
	Fingerprint string `json:"fingerprint"`
	Operation   string `json:"operation"`
	// When is a CEL condition over the facts that a policy can use, except the calendar.
	When string `json:"when"`
	// Level is the highest risk level that the grant covers, at most [MaxGrantLevel].
	Level RiskLevel `json:"max_level"`
	// Budget is how many actions may use the grant, and how much money they may move.
	// A grant without amounts covers no action that moves money.
	Budget
	// CreatedAt begins the grant.
	CreatedAt time.Time `json:"created_at"`
	// ExpiresAt ends the grant, unless it ends earlier.
	ExpiresAt time.Time `json:"expires_at"`
	// EndedAt is set when the grant ended before ExpiresAt, with the reason. EndedBy names the
	// principal whose request or action ended it, or a sign-in provider, or "somebody at the
	// machine".
	EndedAt   *time.Time `json:"ended_at,omitempty"`
	EndedBy   string     `json:"ended_by,omitempty"`
	EndReason GrantEnd   `json:"end_reason,omitempty"`
	// Worst is [Grant.WorstCase] in answers; it is not stored.
	Worst string `json:"worst_case,omitempty"`
}

// GrantEnd is why a grant or a mandate ended before its time.
type GrantEnd string

// The reasons.
const (
	GrantRevoked GrantEnd = "revoked"
	GrantUsedUp  GrantEnd = "used_up"
	// GrantRightLost: the grantor, or a voter of the mandate, may no longer decide, or the agent may no
	// longer propose.
	GrantRightLost GrantEnd = "right_lost"
	// GrantPolicy: the active policy denied an action that the grant covers, judged it
	// above the grant's level or the policy's own limit, allows no grants (or mandates), or allows only
	// shorter ones.
	GrantPolicy GrantEnd = "policy"
)

// HoldsAt reports whether the grant is in force at a time.
func (g *Grant) HoldsAt(at time.Time) bool {
	return g.EndedAt == nil && at.Before(g.ExpiresAt) && g.Used < g.Count
}

// Fits reports whether an action that moves these amounts fits in the unused part.
// An action without a readable amount does not fit in a grant with amounts.
func (g *Grant) Fits(moved []Magnitude) bool {
	return (len(g.Amounts) == 0 || len(moved) > 0) && g.Budget.Fits(moved)
}

// End ends the grant.
func (g *Grant) End(at time.Time, by string, why GrantEnd) {
	g.EndedAt, g.EndedBy, g.EndReason = &at, by, why
}

// State names the state of the grant at a time: active, expired, or [Grant.EndReason].
func (g *Grant) State(at time.Time) string {
	switch {
	case g.EndedAt != nil:
		return string(g.EndReason)
	case at.Before(g.ExpiresAt):
		return "active"
	}
	return "expired"
}

// WorstCase describes the most that the grant permits in total, including what is already used.
func (g *Grant) WorstCase() string {
	s := fmt.Sprintf("at most %s: %s of %s by %s", counted(g.Count, "time"), g.Operation, g.Connector, g.AgentName)
	if money := g.money(); money == "" {
		s += ", without money"
	} else {
		s += ", " + money + " in all"
	}
	return s + fmt.Sprintf(", up to %s, until %s", g.Level, g.ExpiresAt.UTC().Format("2006-01-02 15:04:05 UTC"))
}

// counted is a number of things: "1 time", "2 times".
func counted(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// NewGrant is a request to create a grant. Agent is a name or an id; the other fields
// are as in [Grant].
type NewGrant struct {
	Agent     string `json:"agent"`
	Connector string `json:"connector"`
	Operation string `json:"operation"`
	When      string `json:"when"`
	Limit
	// For is how long the grant holds from now.
	For Duration `json:"for"`
	// DryRun stores nothing: the answer is the grant as it would be, without an id.
	DryRun bool `json:"dry_run,omitempty"`
}

// Validate checks the request without any lookup.
func (n *NewGrant) Validate() error {
	var v Violations
	for _, field := range []struct{ pointer, value string }{
		{"/agent", n.Agent}, {"/connector", n.Connector}, {"/operation", n.Operation}, {"/when", n.When},
	} {
		if strings.TrimSpace(field.value) == "" {
			v.Add(field.pointer, "is required")
		}
	}
	v.CheckText("/when", n.When, MaxGrantCondition)
	n.check(&v, "")
	if n.For.D() < MinGrantWindow || n.For.D() > MaxGrantWindow {
		v.Add("/for", "must be %s to %s", Duration(MinGrantWindow), Duration(MaxGrantWindow))
	}
	return v.Err()
}

// GrantFilter selects grants. An empty field, except Limit, selects all.
type GrantFilter struct {
	Agent, Grantor       string
	Connector, Operation string
	// Open leaves out ended and expired grants.
	Open bool
	// Limit is the maximum number of grants that are returned, at least 1.
	Limit int
}

// GrantService creates and revokes grants.
type GrantService interface {
	// CreateGrant stores a grant of the caller, a person with the role approver who may
	// decide the agent's actions. The error has code [CodeInvalid] where the active policy
	// does not allow such a grant.
	CreateGrant(ctx context.Context, n NewGrant) (*Grant, error)
	// ListGrants returns the newest 500 grants of the tenant, newest first.
	ListGrants(ctx context.Context) ([]*Grant, error)
	FindGrant(ctx context.Context, id string) (*Grant, error)
	// RevokeGrant ends a grant at once. Any approver or administrator may call it. It does not
	// change a grant that has already ended. Actions that the grant approved stay approved.
	RevokeGrant(ctx context.Context, id string) (*Grant, error)
}

// GrantReader finds grants.
type GrantReader interface {
	// ListGrants returns grants, newest first.
	ListGrants(f GrantFilter) ([]*Grant, error)
	FindGrant(id string) (*Grant, error)
}

// GrantWriter writes grants.
type GrantWriter interface {
	InsertGrant(g *Grant) error
	// LockGrant finds a grant and locks it until the transaction ends.
	LockGrant(id string) (*Grant, error)
	// UpdateGrant writes the used budget and the end. It returns
	// ErrConflict if the grant has already ended.
	UpdateGrant(g *Grant) error
}
