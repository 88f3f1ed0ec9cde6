package policy

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/form"
)

const minReminder = gatehouse.Duration(time.Minute)

// stage is a part of a question's duration.
type stage struct {
	audience audience
	duration time.Duration
	notify   []string
	at       Problem // position in the file
}

// timing is the schedule of a rule's or level's question.
type timing struct {
	stages    []stage
	reminders []time.Duration
	onTimeout gatehouse.TimeoutRule // "" takes the level's
	extendBy  time.Duration
}

// totalDuration returns the sum of the stages' durations.
func (t *timing) totalDuration() time.Duration {
	var sum time.Duration
	for _, s := range t.stages {
		sum += s.duration
	}
	return sum
}

// everybody returns the people whom the stages ask together.
func everybody(stages []stage) audience {
	var all audience
	for _, s := range stages {
		all = all.or(s.audience)
	}
	return all
}

// or returns the union.
func (a audience) or(b audience) audience {
	both := gatehouse.Audience{Roles: a.roles, People: a.people, Groups: a.groups}.
		Or(gatehouse.Audience{Roles: b.roles, People: b.people, Groups: b.groups})
	return audience{both.Roles, both.People, both.Groups}
}

// everybody returns the people whom the question asks at any time.
func (q *question) everybody() audience {
	if len(q.stages) == 0 {
		return q.audience
	}
	return everybody(q.stages)
}

// timing reads stages, reminders and on_timeout.
func (p *parser) timing(f form.Fields, q *question) {
	if n := f.Values["stages"]; n != nil {
		for _, key := range []string{"roles", "people", "groups", "expiry"} {
			if at := f.Values[key]; at != nil {
				p.Fail(at, "%s contradicts stages, which say who may answer, and for how long", key)
			}
		}
		for _, item := range p.few(n, "stages", gatehouse.MaxStages) {
			if s, ok := p.stage(item); ok {
				q.stages = append(q.stages, s)
			}
		}
		if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
			p.Fail(n, "stages is empty, so that nobody could answer")
		}
		if len(q.stages) > 0 {
			q.audience, q.expiry = q.stages[0].audience, q.totalDuration()
		}
	}
	for _, item := range p.few(f.Values["reminders"], "reminders", gatehouse.MaxReminders) {
		after := p.Duration(item, "a reminder", minReminder, maxExpiry).D()
		switch {
		case after == 0:
		case slices.Contains(q.reminders, after):
			p.Fail(item, "%s appears twice", gatehouse.Duration(after))
		case q.expiry > 0 && after >= q.expiry:
			p.Fail(item, "the question ends after %s, before this reminder", gatehouse.Duration(q.expiry))
		default:
			q.reminders = append(q.reminders, after)
		}
	}
	slices.Sort(q.reminders)
	p.onTimeout(f.Values["on_timeout"], q)
	if q.expiry+q.extendBy > maxExpiry.D() {
		p.Fail(f.Node, "the question would last longer than %s", maxExpiry)
	}
}

func (p *parser) stage(n *yaml.Node) (stage, bool) {
	f := p.Mapping(n, "a stage", "who", "for", "notify")
	if f.Node == nil {
		return stage{}, false
	}
	p.need(f, "a stage", "who", "for")
	s := stage{
		duration: p.Duration(f.Values["for"], "for", minStage, maxExpiry).D(),
		at:       Problem{Line: n.Line, Column: n.Column},
	}
	if who := f.Values["who"]; who != nil {
		if s.audience = p.audience(p.Mapping(who, "who", "roles", "people", "groups")); !s.audience.stated() {
			p.Fail(who, "who names nobody, so that nobody could answer")
		}
	}
	if p.few(f.Values["notify"], "notify", gatehouse.MaxStageChannels) != nil {
		s.notify = p.Texts(f.Values["notify"], "notify")
	}
	slices.Sort(s.notify)
	return s, true
}

func (p *parser) onTimeout(n *yaml.Node, q *question) {
	switch {
	case n == nil:
	case n.Kind == yaml.MappingNode:
		f := p.Mapping(n, "on_timeout", "extend")
		p.need(f, "on_timeout", "extend")
		q.onTimeout = gatehouse.TimeoutExtend
		q.extendBy = p.Duration(f.Values["extend"], "extend", minExpiry, maxExpiry).D()
	default:
		if q.onTimeout = gatehouse.TimeoutRule(p.Text(n, "on_timeout")); q.onTimeout != gatehouse.TimeoutReject &&
			q.onTimeout != "" {
			p.Fail(n, "on_timeout must be reject, or extend with a duration, as in on_timeout: {extend: 4h}; nothing is "+
				"approved by waiting")
			q.onTimeout = ""
		}
	}
}

// merge makes one question of two that both apply. At each time, a person who may
// answer must satisfy both; the shorter duration, the longer hold and the stricter timeout count.
// why says why nobody could answer.
func (q question) merge(r question) (_ question, why string) {
	both := q
	both.required = max(q.required, r.required)
	both.expiry = min(q.expiry, r.expiry)
	both.hold = longer(q.hold, r.hold)
	both.timing = timing{reminders: union(q.reminders, r.reminders)}
	switch {
	case q.onTimeout == gatehouse.TimeoutReject || r.onTimeout == gatehouse.TimeoutReject:
		both.onTimeout = gatehouse.TimeoutReject
	case q.onTimeout == gatehouse.TimeoutExtend && r.onTimeout == gatehouse.TimeoutExtend:
		both.onTimeout, both.extendBy = gatehouse.TimeoutExtend, min(q.extendBy, r.extendBy)
	}
	if len(q.stages) == 0 && len(r.stages) == 0 {
		if both.audience = q.audience.and(r.audience); !both.audience.stated() {
			return both, "the rules that matched name nobody in common who may approve"
		}
		return both, ""
	}
	var from time.Duration
	for _, until := range union(q.ends(), r.ends()) {
		if from >= both.expiry {
			break
		}
		s := stage{duration: min(until, both.expiry) - from, audience: q.askedAt(from).and(r.askedAt(from))}
		s.notify = union(q.notifiedAt(from), r.notifiedAt(from))
		if !s.audience.stated() {
			return both, "the rules that matched name nobody in common who may approve in stage " +
				fmt.Sprint(len(both.stages)+1)
		}
		both.stages = append(both.stages, s)
		from = until
	}
	both.audience = both.stages[0].audience
	return both, ""
}

// ends returns the times at which the stages end; a question without stages has
// one.
func (q *question) ends() []time.Duration {
	if len(q.stages) == 0 {
		return []time.Duration{q.expiry}
	}
	var list []time.Duration
	var sum time.Duration
	for _, s := range q.stages {
		sum += s.duration
		list = append(list, sum)
	}
	return list
}

// askedAt returns the people whom the question asks at a time after its start.
func (q *question) askedAt(at time.Duration) audience {
	if len(q.stages) == 0 {
		return q.audience
	}
	return everybody(q.stages[:q.reached(at)])
}

// notifiedAt returns the channels of the stage that begins at a time.
func (q *question) notifiedAt(at time.Duration) []string {
	var from time.Duration
	for _, s := range q.stages {
		if from == at {
			return s.notify
		}
		from += s.duration
	}
	return nil
}

// reached returns the number of stages that have begun.
func (q *question) reached(at time.Duration) int {
	var from time.Duration
	for i, s := range q.stages {
		if at < from {
			return i
		}
		from += s.duration
	}
	return len(q.stages)
}

// within cuts the stages so that they end at expiry, if they last longer.
func (q question) within(expiry time.Duration) question {
	if len(q.stages) > 0 && q.totalDuration() > expiry {
		left := expiry
		var kept []stage
		for _, s := range q.stages {
			if left <= 0 {
				break
			}
			s.duration = min(s.duration, left)
			left -= s.duration
			kept = append(kept, s)
		}
		q.stages = kept
	}
	q.expiry = min(q.expiry, expiry)
	return q
}

// verdict converts the timing for a verdict.
func (q *question) verdict() gatehouse.Timing {
	out := gatehouse.Timing{OnTimeout: q.onTimeout, ExtendBy: gatehouse.Duration(q.extendBy)}
	for _, s := range q.stages {
		a := s.audience
		out.Stages = append(out.Stages, gatehouse.Stage{
			Who: gatehouse.Audience{
				Roles: slices.Clone(a.roles), People: slices.Clone(a.people), Groups: slices.Clone(a.groups),
			},
			For: gatehouse.Duration(s.duration), Notify: slices.Clone(s.notify),
		})
	}
	for _, d := range q.reminders {
		if d < q.expiry+q.extendBy && len(out.Reminders) < gatehouse.MaxReminders {
			out.Reminders = append(out.Reminders, gatehouse.Duration(d))
		}
	}
	return out
}

// lintStages reports stages that are probably mistakes.
func lintStages(what string, q question, say func(at Problem, isError bool, format string, args ...any)) {
	for i, s := range q.stages {
		before := everybody(q.stages[:i])
		if i > 0 && before.covers(s.audience) {
			say(s.at, false, "%s: stage %d asks nobody whom an earlier stage does not ask already", what, i+1)
		} else {
			lintAudience(fmt.Sprintf("%s: stage %d", what, i+1), s.at, s.audience, say)
		}
	}
}

// covers reports whether a certainly includes everybody in b.
func (a audience) covers(b audience) bool {
	if a.everyone() {
		return true
	}
	return within(b.roles, a.roles) && within(b.people, a.people) && within(b.groups, a.groups)
}

func within[T comparable](list, of []T) bool {
	return !slices.ContainsFunc(list, func(v T) bool { return !slices.Contains(of, v) })
}

func union[T cmp.Ordered](a, b []T) []T {
	list := append(slices.Clone(a), b...)
	slices.Sort(list)
	return slices.Compact(list)
}
