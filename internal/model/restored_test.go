package model

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse"
)

// restoring are the steps after restoring a backup.
func (m *match) restoring() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"mark": func(rt *rapid.T) {
			if rapid.IntRange(0, 2).Draw(rt, "restored") > 0 || len(m.model.actions) == 0 {
				// Marking ends the pushes that other steps need, and needs an earlier proposal.
				rt.Skip()
			}
			class := pick(rt, "class", "", "", "A", "C")
			m.play("mark", func() string { return m.model.markUnknown(class) },
				func(s *side) string { return s.markUnknown(class) })
		},
		"ask": func(*rapid.T) { m.play("ask", m.model.askTargets, (*side).askTargets) },
	}
}

// markUnknown marks pushes in progress as possibly sent.
func (m *model) markUnknown(class string) string {
	n := 0
	for _, a := range m.actions {
		if a.push == nil || class != "" && map[string]string{"a": "A", "b": "B", "c": "C"}[a.operation] != class {
			continue
		}
		switch p := a.push; p.status {
		case gatehouse.PushQueued:
			p.status = gatehouse.PushPicking
			p.attempts++
		case gatehouse.PushPicking:
			p.attempts++
		case gatehouse.PushSent:
		default:
			continue
		}
		a.push.generation++
		a.push.doubt = true
		m.end(a, unknown, gatehouse.ErrorRestored)
		m.actor = "admin"
		n++
	}
	return fmt.Sprintf("marked %d", n)
}

// askTargets settles what the targets can tell. The absence of a class C effect
// is left to a person.
func (m *model) askTargets() string {
	settled := 0
	for _, a := range m.actions {
		if a.push == nil || a.push.status != gatehouse.PushUnknown || a.connector != "tell" {
			continue
		}
		switch {
		case m.effects[a] > 0:
			m.apply(a, "applied/read_back")
		case a.operation != "c":
			a.push.doubt = false
			a.receipts = append(a.receipts, "not_sent/read_back")
			m.end(a, failed, "not_applied")
			m.actor = "admin"
		default:
			continue
		}
		settled++
	}
	return fmt.Sprintf("settled %d", settled)
}

func (s *side) markUnknown(class string) string {
	no := false
	r := gatehouse.MarkUnknownRequest{Class: class}
	r.Before = s.find(0).ProposedAt.AddDate(100, 0, 0)
	dry, err := s.gate.MarkUnknown(s.admin, r)
	s.must(err)
	r.DryRun = &no
	done, err := s.gate.MarkUnknown(s.admin, r)
	s.must(err)
	if !slices.EqualFunc(dry.Items, done.Items,
		func(a, b gatehouse.MarkedPush) bool { return a.PushID == b.PushID && a.Was == b.Was }) || dry.Marked != 0 {
		s.t.Errorf("%s: the dry run has %+v, the mark %+v", s.name, dry, done)
	}
	return fmt.Sprintf("marked %d", done.Marked)
}

func (s *side) askTargets() string {
	answer, err := s.gate.AskTargets(s.admin, gatehouse.AskRequest{})
	s.must(err)
	return fmt.Sprintf("settled %d", answer.Settled)
}
