package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// wakeAll moves the steps that have settled, lost their worker or are due,
// until none is left.
func (m *runModel) wakeAll() {
	for m.wakeOnce() {
	}
}

func (m *runModel) wakeOnce() bool {
	var settled, expired, due []*stepState
	var overdue []*runState
	for _, s := range m.steps() {
		if s.status == "waiting_approval" && s.act.ended() || s.status == "waiting" && s.child != nil && s.child.final() {
			settled = append(settled, s)
		}
		if s.status == "running" && !m.now.Before(s.leased) {
			expired = append(expired, s)
		}
		if !s.due.IsZero() && !m.now.Before(s.due) {
			due = append(due, s)
		}
	}
	// This order decides which of two failures becomes the run's failure.
	made := func(a, b *stepState) int { return a.number - b.number }
	slices.SortFunc(settled, made)
	slices.SortFunc(expired, func(a, b *stepState) int { return cmp.Or(a.leased.Compare(b.leased), made(a, b)) })
	slices.SortFunc(due, func(a, b *stepState) int { return cmp.Or(a.due.Compare(b.due), made(a, b)) })
	for _, r := range m.runs {
		if r.flow.deadline && !r.final() && r.stop == "" && !m.now.Before(r.began.Add(runDeadline)) {
			overdue = append(overdue, r)
		}
	}
	all := slices.Concat(settled, expired, due)
	for _, s := range all {
		m.wake(s)
	}
	for _, r := range overdue {
		if !r.final() && r.stop == "" {
			r.halt("failed_terminal", "deadline_exceeded")
			m.advance(r)
		}
	}
	return len(all)+len(overdue) > 0
}

func (m *runModel) wake(s *stepState) {
	r := s.run
	due := !s.due.IsZero() && !m.now.Before(s.due)
	// An action counts as expired before the sweep records it.
	expired := s.act != nil && s.act.status == "pending" && !m.now.Before(s.act.expires)
	switch {
	case s.status == "waiting_approval" && (s.act.ended() || expired):
		switch {
		case expired:
			s.end("failed_terminal", "expired")
		case s.act.status == "applied":
			s.end("succeeded", "")
		case s.act.status == "canceled" && r.stop != "":
			s.end("canceled", "")
		case s.act.status == "failed":
			s.end("failed_terminal", s.act.failure)
		default:
			s.end("failed_terminal", s.act.status)
		}
		m.advance(r)
	case s.status == "waiting_approval" && due: // its run stops
		if s.act.status == "pending" {
			s.act.status = "canceled"
		}
		s.due = time.Time{}
	case s.status == "waiting" && s.child != nil && s.child.final():
		switch {
		case s.child.status == "succeeded":
			s.end("succeeded", "")
		case s.child.status == "canceled" && r.stop != "":
			s.end("canceled", "")
		case s.child.status == "canceled":
			s.end("failed_terminal", "child_canceled")
		default:
			s.end("failed_terminal", "child_failed")
		}
		m.advance(r)
	case s.status == "waiting" && s.child != nil && due:
		if !s.child.final() && s.child.stop == "" {
			s.child.halt("canceled", "parent_stopped")
			m.advance(s.child)
		}
		s.due = time.Time{}
	case s.status == "waiting" && due && s.event:
		s.end("failed_terminal", "timeout")
		m.advance(r)
	case s.status == "waiting" && due:
		s.end("succeeded", "")
		m.advance(r)
	case s.status == "failed_retryable" && due:
		s.status = "ready"
		s.due = time.Time{}
		m.advance(r)
	case s.status == "running" && !m.now.Before(s.leased):
		m.fail(s, "lease_expired", true)
	}
}

func (m *runModel) signal(r *runState) string {
	if r.final() {
		return "too_late"
	}
	for _, s := range r.steps {
		if s.status == "waiting" && s.event {
			s.end("succeeded", "")
			m.advance(r)
			return "ok"
		}
	}
	r.heard++
	return "ok"
}

func (m *runModel) cancel(r *runState) string {
	switch {
	case r.status == "canceled", r.stop == "canceled":
		return "ok"
	case r.final(), r.stop != "":
		return "too_late"
	}
	r.halt("canceled", "canceled")
	m.advance(r)
	return "ok"
}

// retry begins a run that retries r, unless there is one.
func (m *runModel) retry(r *runState) string {
	if r.status != "failed_terminal" && r.status != "canceled" {
		return "too_late"
	}
	if r.retried == nil {
		r.retried = m.begin(r.flow, r)
	}
	return "ok"
}

func (m *runModel) decide(s *stepState, approve bool) string {
	a := s.act
	if a.status == "canceled" {
		return "already_decided"
	}
	if a.status != "pending" || !m.now.Before(a.expires) {
		return "expired"
	}
	a.status = "rejected"
	if approve {
		m.approve(a)
	}
	return "ok"
}

// snapshot describes all visible state of the runs.
func (m *runModel) snapshot() (out []string) {
	for i, r := range m.runs {
		lines := []string{
			fmt.Sprintf("run %d of %s: %s stop=%q failure=%q writes=%d", i, r.flow.name, r.status, r.stop, r.failure, r.writes)}
		for _, s := range r.steps {
			act := "-"
			if s.act != nil {
				if act = s.act.status; act == "pending" && !m.now.Before(s.act.expires) {
					act = "expired"
				}
			}
			lines = append(lines, fmt.Sprintf("  %s %s attempts=%d generation=%d skipped=%v failure=%q action=%s child=%v",
				s.key, s.status, s.attempts, s.gen, s.skipped, s.failure, act, s.child != nil))
		}
		out = append(out, strings.Join(lines, "\n"))
	}
	return out
}
