package gatehouse

import "time"

// PushFact has the fields of a push that statistics need, without its change.
type PushFact struct {
	Connector string
	Status    PushStatus
	// ErrorCode, LastError and TargetSays are as in [Push]; "" for an applied push.
	ErrorCode, LastError, TargetSays string
	CreatedAt, NotBefore             time.Time
	SentAt, AppliedAt, FinishedAt    *time.Time
}

// FirstDue is as in [Push].
func (f PushFact) FirstDue() time.Time {
	if f.NotBefore.After(f.CreatedAt) {
		return f.NotBefore
	}
	return f.CreatedAt
}

// MaxPushFacts bounds each of the two groups of pushes that statistics read: the recent
// pushes, and the older pushes that have not ended.
const MaxPushFacts = 20_000

// HealthWindow is how far back the health of the dispatch looks, and HealthPoints
// how many points it shows of the queue.
const (
	HealthWindow = 24 * time.Hour
	HealthPoints = 48
)

// DispatchHealth is the health of a tenant's connectors and queue.
type DispatchHealth struct {
	// At is the time of the snapshot.
	At time.Time `json:"at"`
	// Connectors are sorted by name.
	Connectors []ConnectorHealth `json:"connectors"`
	// Queue has [HealthPoints] points over [HealthWindow], the oldest first; the last
	// is at At. It is derived from the pushes: a replayed push counts as waiting
	// since it was first due.
	Queue []QueuePoint `json:"queue"`
	// Capped is true when [MaxPushFacts] pushes or more were read: then some pushes
	// may be missing, and the figures may be too low.
	Capped bool `json:"capped"`
}

// ConnectorHealth is the health of a connector for the caller's tenant. LastSuccessAt
// and LastErrorAt look back [HealthWindow]. No figure counts a push that has ended and
// was created more than two windows ago.
type ConnectorHealth struct {
	Connector string `json:"connector"`
	// Breaker is the state of the connector's circuit breaker.
	Breaker BreakerState `json:"breaker"`
	// Queued counts the waiting pushes, including those on hold; InFlight counts
	// the pushes that are being sent.
	Queued   int `json:"queued"`
	InFlight int `json:"in_flight"`
	// Concurrency is how many calls each replica makes at a time; 0 is no limit.
	Concurrency int `json:"concurrency,omitempty"`
	// OldestAt is when the oldest push that has not ended was first due; nil for none.
	OldestAt *time.Time `json:"oldest_at,omitempty"`
	// AppliedLastHour and FailedLastHour count the pushes that ended in the last
	// hour; FailedLastHour includes unknown outcomes.
	AppliedLastHour int `json:"applied_last_hour"`
	FailedLastHour  int `json:"failed_last_hour"`
	// LastSuccessAt is nil without a success in the window.
	LastSuccessAt *time.Time `json:"last_success_at,omitempty"`
	// LastErrorAt is nil without a failure in the window.
	LastErrorAt *time.Time `json:"last_error_at,omitempty"`
	// LastErrorCode is the code of the failure at LastErrorAt.
	LastErrorCode string `json:"last_error_code,omitempty"`
	// LastWords is the target's answer at LastErrorAt, else the error.
	LastWords string `json:"last_words,omitempty"`
}

// QueuePoint is the queue at one time: the pushes that were due and had no outcome.
type QueuePoint struct {
	At    time.Time `json:"at"`
	Depth int       `json:"depth"`
	// Oldest is how long the oldest of them had waited; 0 for none.
	Oldest Span `json:"oldest,omitempty"`
}
