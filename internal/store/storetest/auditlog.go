package storetest

import (
	"fmt"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/gatehouse-dev/gatehouse"
)

func (s *suite) leaf(tenant, action string) {
	s.Helper()
	s.as(tenant).update(func(tx gatehouse.Tx) error {
		return tx.AppendLeaf(
			&gatehouse.Leaf{Tenant: tenant, Type: "t" + s.next(), Subject: "x", ActionID: action, Actor: "system"})
	})
}

func (s *suite) waiting(limit int) (list []*gatehouse.PendingLeaf) {
	s.Helper()
	s.viewQueues(func(q gatehouse.ReadQueues) (err error) { list, err = q.UnnumberedLeaves(limit); return err })
	return list
}

// numbered numbers leaves starting at size and returns the tree hashes.
func numbered(
	tx gatehouse.ReadTx,
	size int64,
	leaves []*gatehouse.PendingLeaf,
) (list []*gatehouse.NumberedLeaf, added []gatehouse.Hash, err error) {
	first := tlog.StoredHashCount(size)
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		var hashes []tlog.Hash
		for _, i := range indexes {
			if i >= first {
				hashes = append(hashes, tlog.Hash(added[i-first]))
				continue
			}
			stored, err := tx.LogHashes([]int64{i})
			if err != nil {
				return nil, err
			}
			hashes = append(hashes, tlog.Hash(stored[0]))
		}
		return hashes, nil
	})
	for i, l := range leaves {
		n := size + int64(i)
		hashes, err := tlog.StoredHashes(n, []byte(l.Body), reader)
		if err != nil {
			return nil, nil, err
		}
		for _, h := range hashes {
			added = append(added, gatehouse.Hash(h))
		}
		list = append(list, &gatehouse.NumberedLeaf{Row: l.Row, Index: n, LeafHash: gatehouse.Hash(hashes[0])})
	}
	return list, added, nil
}

func (s *suite) auditNumbering() {
	s.as("acme").update(func(tx gatehouse.Tx) error {
		return tx.InsertTenant(&gatehouse.Tenant{ID: "acme", CreatedAt: tx.Now()})
	})
	for i := range 7 {
		s.leaf(tenant, fmt.Sprintf("act_%d", i%2))
		s.leaf("acme", "")
	}
	all := s.waiting(100)
	if len(all) != 14 {
		s.Fatalf("%d leaves wait, want 14", len(all))
	}
	s.same("some of them", s.waiting(3), all[:3])
	s.view(func(tx gatehouse.ReadTx) error {
		list, err := tx.ListEntries(0, 10)
		s.same("entries before numbering", len(list), 0)
		size, e := tx.LogSize()
		s.same("size before numbering", size, int64(0))
		if e != nil {
			return e
		}
		return err
	})
	of := func(tenant string) (list []*gatehouse.PendingLeaf) {
		for _, l := range all {
			if l.Tenant == tenant {
				list = append(list, l)
			}
		}
		return list
	}
	// In two batches: the second builds on the stored hashes of the first.
	for _, part := range [][2]int{{0, 3}, {3, 7}} {
		for _, n := range []string{tenant, "acme"} {
			s.as(n).update(func(tx gatehouse.Tx) error {
				list, hashes, err := numbered(tx, int64(part[0]), of(n)[part[0]:part[1]])
				if err != nil {
					return err
				}
				return tx.NumberLeaves(int64(part[0]), list, hashes)
			})
		}
	}
	s.same("waiting after numbering", len(s.waiting(10)), 0)
	s.viewQueues(func(q gatehouse.ReadQueues) error {
		for _, n := range []string{tenant, "acme"} {
			tx := q.In(n)
			size, err := tx.LogSize()
			if err != nil {
				return err
			}
			s.same("size", size, int64(7))
			list, err := tx.ListEntries(2, 3)
			if err != nil {
				return err
			}
			if len(list) != 3 || list[0].Index != 2 || list[2].Index != 4 {
				s.Fatalf("entries from 2: %+v", list)
			}
			for i, e := range list {
				s.same("body", e.Body, of(n)[2+i].Body)
				s.same("leaf hash", e.LeafHash, gatehouse.Hash(tlog.RecordHash([]byte(e.Body))))
			}
			root, err := tlog.TreeHash(size, tlog.HashReaderFunc(func(indexes []int64) (hashes []tlog.Hash, err error) {
				stored, err := tx.LogHashes(indexes)
				for _, h := range stored {
					hashes = append(hashes, tlog.Hash(h))
				}
				return hashes, err
			}))
			if err != nil {
				return err
			}
			var want []tlog.Hash
			reader := tlog.HashReaderFunc(func(indexes []int64) (hashes []tlog.Hash, err error) {
				for _, i := range indexes {
					hashes = append(hashes, want[i])
				}
				return hashes, nil
			})
			for i, l := range of(n) {
				added, err := tlog.StoredHashes(int64(i), []byte(l.Body), reader)
				if err != nil {
					return err
				}
				want = append(want, added...)
			}
			fresh, err := tlog.TreeHash(size, reader)
			s.same("root", root, fresh)
			if err != nil {
				return err
			}
		}
		tx := q.In(tenant)
		list, err := tx.ListActionEntries("act_1")
		if err != nil {
			return err
		}
		var numbers []int64
		for _, e := range list {
			numbers = append(numbers, e.Index)
		}
		s.same("of one action", numbers, []int64{1, 3, 5})
		if _, err := tx.LogHashes([]int64{1000}); err == nil {
			s.Error("a hash that is not stored was read")
		}
		return nil
	})
}

// auditRanges reads logs that need several storage rows, at the edges and in
// the middle of those rows.
func (s *suite) auditRanges() {
	const acme, leaves = "acme", 700
	s.as(acme).update(func(tx gatehouse.Tx) error {
		return tx.InsertTenant(&gatehouse.Tenant{ID: acme, CreatedAt: tx.Now()})
	})
	tenantOf := func(i int) string {
		if i%3 == 0 {
			return acme
		}
		return tenant
	}
	s.updateQueues(func(q gatehouse.Queues) error {
		for i := range leaves {
			leaf := &gatehouse.Leaf{
				Tenant: tenantOf(i), Type: fmt.Sprintf("t%d", i), Subject: "x", Actor: "system",
				ActionID: fmt.Sprintf("act_%d", i%50),
			}
			if err := q.In(leaf.Tenant).AppendLeaf(leaf); err != nil {
				return err
			}
		}
		return nil
	})
	want, byAction := map[string][]*gatehouse.Entry{}, map[[2]string][]*gatehouse.Entry{}
	for {
		waiting := map[string][]*gatehouse.PendingLeaf{}
		for _, l := range s.waiting(300) {
			waiting[l.Tenant] = append(waiting[l.Tenant], l)
		}
		if len(waiting) == 0 {
			break
		}
		for name, of := range waiting {
			size := int64(len(want[name]))
			var list []*gatehouse.NumberedLeaf
			s.as(name).update(func(tx gatehouse.Tx) (err error) {
				var hashes []gatehouse.Hash
				if list, hashes, err = numbered(tx, size, of); err != nil {
					return err
				}
				return tx.NumberLeaves(size, list, hashes)
			})
			for i, l := range list {
				e := &gatehouse.Entry{Index: l.Index, Body: of[i].Body, LeafHash: l.LeafHash}
				want[name] = append(want[name], e)
				action := [2]string{name, of[i].ActionID}
				byAction[action] = append(byAction[action], e)
			}
		}
	}
	s.same("numbered", len(want[tenant])+len(want[acme]), leaves)
	s.viewQueues(func(q gatehouse.ReadQueues) error {
		for name, all := range want {
			tx := q.In(name)
			for _, from := range []int{0, 1, 199, 200, 201, 255, 256, 257, len(all) - 1, len(all)} {
				from = min(from, len(all))
				for _, limit := range []int{1, 259, 10_000} {
					list, err := tx.ListEntries(int64(from), limit)
					if err != nil {
						return err
					}
					some := all[from:min(from+limit, len(all))]
					s.same("the number of entries", len(list), len(some))
					if len(some) > 0 {
						s.same(fmt.Sprintf("%d entries of %s from %d on", limit, name, from), list, some)
					}
				}
			}
		}
		for of, entries := range byAction {
			list, err := q.In(of[0]).ListActionEntries(of[1])
			if err != nil {
				return err
			}
			s.same(fmt.Sprintf("entries of %v", of), list, entries)
		}
		return nil
	})
}

// auditConflict runs competing sequencers: for each size only the first one
// stores anything.
func (s *suite) auditConflict() {
	for range 4 {
		s.leaf(tenant, "act_1")
	}
	all := s.waiting(10)
	number := func(size int64, leaves []*gatehouse.PendingLeaf,
		change ...func([]*gatehouse.NumberedLeaf)) func(gatehouse.Tx) error {
		return func(tx gatehouse.Tx) error {
			list, hashes, err := numbered(tx, size, leaves)
			if err != nil {
				return err
			}
			for _, c := range change {
				c(list)
			}
			return tx.NumberLeaves(size, list, hashes)
		}
	}
	s.update(number(0, all[:2]))
	s.updateReturns(gatehouse.ErrConflict, "the same size again", number(0, all[2:]))
	s.updateReturns(gatehouse.ErrConflict, "a leaf that has its number", number(2, all[1:2]))
	s.updateReturns(gatehouse.ErrConflict, "a gap", number(2, all[2:], func(l []*gatehouse.NumberedLeaf) { l[1].Index++ }))
	s.updateReturns(gatehouse.ErrConflict, "a row that does not exist",
		number(2, all[2:], func(l []*gatehouse.NumberedLeaf) { l[1].Row = 1 << 40 }))
	s.updateReturns(gatehouse.ErrConflict, "a size ahead", func(tx gatehouse.Tx) error {
		return tx.NumberLeaves(3, []*gatehouse.NumberedLeaf{{Row: all[2].Row, Index: 3}}, nil)
	})
	s.as("acme").updateReturns(gatehouse.ErrConflict, "another tenant's row", func(tx gatehouse.Tx) error {
		return tx.NumberLeaves(0, []*gatehouse.NumberedLeaf{{Row: all[2].Row}}, nil)
	})
	s.same("still waiting", s.waiting(10), all[2:])
	s.update(number(2, all[2:]))
	s.view(func(tx gatehouse.ReadTx) error {
		size, err := tx.LogSize()
		s.same("size", size, int64(4))
		return err
	})
}

// auditLeafBytes checks that the stored body is the canonical form.
func (s *suite) auditLeafBytes() {
	at := s.now().Add(-time.Hour)
	full := &gatehouse.Leaf{
		ID: "evt_1", Tenant: tenant, At: at, Type: "hitl.voted", Subject: "act_\"\\\x01é\u2028<&>", ActionID: "act_1",
		Actor: "prn_1",
		From:  "pending", To: "approved", Digest: "sha256:00", Data: `{"a":[1.0,"x"],"b":null}`,
	}
	least := &gatehouse.Leaf{Tenant: tenant, Type: "t", Subject: "s", Actor: "a"}
	var now time.Time
	s.update(func(tx gatehouse.Tx) error {
		now = tx.Now()
		for _, l := range []*gatehouse.Leaf{full, least} {
			if err := tx.AppendLeaf(l); err != nil {
				return err
			}
		}
		return nil
	})
	if least.ID == "" || !least.At.Equal(now) {
		s.Fatalf("id %q and time %s were not filled in", least.ID, least.At)
	}
	list := s.waiting(10)
	for i, l := range []*gatehouse.Leaf{full, least} {
		s.same("body", list[i].Body, gatehouse.MustJSON(l))
	}
}
