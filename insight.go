package gatehouse

import (
	"context"
	"time"
)

// ActionFact has the fields of an action that statistics need, without its content.
type ActionFact struct {
	ID         string
	ActionType string
	// ProposedBy is the proposer's name.
	ProposedBy string
	RiskLevel  RiskLevel
	// Status is the stored status: an action past its ExpiresAt may still be
	// pending.
	Status Status
	// DecidedVia is "" before a decision, [ViaPolicy] for the policy's.
	DecidedVia Channel
	ProposedAt time.Time
	// ExpiresAt is nil when the action has no question, or the question has no end.
	ExpiresAt *time.Time
	// DecidedAt is nil before a decision.
	DecidedAt *time.Time
	// Groups are the groups that the approval asks; nil for none.
	Groups []string
}

// InsightFilter selects proposals of one tenant.
type InsightFilter struct {
	// Since selects proposals made at that time or later.
	Since time.Time
	// ActionType and ProposedBy select by equality; "" selects all.
	ActionType string
	ProposedBy string
}

// MaxFacts bounds the proposals that statistics read: the newest ones.
const MaxFacts = 50_000

// MaxInsightDays bounds the days of Insights.
const MaxInsightDays = 100

// InsightsWindow is how far back insights look without a Since.
const InsightsWindow = 7 * 24 * time.Hour

// InsightService sums up how the gate was used.
type InsightService interface {
	// Insights sums up the proposals that the caller may read and that the filter
	// selects. Without Since it looks back [InsightsWindow].
	Insights(ctx context.Context, f InsightFilter) (*Insights, error)
}

// Insights sums up the proposals since a time, and their outcomes.
type Insights struct {
	// Since is the beginning of the window.
	Since time.Time `json:"since"`
	// Until is the time of the snapshot.
	Until time.Time `json:"until"`
	// Seen is the number of proposals that were counted. Capped is true when older
	// ones were left out.
	Seen   int  `json:"seen"`
	Capped bool `json:"capped"`
	// All is the sum over all proposals, without a name.
	All Insight `json:"all"`
	// ByType and ByAgent are sorted by frequency, highest first.
	ByType  []Insight `json:"by_type"`
	ByAgent []Insight `json:"by_agent"`
	// ByDay has one entry for each UTC day of the window, at most [MaxInsightDays], the
	// oldest first. Its Name is the day, such as 2026-11-27; a proposal counts on the
	// day on which it was made.
	ByDay []Insight `json:"by_day"`
	// ByGroup sums up the questions to each group of people, by frequency. A
	// proposal that asks several groups counts for each.
	ByGroup []Insight `json:"by_group"`
	// Waiting counts the pending actions, the highest risk first; a risk level
	// without any is left out.
	Waiting []WaitingCount `json:"waiting"`
	// Decisions counts the requests for a decision in the whole tenant, from the
	// UTC day of Since on, regardless of the filter. It is empty for a caller who
	// may not read the whole tenant.
	Decisions []DecisionCount `json:"decisions"`
}

// Insight sums up the proposals of one action type, agent, day or group.
type Insight struct {
	// Name is the type, the agent's or group's name, or the day; "" for the sum of all.
	Name string `json:"name,omitempty"`
	// Proposed counts all proposals, whatever their outcome.
	Proposed int `json:"proposed"`
	// Approved and Rejected count decisions by people.
	Approved int `json:"approved"`
	Rejected int `json:"rejected"`
	// Allowed and Denied count decisions by the policy.
	Allowed int `json:"allowed"`
	Denied  int `json:"denied"`
	// Expired counts the questions that nobody answered in time, Pending the open ones.
	Expired int `json:"expired"`
	Pending int `json:"pending"`
	// P50, P90 and P99 are percentiles of the time from proposal to a decision by
	// people; 0 without decisions.
	P50 Span `json:"p50,omitempty"`
	P90 Span `json:"p90,omitempty"`
	P99 Span `json:"p99,omitempty"`
}

// WaitingCount counts the pending actions of one risk level by how long they have
// waited. Counts has one number for each of [WaitBuckets], and a last one for the
// actions that have waited longer.
type WaitingCount struct {
	// RiskLevel is the level of the counted actions.
	RiskLevel RiskLevel `json:"risk_level"`
	Counts    []int     `json:"counts"`
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

// WaitBuckets returns the upper bounds of the waiting times of pending actions.
// Longer waits count after the last bucket.
func WaitBuckets() []time.Duration {
	return []time.Duration{15 * time.Minute, time.Hour, 4 * time.Hour, 24 * time.Hour}
}

// SavedView is a named filter of the console's lists: the query of its URL.
type SavedView struct {
	Tenant string
	// PrincipalID is the owner, who alone sees the view.
	PrincipalID string
	// Name is unique for the principal, at most MaxViewName characters.
	Name string
	// Query is the URL's query, at most MaxViewQuery bytes.
	Query     string
	CreatedAt time.Time
}

// The bounds of saved views.
const (
	MaxViews     = 50 // of one person
	MaxViewName  = 64 // characters
	MaxViewQuery = 2048
)
