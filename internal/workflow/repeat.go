package workflow

import (
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/form"
)

// DefaultRepeats is how often a step repeats others by default, MaxRepeats the
// maximum that it can set.
const (
	DefaultRepeats = 3
	MaxRepeats     = gatehouse.MaxIterations - 1
)

// Refusal says what happens to a step whose action was rejected or has expired.
// The zero Refusal fails the step.
type Refusal struct {
	// Continue lets the step succeed, with an output that describes the rejection.
	Continue bool
	// Repeat is the step to which the run goes back; "" for none. That step,
	// the refused step and those between run again, at most Max times.
	Repeat string
	Max    int
}

// Refusal returns what happens to the step when its action ends in the status.
func (s *Step) Refusal(status gatehouse.Status) Refusal {
	switch status {
	case gatehouse.StatusRejected:
		return s.OnRejected
	case gatehouse.StatusExpired:
		return s.OnExpired
	}
	return Refusal{}
}

// Repeats returns, in file order, the steps that run again when the run goes
// back from the step id to the one that r names.
func (d *Definition) Repeats(id string, r Refusal) []*Step {
	if r.Repeat == "" {
		return nil
	}
	ids := make([]string, len(d.Steps))
	for i, s := range d.Steps {
		ids[i] = s.ID
	}
	up, _ := upstream(ids, d.Needs())
	var out []*Step
	for _, s := range d.Steps {
		if between(up, r.Repeat, id, s.ID) {
			out = append(out, s)
		}
	}
	return out
}

// Repeated reports whether a step may run more than once in a run.
func (d *Definition) Repeated(id string) bool { return d.repeated[id] }

// between reports whether a step is first, is last, or lies between: last needs
// it, and it needs first.
func between(up map[string]map[string]bool, first, last, id string) bool {
	return id == first || id == last || up[last][id] && up[id][first]
}

// repeats reads the steps' refusals, and determines which steps may run more
// than once.
func (p *parser) repeats(read []form.Fields) {
	p.def.repeated = make(map[string]bool)
	p.refused = make(map[string]map[string]bool)
	for i, f := range read {
		s := p.def.Steps[i]
		if f.Node == nil || s.ID == "" || p.def.byID[s.ID] != s {
			continue
		}
		rejected, expired := f.Values["on_rejected"], f.Values["on_expired"]
		s.OnRejected = p.refusal(s, f, rejected, "on_rejected")
		s.OnExpired = p.refusal(s, f, expired, "on_expired")
		if s.OnRejected == (Refusal{}) && s.OnExpired == (Refusal{}) {
			continue
		}
		for id := range p.known {
			repeats := false
			for _, r := range []Refusal{s.OnRejected, s.OnExpired} {
				repeats = repeats || r.Repeat != "" && between(p.up, r.Repeat, s.ID, id)
			}
			if repeats {
				p.def.repeated[id] = true
			}
			if repeats || p.up[id][s.ID] {
				if p.refused[id] == nil {
					p.refused[id] = make(map[string]bool)
				}
				p.refused[id][s.ID] = true
			}
		}
	}
}

func (p *parser) refusal(s *Step, f form.Fields, n *yaml.Node, what string) (r Refusal) {
	if n == nil {
		return r
	}
	if n.Kind != yaml.MappingNode {
		switch word := p.Text(n, what); word {
		case "fail", "":
		case "continue":
			r.Continue = true
		default:
			p.Fail(n, "%s must be fail, continue, or repeat with the step to go back to", what)
		}
		return r
	}
	m := p.mappingOf(n, what)
	p.need(m, what, "repeat")
	r.Max = DefaultRepeats
	if v := m.Values["max"]; v != nil {
		r.Max = p.Whole(v, "max", MaxRepeats)
	}
	v := m.Values["repeat"]
	to := p.Text(v, "repeat")
	switch {
	case to == "":
		return Refusal{}
	case !p.known[to]:
		p.Fail(v, "there is no step %s", gatehouse.Quote(to))
		return Refusal{}
	case !p.up[s.ID][to]:
		p.Fail(v, "step %s cannot repeat %s, which it does not need", s.ID, to)
		return Refusal{}
	case f.Values["for_each"] != nil:
		p.Fail(v, "a step with for_each cannot repeat an earlier step")
		return Refusal{}
	}
	r.Repeat = to
	// A step outside the repetition would run once, on data that the repetition
	// replaces.
	for _, other := range p.def.Steps {
		if p.up[other.ID][to] && !between(p.up, to, s.ID, other.ID) && !p.up[other.ID][s.ID] {
			p.Fail(
				v,
				"step %s needs %s, but is not repeated with it: %s must need it, or it must need %s",
				other.ID, to, s.ID, s.ID,
			)
		}
	}
	return r
}

// Next returns the steps to run again when the action of s was rejected or has expired.
// ok is false when the run does not go back: r names no step, s has been repeated r.Max
// times, or a step has reached gatehouse.MaxIterations.
func (d *Definition) Next(run *gatehouse.Run, s *gatehouse.Step, r Refusal) (steps []*Step, ok bool) {
	id, n := s.Iteration()
	if r.Repeat == "" || n > r.Max {
		return nil, false
	}
	steps = d.Repeats(id, r)
	for _, next := range steps {
		if _, n := run.Latest(next.ID).Iteration(); n >= gatehouse.MaxIterations {
			return nil, false
		}
	}
	return steps, true
}

// RefusedOutput is the output of a step that succeeds although its action was rejected
// or has expired: a description of the rejection, for other steps. An output of more
// than MaxOutput bytes leaves out the change.
func RefusedOutput(a *gatehouse.Action, s *gatehouse.Step, notes string) gatehouse.JSON {
	_, n := s.Iteration()
	members := []gatehouse.Member{
		{Name: "action_id", Value: gatehouse.StringJSON(a.ID)},
		{Name: "status", Value: gatehouse.StringJSON(string(a.Status))},
		{Name: "decided_by", Value: gatehouse.StringJSON(a.DecidedBy)}, {Name: "notes", Value: gatehouse.StringJSON(notes)},
		{Name: "iteration", Value: gatehouse.JSON(strconv.Itoa(n))}, {Name: "change", Value: a.ProposedChange},
	}
	return bounded(members, 5)
}

// AppliedOutput is the output of a step whose action was applied. An output of more than MaxOutput bytes
// leaves out the change and the receipt.
func AppliedOutput(a *gatehouse.Action) gatehouse.JSON {
	return bounded(appliedMembers(a), appliedAlways)
}

// appliedAlways is the number of the first members of [appliedMembers] that every output has.
const appliedAlways = 4

func appliedMembers(a *gatehouse.Action) []gatehouse.Member {
	members := []gatehouse.Member{
		member("action_id", a.ID), member("status", string(a.Status)), member("decided_by", a.DecidedBy),
		member("digest", string(a.Digest)), {Name: "change", Value: a.ProposedChange},
	}
	if rc := a.Receipt; rc != nil {
		members = append(members, member("receipt_id", rc.ID), member("external_id", rc.ExternalID),
			gatehouse.Member{Name: "reversible", Value: gatehouse.JSON(strconv.FormatBool(rc.Reversible))},
			gatehouse.Member{Name: "response", Value: rc.ResponseMetadata})
	}
	return members
}

// bounded returns an object of all members, or of the first few if all have more than MaxOutput bytes.
func bounded(members []gatehouse.Member, few int) gatehouse.JSON {
	if out := gatehouse.ObjectJSON(members...); len(out) <= MaxOutput {
		return out
	}
	return gatehouse.ObjectJSON(members[:few]...)
}

// Refused reports whether a step's output is that of a refused action.
func Refused(output gatehouse.JSON) bool {
	status, _ := output.Get("status")
	return status.Equal(gatehouse.StringJSON(string(gatehouse.StatusRejected))) ||
		status.Equal(gatehouse.StringJSON(string(gatehouse.StatusExpired)))
}
