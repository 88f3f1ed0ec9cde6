package model

import (
	"context"
	"fmt"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
)

// observe returns the snapshot of every action in the store.
func (s *side) observe() []string {
	out := make([]string, 0, len(s.ids))
	s.must(s.store.View(context.Background(), s.tenant, func(tx gatehouse.ReadTx) error {
		out = out[:0]
		for _, id := range s.ids {
			a, err := tx.FindAction(id)
			if err != nil {
				return err
			}
			var p *gatehouse.Push
			var receipts []*gatehouse.Receipt // each refers to a push
			if a.Push != nil {
				if p, err = tx.FindPush(a.Push.ID); err == nil {
					receipts, err = s.recorded(tx, a)
				}
				if err != nil {
					return err
				}
			}
			out = append(out, s.snapshot(a, p, receipts))
		}
		return nil
	}))
	return out
}

func (s *side) snapshot(a *gatehouse.Action, p *gatehouse.Push, receipts []*gatehouse.Receipt) string {
	o := observation{
		kind: a.ActionType, revision: a.Revision, status: string(a.Status), decidedBy: a.DecidedBy,
		archived: a.ArchivedAt != nil, supersedes: s.place(a.Supersedes), supersededBy: s.place(a.Superseded),
		reverses: s.place(a.Reverses), reversedBy: s.place(a.ReversedBy),
	}
	if a.Failure != nil {
		o.failure = a.Failure.Code
	}
	if ap := a.Approval; ap != nil {
		o.approval, o.required = string(ap.Status), ap.Required
		for _, v := range ap.Votes {
			o.votes = append(o.votes, fmt.Sprintf("%s/%s:%s", s.person(v.Person), v.Name, v.Decision))
		}
	}
	for _, r := range receipts {
		o.receipts = append(o.receipts, fmt.Sprintf("%s/%s", r.Outcome, r.Source))
	}
	if p != nil {
		o.push = fmt.Sprintf("%s attempts %d generation %d replays %d code %q", p.Status, p.Attempts, p.Generation, p.Replays,
			p.ErrorCode)
		if p.Status == gatehouse.PushQueued {
			due := p.NotBefore
			if p.NextAttempt != nil && p.NextAttempt.After(due) {
				due = *p.NextAttempt
			}
			o.push += " due " + since(due)
		}
		if p.LeaseUntil != nil {
			o.push += " leased until " + since(*p.LeaseUntil)
		}
	}
	return o.String()
}

// person returns the name of a human's first principal, which never changes.
func (s *side) person(id string) string {
	if s.persons[id] == "" {
		p, err := s.gate.FindPrincipal(s.admin, id)
		s.must(err)
		s.persons[id] = p.Name
	}
	return s.persons[id]
}

// used reads the use of both ceilings.
func (s *side) used() string {
	var out string
	s.must(s.store.Update(context.Background(), s.tenant, func(tx gatehouse.Tx) error {
		since := tx.Now().Add(-window)
		used, err := tx.LockCeilings(gatehouse.CeilingSpan{Ceiling: "notes", Scope: "tenant", Since: since},
			gatehouse.CeilingSpan{Ceiling: "money", Scope: "tenant", Since: since})
		if err != nil {
			return err
		}
		out = fmt.Sprintf("%s of %d notes, %s of %d", used[0], noteLimit, used[1], spendLimit)
		return nil
	}))
	return out
}

func (m *model) usedWords() string {
	return fmt.Sprintf("%d of %d notes, %d of %d", m.used(note), noteLimit, m.used(spend), spendLimit)
}

// log numbers the waiting leaves, verifies the log, and returns the leaves per
// action.
func (s *side) log() map[string][]gatehouse.Leaf {
	sequencer := &audit.Sequencer{Store: s.store}
	for {
		n, err := sequencer.Once(context.Background())
		s.must(err)
		if n == 0 {
			break
		}
	}
	report, err := audit.Check(context.Background(), s.store, s.tenant)
	s.must(err)
	if report.Fault != nil || report.Found != report.Expected || report.Unnumbered != 0 {
		s.t.Fatalf("%s: the log does not verify: %+v", s.name, report)
	}
	leaves := map[string][]gatehouse.Leaf{}
	for from := int64(0); ; {
		entries, err := s.gate.ListEntries(s.admin, from, gatehouse.MaxLimit)
		s.must(err)
		if len(entries) == 0 {
			return leaves
		}
		for _, e := range entries {
			l := decodeLeaf(s.t, e.Body)
			leaves[l.ActionID] = append(leaves[l.ActionID], l)
			from = e.Index + 1
		}
	}
}
