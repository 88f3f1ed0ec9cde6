package gatehouse

import (
	"slices"
	"time"
)

// ApprovalStatus is the state of a question to people.
type ApprovalStatus string

// The states of an approval.
const (
	ApprovalRequested ApprovalStatus = "requested"
	ApprovalApproved  ApprovalStatus = "approved"
	ApprovalRejected  ApprovalStatus = "rejected"
	ApprovalExpired   ApprovalStatus = "expired"
	ApprovalCanceled  ApprovalStatus = "canceled"
)

// Approval is the question to people about one action. Its creation freezes
// who may answer, the quorum and the times.
type Approval struct {
	ID string `json:"id"`
	// ActionID is the action that the question is about.
	ActionID string `json:"action_id"`
	// Status is requested until a decision, an expiry or a cancellation.
	Status ApprovalStatus `json:"status"`
	// Required is the number of distinct persons who must approve.
	Required int `json:"required"`
	// Roles, People and Groups say who may answer from the beginning: holders of
	// any of the roles, the named principals (by id or name), and members of any of
	// the groups. Later stages add people. Excluded people may never answer.
	Roles  []Role   `json:"roles"`
	People []string `json:"people,omitempty"`
	Groups []string `json:"groups,omitempty"`
	// Excluded lists principal ids, person ids and names that cannot decide: those of the proposer,
	// the sponsor, the person on whose behalf the action is proposed, and other contributors.
	Excluded []string `json:"excluded"`
	// ExpiresAt is the end of the last stage, or of the extension once that has
	// begun. See [Approval.End].
	ExpiresAt time.Time `json:"expires_at"`
	CreatedAt time.Time `json:"created_at"`
	Timing
	// Stage is the number of the current stage, from 1; 0 without stages. Extended
	// is true once the extension has begun. [Approval.See] sets both.
	Stage    int  `json:"stage,omitempty"`
	Extended bool `json:"extended,omitempty"`
	// MomentsDone is how many of [Approval.Moments], counted from the first, are done: each was recorded in the
	// audit log, or skipped because a later reminder, or the approval's end, was already due.
	MomentsDone int `json:"-"`
	// RejectsAt is when a held rejection takes effect; nil for none. It is derived: see
	// [Action.HeldRejection].
	RejectsAt *time.Time `json:"rejects_at,omitempty"`
	// About is what an approval step of a workflow asks about; nil for none.
	About *About `json:"about,omitempty"`
	// TargetChanged is set once somebody reports that the target has changed since
	// the proposal; see [TargetChange].
	TargetChanged *TargetMark `json:"target_changed,omitempty"`
	// Conversation counts the comments on the action, which are in [Action.Comments].
	Conversation Conversation `json:"conversation,omitzero"`
	// Assignee is nil while the action is assigned to nobody.
	Assignee *Assignee `json:"assignee,omitempty"`
	// Evaluated are the results of registered evaluators, in the order of their arrival.
	Evaluated []Evaluated `json:"evaluated,omitempty"`
	// Confirm is set at L4 and L5, nil below.
	Confirm *Confirm `json:"confirm"`
	// Votes holds at most one vote per person.
	Votes []Vote `json:"votes"`
}

// Confirm asks the approver to retype the most important value of the change.
type Confirm struct {
	// Prompt tells the approver what to retype.
	Prompt string `json:"prompt"`
	// Value is the exact text to retype.
	Value string `json:"value"`
}

// DecisionKind is the answer of a vote or a decision.
type DecisionKind string

// The two answers.
const (
	Approve DecisionKind = "approved"
	Reject  DecisionKind = "rejected"
)

// Vote is one person's answer, with the digest that they saw. A person has at
// most one vote per approval.
type Vote struct {
	// Person identifies the human, PrincipalID and Name the principal that they
	// used.
	Person      string `json:"person"`
	PrincipalID string `json:"principal_id"`
	Name        string `json:"name"`
	// Decision is the answer. A later vote of the person replaces it.
	Decision DecisionKind `json:"decision"`
	// Notes are the voter's words, at most [MaxNotesBytes] bytes.
	Notes string `json:"notes,omitempty"`
	// Via is the channel, set by the server.
	Via Channel `json:"via"`
	// Digest is the digest that the voter saw; "" where the request had none.
	Digest Digest `json:"digest,omitempty"`
	// At is the time of the vote, by the store's clock.
	At time.Time `json:"at"`
	// For is the principal for whom the voter votes under a delegation, and ForName
	// that principal's name. Both are "" when voters use their own right.
	For     string `json:"for,omitempty"`
	ForName string `json:"for_name,omitempty"`
	// Grant is the id of the [Grant] or [Mandate] by which the vote was given in advance, "" for
	// none.
	Grant string `json:"grant,omitempty"`
}

// Approvals counts the approving votes.
func (a *Approval) Approvals() int {
	n := 0
	for _, v := range a.Votes {
		if v.Decision == Approve {
			n++
		}
	}
	return n
}

// NamesAnybody reports whether the approval names anybody. When it names nobody, every
// approver may answer.
func (a *Approval) NamesAnybody() bool {
	return len(a.Roles) > 0 || len(a.People) > 0 || len(a.Groups) > 0
}

// Asks reports whether the approval asks the principal at a time, or names nobody.
// It checks neither exclusions nor the right to decide. A principal who is asked at
// one time is asked at every later time.
func (a *Approval) Asks(p *Principal, at time.Time) bool {
	if len(a.Stages) == 0 {
		return !a.NamesAnybody() || a.Audience().Has(p)
	}
	return slices.ContainsFunc(a.Stages[:a.StageAt(at)], func(s Stage) bool { return s.Who.Has(p) })
}

// EverAsks reports whether the approval asks the principal at any time.
func (a *Approval) EverAsks(p *Principal) bool {
	if len(a.Stages) == 0 {
		return !a.NamesAnybody() || a.Audience().Has(p)
	}
	return slices.ContainsFunc(a.Stages, func(s Stage) bool { return s.Who.Has(p) })
}

// Whom lists an audience in words: roles, then groups as "group finance", then
// people.
func Whom(roles []Role, groups, people []string) []string {
	who := make([]string, 0, len(roles)+len(groups)+len(people))
	for _, r := range roles {
		who = append(who, string(r))
	}
	for _, g := range groups {
		who = append(who, "group "+g)
	}
	return append(who, people...)
}

// VoteOf returns the vote of a person, nil when there is none.
func (a *Approval) VoteOf(person string) *Vote {
	for i := range a.Votes {
		if a.Votes[i].Person == person {
			return &a.Votes[i]
		}
	}
	return nil
}
