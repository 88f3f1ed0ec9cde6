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

// Stage is a part of an approval's time, with whom it asks besides those of the
// stages before: they keep their right.
type Stage struct {
	Who Audience `json:"who"`
	// For is how long the stage lasts.
	For Duration `json:"for"`
	// Notify names channels that are told when the stage is reached, besides those
	// that the routes name.
	Notify []string `json:"notify,omitempty"`
	// From and Until follow from the approval's times. They are set by
	// [Approval.See], and never stored.
	From  time.Time `json:"from,omitzero"`
	Until time.Time `json:"until,omitzero"`
}

// TimeoutRule is what becomes of a question that nobody answered in time. Never
// is it an approval.
type TimeoutRule string

// The rules. "" lets the question expire.
const (
	// TimeoutReject has the policy reject the action.
	TimeoutReject TimeoutRule = "reject"
	// TimeoutExtend gives the question ExtendBy more, once; then it expires.
	TimeoutExtend TimeoutRule = "extend"
)

// Timing is how a question goes through its time. It is frozen with the
// approval. The zero value asks everybody at once and lets the question expire.
type Timing struct {
	Stages []Stage `json:"stages,omitempty"`
	// Reminders are times after the question was asked.
	Reminders []Duration  `json:"reminders,omitempty"`
	OnTimeout TimeoutRule `json:"on_timeout,omitempty"`
	ExtendBy  Duration    `json:"extend_by,omitempty"`
}

// IsZero reports whether the schedule says nothing.
func (s *Timing) IsZero() bool {
	return len(s.Stages) == 0 && len(s.Reminders) == 0 && s.OnTimeout == "" && s.ExtendBy == 0
}

// Frozen returns a copy without what follows from the times.
func (s *Timing) Frozen() Timing {
	out := *s
	out.Stages = slices.Clone(s.Stages)
	for i := range out.Stages {
		out.Stages[i].From, out.Stages[i].Until = time.Time{}, time.Time{}
	}
	return out
}

// Lasts is the sum of the stages, 0 for none.
func (s *Timing) Lasts() time.Duration {
	var sum time.Duration
	for _, stage := range s.Stages {
		sum += stage.For.D()
	}
	return sum
}

// Within returns the schedule of a question that ends after total at the latest,
// where lasts is how long it would be without an extension.
func (s Timing) Within(lasts, total time.Duration) Timing {
	out := s.Frozen()
	if left := total - lasts; left <= 0 {
		out.ExtendBy = 0
	} else {
		out.ExtendBy = min(out.ExtendBy, Duration(left))
	}
	if out.OnTimeout == TimeoutExtend && out.ExtendBy == 0 {
		out.OnTimeout = ""
	}
	lasts = min(lasts, total)
	rest := Duration(lasts)
	for i := range out.Stages {
		out.Stages[i].For = min(out.Stages[i].For, rest)
		if rest -= out.Stages[i].For; rest == 0 {
			out.Stages = out.Stages[:i+1]
			break
		}
	}
	end := lasts + out.ExtendBy.D()
	out.Reminders = slices.DeleteFunc(slices.Clone(out.Reminders), func(d Duration) bool { return d.D() >= end })
	return out
}

// End is when nobody can answer any more: ExpiresAt, with the extension that is
// still to come.
func (a *Approval) End() time.Time {
	if a.Extended {
		return a.ExpiresAt
	}
	return a.ExpiresAt.Add(a.ExtendBy.D())
}

// FirstEnd is the end of the last stage, before any extension.
func (a *Approval) FirstEnd() time.Time { return a.End().Add(-a.ExtendBy.D()) }

// StageAt returns the number of the stage at a time, from 1; 0 where the approval
// has no stages. An extension belongs to the last one.
func (a *Approval) StageAt(at time.Time) int {
	from := a.CreatedAt
	for i, s := range a.Stages {
		from = from.Add(s.For.D())
		if at.Before(from) {
			return i + 1
		}
	}
	return len(a.Stages)
}

// See sets what follows from the clock: the current stage, the times of all, and
// whether the extension has begun. at is now, or when the question was settled.
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

// See sets what follows from the clock: see [Approval.See]. A pending action whose
// question has run out shows as what it is, whether or not that is written down.
func (a *Action) See(now time.Time) {
	ap := a.Approval
	if ap == nil {
		return
	}
	if a.Status == StatusPending && !now.Before(ap.End()) {
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

// PolicyName names the rule that judged the action as one that decides.
func (a *Action) PolicyName() string {
	if len(a.Policy.Rules) > 0 {
		return "policy:" + a.Policy.Rules[0]
	}
	return "policy"
}

// MomentKind is what happens to a question by the clock.
type MomentKind string

// The kinds of moments, named as their log entries.
const (
	MomentEscalated MomentKind = "hitl.escalated"
	MomentReminded  MomentKind = "hitl.reminded"
	MomentExtended  MomentKind = "hitl.escalation_timeout"
)

// Moment is a time at which something is to be told of a question that waits.
type Moment struct {
	At   time.Time
	Kind MomentKind
	// Number is that of the stage reached, or of the reminder, from 1.
	Number int
}

// Moments lists what is to be told before the question ends, in its order. The
// first stage is told by the proposal.
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

// NextMoment returns when the moment after the first told ones is; nil for none.
func (a *Approval) NextMoment(told int) *time.Time {
	list := a.Moments()
	if told >= len(list) {
		return nil
	}
	return &list[told].At
}

// Everybody is whom the approval asks over all its time.
func (a *Approval) Everybody() Audience {
	all := Audience{slices.Clone(a.Roles), slices.Clone(a.People), slices.Clone(a.Groups)}
	for _, s := range a.Stages {
		all = all.Or(s.Who)
	}
	return all
}

// Reached is whom the approval asks in the current stage: see [Approval.See].
func (a *Approval) Reached() Audience {
	all := Audience{a.Roles, a.People, a.Groups}
	for _, s := range a.Stages[:min(a.Stage, len(a.Stages))] {
		all = all.Or(s.Who)
	}
	return all
}

// AsksFirst reports whether a stage, by its number from 1, is the first that asks
// the principal.
func (a *Approval) AsksFirst(p *Principal, stage int) bool {
	for i, s := range a.Stages {
		if s.Who.Has(p) {
			return i+1 == stage
		}
	}
	return false
}

// AudienceAt is whom the approval asks at a time.
func (a *Approval) AudienceAt(at time.Time) Audience {
	all := Audience{slices.Clone(a.Roles), slices.Clone(a.People), slices.Clone(a.Groups)}
	for _, s := range a.Stages[:a.StageAt(at)] {
		all = all.Or(s.Who)
	}
	return all
}
