package gatehouse

import (
	"cmp"
	"slices"
	"time"
)

// The bounds of a schedule.
const (
	MaxStages    = 10
	MaxReminders = 10
	// MaxStageChannels bounds the extra channels of one stage.
	MaxStageChannels = 5
)

// Stage is a part of an approval's duration, with the people whom it asks. The
// people of earlier stages keep their right to answer.
type Stage struct {
	// Who lists the people whom this stage adds.
	Who Audience `json:"who"`
	// For is how long the stage lasts.
	For Duration `json:"for"`
	// Notify names channels that get a message when the stage begins, in addition
	// to the channels of the routes.
	Notify []string `json:"notify,omitempty"`
	// From and Until are derived from the approval's times. [Approval.See] sets
	// them; they are never stored.
	From  time.Time `json:"from,omitzero"`
	Until time.Time `json:"until,omitzero"`
}

// TimeoutRule is what happens to a question that is still undecided when its time ends. It never approves.
type TimeoutRule string

// The rules. "" lets the question expire.
const (
	// TimeoutReject lets the policy reject the action.
	TimeoutReject TimeoutRule = "reject"
	// TimeoutExtend extends the question by ExtendBy, once; then it expires.
	TimeoutExtend TimeoutRule = "extend"
)

// Timing is the schedule of a question. It is frozen with the approval. The zero
// value asks everybody at once and lets the question expire.
type Timing struct {
	// Stages follow one another from the approval's creation, at most [MaxStages].
	Stages []Stage `json:"stages,omitempty"`
	// Reminders are delays after the question was asked, at most [MaxReminders].
	Reminders []Duration `json:"reminders,omitempty"`
	// OnTimeout "" lets the question expire.
	OnTimeout TimeoutRule `json:"on_timeout,omitempty"`
	// ExtendBy is set with [TimeoutExtend] only.
	ExtendBy Duration `json:"extend_by,omitempty"`
}

// IsZero reports whether the schedule is empty.
func (s *Timing) IsZero() bool {
	return len(s.Stages) == 0 && len(s.Reminders) == 0 && s.OnTimeout == "" && s.ExtendBy == 0
}

// Frozen returns a copy without the derived times.
func (s *Timing) Frozen() Timing {
	out := *s
	out.Stages = slices.Clone(s.Stages)
	for i := range out.Stages {
		out.Stages[i].From, out.Stages[i].Until = time.Time{}, time.Time{}
	}
	return out
}

// Lasts returns the sum of the stages' durations, 0 without stages.
func (s *Timing) Lasts() time.Duration {
	var sum time.Duration
	for _, stage := range s.Stages {
		sum += stage.For.D()
	}
	return sum
}

// Within returns the schedule, cut so that the question is open for at most total. first is
// the question's duration without an extension.
func (s Timing) Within(first, total time.Duration) Timing {
	out := s.Frozen()
	if left := total - first; left <= 0 {
		out.ExtendBy = 0
	} else {
		out.ExtendBy = min(out.ExtendBy, Duration(left))
	}
	if out.OnTimeout == TimeoutExtend && out.ExtendBy == 0 {
		out.OnTimeout = ""
	}
	first = min(first, total)
	rest := Duration(first)
	for i := range out.Stages {
		out.Stages[i].For = min(out.Stages[i].For, rest)
		if rest -= out.Stages[i].For; rest == 0 {
			out.Stages = out.Stages[:i+1]
			break
		}
	}
	end := first + out.ExtendBy.D()
	out.Reminders = slices.DeleteFunc(slices.Clone(out.Reminders), func(d Duration) bool { return d.D() >= end })
	return out
}

// End returns when answering ends, including an extension, whether or not the extension
// has begun.
func (a *Approval) End() time.Time {
	if a.Extended {
		return a.ExpiresAt
	}
	return a.ExpiresAt.Add(a.ExtendBy.D())
}

// FirstEnd returns when answering ends without an extension.
func (a *Approval) FirstEnd() time.Time { return a.End().Add(-a.ExtendBy.D()) }

// StageAt returns the number of the stage at a time, from 1; 0 for an approval
// without stages. An extension belongs to the last stage.
func (a *Approval) StageAt(at time.Time) int {
	until := a.CreatedAt
	for i, s := range a.Stages {
		until = until.Add(s.For.D())
		if at.Before(until) {
			return i + 1
		}
	}
	return len(a.Stages)
}

// See sets the fields that follow from the clock: the current stage, the times of
// all stages, whether the extension has begun, and ExpiresAt. at is the time of the
// decision, the end of an approval that ended undecided, or now.
func (a *Approval) See(at time.Time) {
	end, first := a.End(), a.FirstEnd()
	a.Extended = a.ExtendBy > 0 && !at.Before(first)
	if a.ExpiresAt = first; a.Extended {
		a.ExpiresAt = end
	}
	a.Stage = a.StageAt(at)
	if len(a.Stages) == 0 {
		return
	}
	a.Stages = slices.Clone(a.Stages)
	from := a.CreatedAt
	for i := range a.Stages {
		s := &a.Stages[i]
		s.From, s.Until = from, from.Add(s.For.D())
		from = s.Until
	}
	a.Stages[len(a.Stages)-1].Until = a.ExpiresAt
}

// See sets the fields that follow from the clock: see [Approval.See]. A pending
// action whose question has ended shows as expired or rejected, even before the
// sweeper stores the status; a held rejection whose hold has ended shows as rejected.
func (a *Action) See(now time.Time) {
	ap := a.Approval
	if ap == nil {
		return
	}
	if v, at := a.HeldRejection(); v != nil {
		if ap.RejectsAt = &at; !now.Before(at) {
			a.Status, ap.Status, ap.RejectsAt = StatusRejected, ApprovalRejected, nil
			a.DecidedBy, a.DecidedVia, a.DecidedAt = v.Name, v.Via, &v.At
		}
	} else if a.Status == StatusPending && !now.Before(ap.End()) {
		a.Status, ap.Status = StatusExpired, ApprovalExpired
		if ap.OnTimeout == TimeoutReject {
			a.Status, a.DecidedBy, a.DecidedVia = StatusRejected, a.PolicyName(), ViaPolicy
		}
	}
	at := now
	switch {
	case a.DecidedAt != nil:
		at = *a.DecidedAt
	case a.Status != StatusPending:
		at = ap.End()
	}
	ap.See(at)
}

// HeldRejection returns the vote that rejects a pending action, and the time at which
// the rejection takes effect: the end of the hold, or of the question where that is
// earlier. Until then the action stays pending, nobody can decide it, and Undo can
// take the rejection back. It takes effect at once if nothing waits for the action any
// longer: the workflow run that proposed it has ended, or its callback's task is gone.
// The vote is nil for an action without a held rejection.
func (a *Action) HeldRejection() (v *Vote, at time.Time) {
	if a.Status != StatusPending || a.Approval == nil {
		return nil, at
	}
	for i := range a.Approval.Votes {
		if v = &a.Approval.Votes[i]; v.Decision != Reject {
			continue
		}
		if at = v.At.Add(a.HoldFor.D()); at.After(a.Approval.End()) {
			at = a.Approval.End()
		}
		return v, at
	}
	return nil, at
}

// PolicyName returns the name under which the policy decides: the rule that judged
// the action.
func (a *Action) PolicyName() string {
	if len(a.Policy.Rules) > 0 {
		return "policy:" + a.Policy.Rules[0]
	}
	return "policy"
}

// MomentKind is an event in the schedule of a question.
type MomentKind string

// The kinds of moments. The values are the types of their log entries.
const (
	MomentEscalated MomentKind = "hitl.escalated"
	MomentReminded  MomentKind = "hitl.reminded"
	MomentExtended  MomentKind = "hitl.escalation_timeout"
)

// Moment is a time at which a waiting question has an event.
type Moment struct {
	At time.Time
	// Kind is the event's type in the log.
	Kind MomentKind
	// Number is the number of the stage, or of the reminder, from 1.
	Number int
}

// Moments lists the events before the question ends, in order. The first stage has
// none: the proposal's own entry announces it.
func (a *Approval) Moments() []Moment {
	var list []Moment
	from := a.CreatedAt
	for i, s := range a.Stages {
		if i > 0 {
			list = append(list, Moment{from, MomentEscalated, i + 1})
		}
		from = from.Add(s.For.D())
	}
	if a.ExtendBy > 0 {
		list = append(list, Moment{a.FirstEnd(), MomentExtended, 1})
	}
	for i, after := range a.Reminders {
		list = append(list, Moment{a.CreatedAt.Add(after.D()), MomentReminded, i + 1})
	}
	slices.SortStableFunc(list, func(x, y Moment) int { return cmp.Compare(x.At.UnixMicro(), y.At.UnixMicro()) })
	return list
}

// NextMoment returns the time of the first moment that is not done, nil for none. done is the number of
// moments that are done: see [Approval.MomentsDone].
func (a *Approval) NextMoment(done int) *time.Time {
	list := a.Moments()
	if done >= len(list) {
		return nil
	}
	return &list[done].At
}

// Everybody returns the people whom the approval asks at any time.
func (a *Approval) Everybody() Audience { return a.audienceWith(a.Stages) }

// Reached returns the people whom the approval asks up to the current stage: see
// [Approval.See].
func (a *Approval) Reached() Audience {
	all := Audience{a.Roles, a.People, a.Groups}
	for _, s := range a.Stages[:min(a.Stage, len(a.Stages))] {
		all = all.Or(s.Who)
	}
	return all
}

// AsksFirst reports whether the stage with this number, from 1, is the first that
// asks the principal.
func (a *Approval) AsksFirst(p *Principal, stage int) bool {
	for i, s := range a.Stages {
		if s.Who.Has(p) {
			return i+1 == stage
		}
	}
	return false
}

// AudienceAt returns the people whom the approval asks at a time.
func (a *Approval) AudienceAt(at time.Time) Audience { return a.audienceWith(a.Stages[:a.StageAt(at)]) }

func (a *Approval) audienceWith(stages []Stage) Audience {
	all := Audience{slices.Clone(a.Roles), slices.Clone(a.People), slices.Clone(a.Groups)}
	for _, s := range stages {
		all = all.Or(s.Who)
	}
	return all
}
