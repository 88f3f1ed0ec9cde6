package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// fill inserts n actions that the searches of the suite do not look for.
func (s *suite) fill(n int) {
	s.Helper()
	at := s.now()
	s.update(func(tx gatehouse.Tx) error {
		for range n {
			a := s.action(at, func(a *gatehouse.Action) { a.Rationale = "a routine change" })
			if err := tx.InsertAction(a); err != nil {
				return err
			}
		}
		return nil
	})
}

// nextBlock waits until a block can be indexed: an engine may first wait for other transactions to end.
func (s *suite) nextBlock() (b *gatehouse.SearchBlock) {
	s.Helper()
	for deadline := time.Now().Add(30 * time.Second); b == nil; {
		s.viewQueues(func(q gatehouse.ReadQueues) (err error) { b, err = q.NextSearchBlock(); return err })
		if b == nil && time.Now().After(deadline) {
			s.Fatal("there is no block to index")
		}
		if b == nil {
			<-time.After(20 * time.Millisecond)
		}
	}
	return b
}

// index stores the next n blocks of the search index.
func (s *suite) index(n int) {
	s.Helper()
	for range n {
		b := s.nextBlock()
		s.updateQueues(func(q gatehouse.Queues) error { return q.PutSearchBlock(b) })
	}
}

// search looks for the same things before and after the actions are indexed.
func (s *suite) search() {
	insert := func(change func(a *gatehouse.Action)) *gatehouse.Action {
		s.fill(300)
		return s.pending(change)
	}
	lamp := insert(func(a *gatehouse.Action) {
		a.ActionType, a.Title, a.Rationale = "stock_move", "Move the lamps", "Ümläute, and 100% of the STOCK for Acme"
		a.Target = gatehouse.Target{EntityType: "shelf", EntityRef: "LAMP-0042/b"}
		a.ProposedChange = `{"lines":[{"note":"two\npallets","to":"Hall 7"},{"n":12345.50}],"yes":true}`
		a.Magnitude = &gatehouse.Magnitude{Amount: "987.65", Currency: "EUR"}
	})
	list := insert(func(a *gatehouse.Action) {
		a.Target = gatehouse.Target{EntityType: "item", EntityRefs: []string{"LAMP-0099", "rack 3"}}
		a.ProposedBy, a.OnBehalfOf, a.IdempotencyKey = "hermes", "carla", "order:778899"
		a.RiskLevel = gatehouse.L5
	})
	han := insert(func(a *gatehouse.Action) { a.Rationale = "価格変更 for Acme" })
	denied := s.in(gatehouse.StatusRejected)
	s.as("acme").update(func(tx gatehouse.Tx) error {
		return tx.InsertTenant(&gatehouse.Tenant{ID: "acme", CreatedAt: tx.Now()})
	})
	foreign := s.as("acme").pending(func(a *gatehouse.Action) { a.Tenant, a.Rationale = "acme", "a secret lamp" })
	s.fill(1200)
	late := s.pending(func(a *gatehouse.Action) { a.Rationale = "lamps again, for ACME" })

	cases := map[string][]*gatehouse.Action{
		"lamp":            {late, list, lamp},
		"LAMP-00":         {list, lamp},
		"lamp-0042":       {lamp},
		"lamp 0042":       {lamp},
		"b/0042":          nil,
		"0042 hall":       {lamp},
		"hall stock acme": {lamp},
		"amp":             nil,
		"ümlä":            {lamp},
		"100%":            {lamp},
		"pallets":         {lamp},
		"npallets":        nil,
		"lines":           nil,
		"12345.5":         {lamp},
		"12345.51":        nil,
		"987.65":          {lamp},
		"shelf":           {lamp},
		"stock_m":         {lamp},
		"hermes":          {list},
		"carla":           {list},
		"order:7788":      {list},
		"rack 3":          {list},
		"格変":              {han},
		"acme":            {late, han, lamp},
		"secret":          nil,
		"%":               nil,
		"% lamp":          {late, list, lamp},
		denied.ID:         {denied},
		denied.ID + "0":   nil,
		foreign.ID:        nil,
	}
	check := func(when string) {
		s.Helper()
		for q, want := range cases {
			ids := func(list []*gatehouse.Action) (ids []string) {
				for _, a := range list {
					ids = append(ids, a.ID)
				}
				return ids
			}
			s.same(fmt.Sprintf("%s: %q", when, q), s.list(gatehouse.ActionFilter{Query: q, Limit: 2}), ids(want))
			urgent := slices.DeleteFunc(slices.Clone(want), func(a *gatehouse.Action) bool { return a == denied })
			slices.SortFunc(urgent, urgency(lamp.ProposedAt))
			s.same(fmt.Sprintf("%s: %q by urgency", when, q),
				s.list(gatehouse.ActionFilter{Query: q, Sort: gatehouse.SortUrgency, Limit: 2}), ids(urgent))
		}
		s.same(when+": a risk", s.list(gatehouse.ActionFilter{Query: "lamp", RiskLevel: gatehouse.L5}),
			[]string{list.ID})
		s.same(when+": rejected", s.list(gatehouse.ActionFilter{Query: "act", Status: gatehouse.StatusRejected}),
			[]string{denied.ID})
		s.same(when+": another status",
			s.list(gatehouse.ActionFilter{Query: "lamp", Status: gatehouse.StatusApplied}), []string(nil))
		s.same(when+": pending", s.list(gatehouse.ActionFilter{Query: "lamp-00", Status: gatehouse.StatusPending}),
			[]string{list.ID, lamp.ID})
		// Every id begins with the letter a, so the search finds all actions: many pages, and each action once.
		all := s.list(gatehouse.ActionFilter{Limit: 200})
		s.same(when+": a common letter", s.list(gatehouse.ActionFilter{Query: "a", Limit: 200}), all)
		s.same(when+": two common letters", s.list(gatehouse.ActionFilter{Query: "a i p", Limit: 190}),
			slices.DeleteFunc(slices.Clone(all), func(id string) bool { return id == lamp.ID }))
	}
	check("without an index")
	s.index(2)
	check("indexed")

	// A canceled action can be archived, and is then no longer found.
	for _, a := range []*gatehouse.Action{han, lamp} {
		s.update(func(tx gatehouse.Tx) error {
			return tx.MoveAction(move(a, gatehouse.StatusPending, gatehouse.StatusCanceled))
		})
	}
	s.same("canceled", s.list(gatehouse.ActionFilter{Query: "acme", Status: gatehouse.StatusCanceled}),
		[]string{han.ID, lamp.ID})
	s.archive(s.later())
	s.same("archived", s.list(gatehouse.ActionFilter{Query: "acme"}), []string{late.ID})
	s.same("words of what is archived", s.list(gatehouse.ActionFilter{Query: "pallets"}), []string(nil))
	s.same("in the archive, an id", s.list(gatehouse.ActionFilter{Query: lamp.ID, Archived: true}), []string{lamp.ID})
	s.same("in the archive, a word", s.list(gatehouse.ActionFilter{Query: "acme", Archived: true}), []string(nil))
}

// searchBlocks checks that a block is indexed once, and without actions that were archived meanwhile.
func (s *suite) searchBlocks() {
	s.fill(700)
	gone := s.in(gatehouse.StatusRejected)
	s.fill(500)
	before := s.nextBlock()
	s.archive(s.later())
	s.same("archived", s.find(gone.ID).ArchivedAt != nil, true)
	put := func(b *gatehouse.SearchBlock) error {
		return s.store.UpdateQueues(s.Context(), func(q gatehouse.Queues) error { return q.PutSearchBlock(b) })
	}
	if err := put(before); !errors.Is(err, gatehouse.ErrConflict) {
		s.Fatalf("a block with an archived action: %v", err)
	}
	again := s.nextBlock()
	s.same("its actions", []int64{before.Number, again.Actions}, []int64{again.Number, before.Actions - 1})
	if err := put(again); err != nil {
		s.Fatal(err)
	}
	if err := put(again); !errors.Is(err, gatehouse.ErrConflict) {
		s.Fatalf("a block for the second time: %v", err)
	}
	s.viewQueues(func(q gatehouse.ReadQueues) error {
		b, err := q.NextSearchBlock()
		if b != nil {
			s.Errorf("a block is indexed before all of its actions are there: %d actions", b.Actions)
		}
		return err
	})
}

// searchBlocksReused checks that a block is not indexed with the words of archived actions whose row numbers
// other actions have taken since.
func (s *suite) searchBlocksReused() {
	const n = 40
	s.fill(1000)
	for range n {
		s.in(gatehouse.StatusRejected)
	}
	before := s.nextBlock()
	s.archive(s.later())
	s.fill(n)
	err := s.store.UpdateQueues(s.Context(), func(q gatehouse.Queues) error { return q.PutSearchBlock(before) })
	if !errors.Is(err, gatehouse.ErrConflict) {
		s.Fatalf("a block whose actions were replaced: %v", err)
	}
}
