package gatehouse

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// DeadLetter is a push that needs a person: its outcome is unknown, or it failed
// and nobody has closed it.
type DeadLetter struct {
	// ID is the id of the push.
	ID         string `json:"id"`
	ActionID   string `json:"action_id"`
	ActionType string `json:"action_type"`
	Connector  string `json:"connector"`
	Operation  string `json:"operation"`
	// Target is where the change was to be applied.
	Target Target     `json:"target"`
	Status PushStatus `json:"status"` // failed or unknown
	// Class is the connector operation's class: A, B or C.
	Class string `json:"class"`
	// Payload is the action's canonical form.
	Payload JSON `json:"payload"`
	// Error and ErrorCode describe the last failure.
	Error     string `json:"error"`
	ErrorCode string `json:"error_code"`
	// Attempts is that of the [Push]; LastAt is when the push ended.
	Attempts int       `json:"attempts"`
	LastAt   time.Time `json:"last_at"`
	// TargetSays is the target's own answer; see [Push].
	TargetSays string `json:"target_says"`
	// ReplaySafe is true when a replay cannot double the effect, and bytes and connector
	// are as approved. ReplayReason says why, or why not.
	ReplaySafe   bool   `json:"replay_safe"`
	ReplayReason string `json:"replay_reason"`
	// Advice says in one sentence what an operator can do about it.
	Advice string `json:"advice"`
	// Acts lists the acts that the dead letter's state permits. An administrator replays, an operator
	// does the others. A replay still skips it if the policy, a lost right, a ceiling or another
	// reversal forbids the replay.
	Acts []DeadLetterAct `json:"acts"`
	// Group is the key of its [DeadLetterGroup].
	Group string `json:"group"`
}

// DeadLetterAct is an operation on a dead letter.
type DeadLetterAct string

// The acts.
const (
	ActReplay  DeadLetterAct = "replay"
	ActResolve DeadLetterAct = "resolve"
	ActDiscard DeadLetterAct = "discard"
	// ActCorrect: the action can be edited and proposed again; see [Action.Correctable].
	ActCorrect DeadLetterAct = "correct"
)

// The reasons why an act skips a dead letter, besides error codes.
const (
	SkippedApplied      = "already_applied"
	SkippedResolveFirst = "resolve_first" // the outcome is unknown, and a replay could double the effect
	SkippedTooOld       = "too_old"
	SkippedNotFailed    = "not_failed"
	SkippedNotUnknown   = "not_unknown"
	SkippedDiscarded    = "already_discarded"
	SkippedDuplicate    = "duplicate"
)

// DeadLetterFilter selects dead letters of one tenant, newest first. Zero fields
// select all.
type DeadLetterFilter struct {
	Connector string `json:"connector,omitempty"`
	// Code is an error code.
	Code string `json:"code,omitempty"`
	// Status is failed or unknown.
	Status PushStatus `json:"status,omitempty"`
	// Group is the key of a [DeadLetterGroup].
	Group string `json:"group,omitempty"`
	// Since selects dead letters whose push ended at that time or later.
	Since *time.Time `json:"since,omitempty"`
	// Limit bounds the dead letters. The default, 0, means [DefaultLimit] for a list and
	// [MaxDeadLetterBatch] for an act. A list has at most [MaxLimit].
	Limit int `json:"limit,omitempty"`
	// Cursor is for lists only: an act begins at the newest dead letter.
	Cursor string `json:"-"`
}

// DeadLetterGroup sums up the dead letters with the same connector, error code,
// status and [Push.Words]. Differences in single words that contain a digit, such as
// ids and amounts, are ignored.
type DeadLetterGroup struct {
	// Key identifies the group; see [DeadLetterFilter].
	Key       string     `json:"key"`
	Connector string     `json:"connector"`
	ErrorCode string     `json:"error_code"`
	Status    PushStatus `json:"status"` // failed or unknown
	// Words is [Push.Words] of the newest dead letter of the group.
	Words string `json:"words"`
	Count int    `json:"count"`
	// OldestAt and NewestAt are when the group's first and last push ended.
	OldestAt time.Time `json:"oldest_at"`
	NewestAt time.Time `json:"newest_at"`
}

// DeadLetterGroups are the groups of a tenant's dead letters, the largest first.
type DeadLetterGroups struct {
	Items []DeadLetterGroup `json:"items"`
	// Seen is the number of dead letters that were grouped: at most
	// [MaxGrouped], the newest. Capped is true when older ones were left out.
	Seen   int  `json:"seen"`
	Capped bool `json:"capped"`
}

// MaxGrouped bounds how many dead letters are grouped.
const MaxGrouped = 5000

// Words is the target's own answer, else the last error.
func (p *Push) Words() string {
	if p.TargetSays != "" {
		return p.TargetSays
	}
	return p.LastError
}

// GroupKey is the key of the push's [DeadLetterGroup].
func (p *Push) GroupKey() string {
	words := strings.Fields(p.Words())
	for i, w := range words {
		if strings.ContainsAny(w, "0123456789") {
			words[i] = "#"
		}
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{
		p.Connector, p.ErrorCode, string(p.Status), strings.Join(words, " "),
	}, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// MaxDeadLetterBatch bounds how many dead letters one call acts on, except for a replay of all.
const MaxDeadLetterBatch = 1000

// DeadLetterSelection names dead letters, by ids or by a filter. With DryRun
// nothing changes, and the answer says what would change.
type DeadLetterSelection struct {
	// IDs are ids of pushes, at most [MaxDeadLetterBatch]. Exclusive with Filter.
	IDs []string `json:"ids,omitempty"`
	// Filter selects at most [MaxDeadLetterBatch], newest first; nil with IDs.
	Filter *DeadLetterFilter `json:"filter,omitempty"`
	DryRun bool              `json:"dry_run,omitempty"`
}

// checkSelection refuses an empty or too large selection. A filter names at least
// one field, so that a forgotten field does not select everything.
func (s DeadLetterSelection) checkSelection(v *Violations, all bool) {
	given := 0
	for _, one := range []bool{len(s.IDs) > 0, s.Filter != nil, all} {
		if one {
			given++
		}
	}
	switch f := s.Filter; {
	case given > 1:
		v.Add("/ids", "cannot be combined with a filter or all")
	case given == 0:
		v.Add("/ids", "is required, or a filter (a replay also takes all)")
	case len(s.IDs) > MaxDeadLetterBatch:
		v.Add("/ids", "has more than %d items", MaxDeadLetterBatch)
	case f == nil:
	case f.Connector == "" && f.Code == "" && f.Status == "" && f.Group == "" && f.Since == nil && f.Limit == 0:
		v.Add("/filter", "must name a connector, a code, a status, a group, since or a limit")
	case f.Status != "" && f.Status != PushFailed && f.Status != PushUnknown:
		v.Add("/filter/status", "must be failed or unknown")
	case f.Limit < 0 || f.Limit > MaxDeadLetterBatch:
		v.Add("/filter/limit", "must be 1 to %d", MaxDeadLetterBatch)
	}
}

// ReplayRequest selects dead letters for a replay. All selects every dead letter.
type ReplayRequest struct {
	// Exactly one of IDs, All and Filter is given.
	IDs []string `json:"ids,omitempty"`
	All bool     `json:"all,omitempty"`
	// Filter is as in [DeadLetterSelection].
	Filter *DeadLetterFilter `json:"filter,omitempty"`
	// DryRun changes nothing, and answers what would happen.
	DryRun bool `json:"dry_run,omitempty"`
}

// Selection returns the request's ids or filter; All is not part of it.
func (r *ReplayRequest) Selection() DeadLetterSelection {
	return DeadLetterSelection{IDs: r.IDs, Filter: r.Filter, DryRun: r.DryRun}
}

// Validate returns an [Error] with code invalid unless the request has exactly one valid
// selection.
func (r *ReplayRequest) Validate() error {
	var v Violations
	r.Selection().checkSelection(&v, r.All)
	return v.Err()
}

// DiscardRequest selects failed dead letters to close permanently.
type DiscardRequest struct {
	DeadLetterSelection
	// Reason says why, at most [MaxNotesBytes] bytes. Required.
	Reason string `json:"reason"`
}

// Validate returns an [Error] with code invalid.
func (r *DiscardRequest) Validate() error {
	var v Violations
	r.checkSelection(&v, false)
	checkReason(&v, r.Reason)
	return v.Err()
}

// ResolveRequest selects pushes with unknown outcomes and says what happened at the
// target.
type ResolveRequest struct {
	DeadLetterSelection
	Resolution
}

// Validate returns an [Error] with code invalid.
func (r *ResolveRequest) Validate() error {
	var v Violations
	r.checkSelection(&v, false)
	r.check(&v)
	return v.Err()
}

// Validate returns an [Error] with code invalid.
func (r *Resolution) Validate() error {
	var v Violations
	r.check(&v)
	return v.Err()
}

func (r *Resolution) check(v *Violations) {
	if r.Outcome != "applied" && r.Outcome != "failed" {
		v.Add("/outcome", "must be applied or failed")
	}
	checkReason(v, r.Reason)
}

func checkReason(v *Violations, reason string) {
	if reason == "" {
		v.Add("/reason", "is required")
	}
	v.CheckText("/reason", reason, MaxNotesBytes)
}

// ReplayAnswer has one result per dead letter.
type ReplayAnswer struct {
	// DryRun repeats the request's.
	DryRun bool `json:"dry_run,omitempty"`
	// Results are in the order of the request, or newest first.
	Results []DeadLetterResult `json:"results"`
	// Replayed and Skipped count the results; in a dry run, what they would be.
	Replayed int `json:"replayed"`
	Skipped  int `json:"skipped"`
}

// DeadLetterAnswer has one result per dead letter of a discard or a resolve.
type DeadLetterAnswer struct {
	// DryRun repeats the request's.
	DryRun bool `json:"dry_run,omitempty"`
	// Results are in the order of the request, or newest first.
	Results []DeadLetterResult `json:"results"`
	// Done and Skipped count the results; in a dry run, what they would be.
	Done    int `json:"done"`
	Skipped int `json:"skipped"`
}

// DeadLetterResult is the result for one dead letter.
type DeadLetterResult struct {
	// ID is the id of the push.
	ID string `json:"id"`
	// ActionID is the push's action; "" for a duplicate, and after an error.
	ActionID string `json:"action_id,omitempty"`
	// Result is the new state (queued, discarded, applied or failed); in a dry run,
	// the state that it would get. "" when skipped.
	Result string `json:"result,omitempty"`
	// Skipped is the code of the reason why nothing was done.
	Skipped string `json:"skipped,omitempty"`
	// Detail explains Skipped in words.
	Detail string `json:"detail,omitempty"`
}
