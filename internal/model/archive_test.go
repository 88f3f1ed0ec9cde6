package model

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

// retention is much shorter than the configuration allows, so that archived
// actions meet everything that can be done with an action.
const retention = 30 * time.Minute

// archiving is the step that runs the archiver.
func (m *match) archiving() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){"archive": func(rt *rapid.T) {
		switch rapid.IntRange(0, 9).Draw(rt, "wait") {
		case 0, 1, 2:
			m.model.now = m.clock.advance(2 * retention)
		case 3: // until no window covers what an action holds of a ceiling
			m.model.now = m.clock.advance(gatehouse.MaxCeilingWindow)
		}
		m.play("archive", m.model.archive, (*side).archive)
	}}
}

// archive moves the actions that ended before the retention, whole families
// only.
func (m *model) archive() string {
	n := 0
	for _, a := range m.actions {
		family := m.family(a)
		if a.archived || slices.ContainsFunc(family, func(k *action) bool { return !m.archivable(k) }) {
			continue
		}
		for _, k := range family {
			k.archived = true
			n++
		}
	}
	return fmt.Sprintf("archived %d", n)
}

func (m *model) archivable(a *action) bool {
	switch a.status {
	case rejected, denied, expired, canceled, superseded, applied, reversed:
	case failed:
		if a.push == nil || a.push.closed.IsZero() || !a.push.closed.Before(m.now.Add(-retention)) {
			return false
		}
	default:
		return false
	}
	if p := a.push; p != nil && p.closed.IsZero() && p.status != gatehouse.PushApplied &&
		p.status != gatehouse.PushCanceled {
		return false
	}
	if c := a.claim; c != nil && c.held && c.at.After(m.now.Add(-gatehouse.MaxCeilingWindow)) {
		return false
	}
	return a.lastChange.Before(m.now.Add(-retention))
}

// family returns an action with all actions that revise or reverse it, or that
// it revises or reverses.
func (m *model) family(a *action) []*action {
	family := []*action{a}
	for i := 0; i < len(family); i++ {
		for _, k := range m.actions {
			one, other := family[i], k
			kin := one.supersedes == other || other.supersedes == one || one.reverses == other || other.reverses == one
			if kin && !slices.Contains(family, k) {
				family = append(family, k)
			}
		}
	}
	return family
}

// changed records when actions reached their present status.
func (m *model) changed() {
	for _, a := range m.actions {
		if a.lastStatus != a.status {
			a.lastStatus, a.lastChange = a.status, m.now
		}
	}
}

// archive does what the archiver does, for this tenant only, with a retention
// that the archiver would refuse.
func (s *side) archive() string {
	ctx, n := context.Background(), 0
	var families []gatehouse.ActionFamily
	planned := map[string]bool{} // a family on two pages is in both plans
	var before time.Time
	for after, more := s.ground.place, true; more; more = after != 0 {
		s.must(s.store.ViewQueues(ctx, func(q gatehouse.ReadQueues) error {
			before = q.Now().Add(-retention)
			plan, err := q.PlanArchive(after, before, 100)
			if err != nil {
				return err
			}
			after = plan.Next
			for _, f := range plan.Families {
				if f.Tenant == s.tenant && !planned[f.IDs[0]] {
					families = append(families, f)
				}
				for _, id := range f.IDs {
					planned[id] = true
				}
			}
			return nil
		}))
	}
	s.must(s.store.Update(ctx, s.tenant, func(tx gatehouse.Tx) (err error) {
		n, err = gate.ArchiveFamilies(tx, families, before)
		return err
	}))
	s.partition()
	s.checkNames()
	return fmt.Sprintf("archived %d", n)
}

// partition compares the two lists: each action is in exactly one of them.
func (s *side) partition() {
	listed := map[string]int{}
	for _, archived := range []bool{false, true} {
		for f := (gatehouse.ActionFilter{Archived: archived, Limit: 3}); ; {
			page, err := s.gate.ListActions(s.admin, f)
			s.must(err)
			for _, a := range page.Items {
				if listed[a.ID]++; (a.ArchivedAt != nil) != archived {
					s.t.Errorf("%s: %s is in the wrong list: archived at %v", s.name, a.ID, a.ArchivedAt)
				}
			}
			if f.Cursor = page.NextCursor; f.Cursor == "" {
				break
			}
		}
	}
	want := map[string]int{}
	for _, id := range s.ids {
		want[id] = 1
	}
	if d := cmp.Diff(want, listed); d != "" {
		s.t.Errorf("%s: how often actions are listed (-want +got):\n%s", s.name, d)
	}
}

// checkNames checks that each name of each action finds it, archived or not.
func (s *side) checkNames() {
	s.must(s.store.View(context.Background(), s.tenant, func(tx gatehouse.ReadTx) error {
		for i, id := range s.ids {
			a, err := tx.FindAction(id)
			if err != nil {
				return err
			}
			same, err := tx.FindActionByKey(a.IdempotencyKey)
			if err == nil && same.ID == id && a.Approval != nil {
				same, err = tx.FindAction(a.Approval.ID)
			}
			if err != nil {
				return err
			}
			if same.ID != id || a.IdempotencyKey != s.keys[i] {
				s.t.Errorf("%s: %s, with key %s, is %s by its key or its approval", s.name, id, a.IdempotencyKey, same.ID)
			}
		}
		return nil
	}))
}

// recorded returns the receipts of an action, archived or not.
func (s *side) recorded(tx gatehouse.ReadTx, a *gatehouse.Action) ([]*gatehouse.Receipt, error) {
	if a.ArchivedAt == nil {
		return tx.ListReceipts(a.ID)
	}
	kept, err := tx.FindArchived(a.ID)
	if err != nil {
		return nil, err
	}
	record, err := kept.Record()
	if err != nil {
		return nil, err
	}
	return record.Receipts, nil
}

// passed records the end of the present actions, where the archiver starts in
// later sequences.
func (g *ground) passed() error {
	return g.store.ViewQueues(context.Background(), func(q gatehouse.ReadQueues) error {
		for {
			// As seen from the future, no action is too young.
			plan, err := q.PlanArchive(g.place, q.Now().Add(time.Hour), 1000)
			if err != nil || plan.Next == 0 {
				return err
			}
			g.place = plan.Next
		}
	})
}
