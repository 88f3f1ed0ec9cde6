package gatehouse

import "time"

// ActionFact is what statistics know of an action: nothing of its content.
type ActionFact struct {
	ID         string
	ActionType string
	ProposedBy string
	RiskLevel  RiskLevel
	// Status is as stored: an approval past its ExpiresAt may still be pending.
	Status     Status
	DecidedVia Channel
	ProposedAt time.Time
	ExpiresAt  *time.Time
	DecidedAt  *time.Time
}

// InsightFilter selects proposals of one tenant.
type InsightFilter struct {
	// Since bounds the time of the proposal.
	Since      time.Time
	ActionType string
	ProposedBy string
}

// MaxFacts bounds the proposals that statistics look at, the newest of them.
const MaxFacts = 50_000

// Insights tells how the gate was used: the proposals since a time, and what
// became of them.
type Insights struct {
	Since, Until time.Time
	// Seen is how many proposals were looked at. Capped says that older ones
	// were left out.
	Seen   int
	Capped bool
	All    Insight
	// ByType and ByAgent have the most frequent first.
	ByType, ByAgent []Insight
	// Waiting counts the pending ones by risk level and by how long they have
	// waited: see [WaitBuckets].
	Waiting map[RiskLevel][]int
}

// Insight sums up the proposals of one type or agent, Name.
type Insight struct {
	Name     string
	Proposed int
	// Approved and Rejected count decisions by people.
	Approved, Rejected int
	Allowed, Denied    int // by policy
	Expired, Pending   int
	// P50, P90 and P99 are times from proposal to decision by people; 0
	// without any.
	P50, P90, P99 time.Duration
}

// Rate is the share of approvals among people's decisions; ok is false when
// there were none.
func (i Insight) Rate() (share float64, ok bool) {
	n := i.Approved + i.Rejected
	if n == 0 {
		return 0, false
	}
	return float64(i.Approved) / float64(n), true
}

// WaitBuckets are the upper bounds of how long pending actions have waited;
// what has waited longer comes after the last.
func WaitBuckets() []time.Duration {
	return []time.Duration{15 * time.Minute, time.Hour, 4 * time.Hour, 24 * time.Hour}
}

// SavedView is a person's name for a list of the console: the query of its URL.
type SavedView struct {
	Tenant      string
	PrincipalID string
	Name        string
	Query       string
	CreatedAt   time.Time
}

// The bounds of saved views.
const (
	MaxViews     = 50 // of one person
	MaxViewName  = 64 // characters
	MaxViewQuery = 2048
)
