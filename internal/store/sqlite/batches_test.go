package sqlite

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
	"github.com/gatehouse-dev/gatehouse/internal/store/shared"
)

// oldLog is the log of two tenants as files had it before entries stood in
// batches, and what is to be read of it.
type oldLog struct {
	path    string
	entries map[string][]*gatehouse.Entry
	hashes  map[string][]gatehouse.Hash
	waiting []int64 // rows
}

// newOldLog makes a file of the first version in which numbers of two tenants'
// leaves are given, in turns, and the last leaves wait.
func newOldLog(t *testing.T, leaves, waiting int, damage string) *oldLog {
	t.Helper()
	o := &oldLog{path: ofVersion1(t, `INSERT INTO tenant (id, created_at) VALUES ('acme', 1)`), entries: map[string][]*gatehouse.Entry{}, hashes: map[string][]gatehouse.Hash{}}
	c, err := openWriter(o.path)
	if err != nil {
		t.Fatal(err)
	}
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := c.exec(sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`BEGIN`)
	trees := map[string]*audit.Tree{"default": {}, "acme": {}}
	for row := int64(1); row <= int64(leaves); row++ {
		tenant := "default"
		if row%3 == 0 {
			tenant = "acme"
		}
		body := gatehouse.JSON(fmt.Sprintf(`{"n":%d}`, row))
		action := fmt.Sprintf("act_%d", row%50)
		if row > int64(leaves-waiting) {
			exec(`INSERT INTO audit_leaf (seq, tenant, action_id, body) VALUES (?, ?, ?, ?)`, row, tenant, action, body)
			o.waiting = append(o.waiting, row)
			continue
		}
		e := &gatehouse.Entry{Index: trees[tenant].Size(), LeafHash: audit.LeafHash(body), Body: body}
		exec(`INSERT INTO audit_leaf (seq, tenant, action_id, number, hash, body) VALUES (?, ?, ?, ?, ?, ?)`, row, tenant, action, e.Index, e.LeafHash[:], body)
		for _, h := range trees[tenant].Append(e.LeafHash, nil) {
			exec(`INSERT INTO audit_hash VALUES (?, ?, ?)`, tenant, len(o.hashes[tenant]), h[:])
			o.hashes[tenant] = append(o.hashes[tenant], h)
		}
		o.entries[tenant] = append(o.entries[tenant], e)
	}
	for tenant, tree := range trees {
		exec(`INSERT INTO audit_log VALUES (?, ?, ?)`, tenant, tree.Size(), len(o.hashes[tenant]))
	}
	exec(`COMMIT`)
	if damage != "" {
		triggers := make(map[string]string)
		err := c.each(`SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'audit%'`,
			func(r *stmt) error { name := r.text(); triggers[name] = r.text(); return nil })
		if err != nil || len(triggers) != 5 {
			t.Fatalf("%d triggers guard the log, %v", len(triggers), err)
		}
		script := damage
		for name, sql := range triggers { // later migrations make them anew
			script = "DROP TRIGGER " + name + ";" + script + ";" + sql
		}
		if err := c.script(script); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *oldLog) open(t *testing.T) *Store {
	t.Helper()
	s, err := Open(context.Background(), Config{Path: o.path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestMigrateLog reads a log whose entries stood one by one, from every place,
// and goes on with it.
func TestMigrateLog(t *testing.T) {
	t.Parallel()
	o := newOldLog(t, 1800, 11, "")
	s := o.open(t)
	for tenant, entries := range o.entries {
		err := s.View(t.Context(), func(tx gatehouse.ReadTx) error {
			for _, from := range []int{0, 1, shared.MaxEntries - 1, shared.MaxEntries, shared.MaxEntries + 1, len(entries) - 1, len(entries)} {
				for _, limit := range []int{1, shared.MaxEntries + 3, 10_000} {
					got, err := tx.ListEntries(tenant, int64(from), limit)
					if err != nil {
						return err
					}
					if d := cmp.Diff(entries[from:min(from+limit, len(entries))], got); d != "" && len(got)+len(entries)-from > 0 {
						t.Errorf("%s, %d entries from %d (-want +got):\n%s", tenant, limit, from, d)
					}
				}
			}
			positions := make([]int64, len(o.hashes[tenant]))
			for i := range positions {
				positions[i] = int64(i)
			}
			hashes, err := tx.LogHashes(tenant, positions)
			if d := cmp.Diff(o.hashes[tenant], hashes); d != "" {
				t.Errorf("%s: hashes (-want +got):\n%s", tenant, d)
			}
			if err != nil {
				return err
			}
			if _, err := tx.LogHashes(tenant, []int64{0, int64(len(positions))}); err == nil {
				t.Errorf("%s: the hash behind the last was read", tenant)
			}
			ofAction, err := tx.ListActionEntries(tenant, "act_7")
			var want []*gatehouse.Entry
			for _, e := range entries {
				var n int64
				if _, err := fmt.Sscanf(string(e.Body), `{"n":%d}`, &n); err != nil {
					t.Fatal(err)
				}
				if n%50 == 7 {
					want = append(want, e)
				}
			}
			if d := cmp.Diff(want, ofAction); d != "" || len(want) < 10 {
				t.Errorf("%s: %d of one action (-want +got):\n%s", tenant, len(want), d)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	err := s.View(t.Context(), func(tx gatehouse.ReadTx) error {
		list, err := tx.UnnumberedLeaves(1000)
		var rows []int64
		for _, l := range list {
			rows = append(rows, l.Row)
		}
		if d := cmp.Diff(o.waiting, rows); d != "" {
			t.Errorf("waiting (-want +got):\n%s", d)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := (&audit.Sequencer{Store: s}).Once(t.Context()); n != len(o.waiting) || err != nil {
		t.Errorf("%d leaves were numbered: %v", n, err)
	}
	for _, tenant := range []string{"default", "acme"} {
		if r, err := audit.Check(t.Context(), s, tenant); err != nil || r.Err() != nil || r.Unnumbered != 0 || r.Found <= int64(len(o.entries[tenant])) {
			t.Errorf("%s: %+v, %v", tenant, r, err)
		}
	}
}

// TestMigrateDamagedLog: what was wrong with a log before is found afterwards,
// in the same place.
func TestMigrateDamagedLog(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sql   string
		kind  audit.FaultKind
		index int64
	}{
		"body":                   {`UPDATE audit_leaf SET body = '{}' WHERE tenant = 'acme' AND number = 300`, audit.FaultLeafHash, 300},
		"hash of a leaf":         {`UPDATE audit_leaf SET hash = zeroblob(32) WHERE tenant = 'acme' AND number = 300`, audit.FaultLeafHash, 300},
		"hash of the tree":       {`UPDATE audit_hash SET hash = zeroblob(32) WHERE tenant = 'acme' AND position = 2`, audit.FaultTreeHash, 1},
		"a hash is gone":         {`DELETE FROM audit_hash WHERE tenant = 'acme' AND position = 2`, audit.FaultTreeHash, 1},
		"an entry is gone":       {`DELETE FROM audit_leaf WHERE tenant = 'acme' AND number = 300`, audit.FaultIndex, 300},
		"the first is gone":      {`DELETE FROM audit_leaf WHERE tenant = 'acme' AND number = 0`, audit.FaultIndex, 0},
		"the end is cut off":     {`DELETE FROM audit_leaf WHERE tenant = 'acme' AND number >= 300; UPDATE audit_log SET size = 300 WHERE tenant = 'acme'`, audit.FaultBeyond, 300},
		"all of it is cut off":   {`DELETE FROM audit_leaf WHERE tenant = 'acme'; DELETE FROM audit_log WHERE tenant = 'acme'`, audit.FaultBeyond, 0},
		"a number beyond reason": {`UPDATE audit_leaf SET number = 9223372036854775807 WHERE tenant = 'acme' AND number = 300`, audit.FaultIndex, 300},
		"numbers are swapped": {`UPDATE audit_leaf SET number = 5000 WHERE tenant = 'acme' AND number = 8; UPDATE audit_leaf SET number = 8 WHERE tenant = 'acme' AND number = 300;
			UPDATE audit_leaf SET number = 300 WHERE tenant = 'acme' AND number = 5000`, audit.FaultLeafHash, 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newOldLog(t, 1200, 5, c.sql).open(t)
			r, err := audit.Check(t.Context(), s, "acme")
			if err != nil || r.Fault == nil || r.Fault.Kind != c.kind || r.Fault.Index != c.index {
				t.Errorf("%+v, %v; want %s at %d", r.Fault, err, c.kind, c.index)
			}
			if r, err := audit.Check(t.Context(), s, "default"); err != nil || r.Err() != nil {
				t.Errorf("the log of another tenant: %+v, %v", r, err)
			}
		})
	}
}

// TestNumberInBatches numbers more leaves at once than a row takes, and refuses
// hashes that are not those of the leaves.
func TestNumberInBatches(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	const leaves = 2*shared.MaxEntries + 88
	update(t, s, func(tx gatehouse.Tx) error {
		for range leaves {
			if err := tx.AppendLeaf(&gatehouse.Leaf{Tenant: "default", Type: "t", Subject: "s", Actor: "a"}); err != nil {
				return err
			}
		}
		return nil
	})
	for name, spoil := range map[string]func(*gatehouse.NumberedLeaf, []gatehouse.Hash) []gatehouse.Hash{
		"another leaf hash": func(l *gatehouse.NumberedLeaf, h []gatehouse.Hash) []gatehouse.Hash { l.LeafHash[0]++; return h },
		"a hash too few":    func(_ *gatehouse.NumberedLeaf, h []gatehouse.Hash) []gatehouse.Hash { return h[1:] },
		"a hash too many": func(_ *gatehouse.NumberedLeaf, h []gatehouse.Hash) []gatehouse.Hash {
			return append(h, gatehouse.Hash{})
		},
	} {
		err := s.Update(t.Context(), func(tx gatehouse.Tx) error {
			list, err := tx.UnnumberedLeaves(1)
			if err != nil {
				return err
			}
			l := &gatehouse.NumberedLeaf{Row: list[0].Row, LeafHash: audit.LeafHash(list[0].Body)}
			return tx.NumberLeaves("default", 0, []*gatehouse.NumberedLeaf{l}, spoil(l, []gatehouse.Hash{audit.LeafHash(list[0].Body)}))
		})
		if err == nil {
			t.Errorf("%s: went through", name)
		}
	}
	if n, err := (&audit.Sequencer{Store: s}).Once(t.Context()); n != leaves || err != nil {
		t.Fatalf("%d leaves were numbered: %v", n, err)
	}
	if n, err := s.writer.c.number(`SELECT count(*) * 1000 + max(length(leaves)) / 8 FROM audit_batch`); n != 3*1000+shared.MaxEntries || err != nil {
		t.Errorf("batches and the most entries of one: %d, %v", n, err)
	}
	if r, err := audit.Check(t.Context(), s, "default"); err != nil || r.Err() != nil || r.Found != leaves {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestNumberOneTenant gives one tenant's leaves their numbers while another's
// before them wait.
func TestNumberOneTenant(t *testing.T) {
	t.Parallel()
	s := openTest(t, Config{})
	update(t, s, func(tx gatehouse.Tx) error {
		for _, tenant := range []string{"default", "acme", "default", "acme"} {
			if err := tx.AppendLeaf(&gatehouse.Leaf{Tenant: tenant, Type: "t", Subject: "s", Actor: "a"}); err != nil {
				return err
			}
		}
		return nil
	})
	update(t, s, func(tx gatehouse.Tx) error {
		list, err := tx.UnnumberedLeaves(2)
		if err != nil {
			return err
		}
		h := audit.LeafHash(list[1].Body)
		return tx.NumberLeaves("acme", 0, []*gatehouse.NumberedLeaf{{Row: list[1].Row, LeafHash: h}}, []gatehouse.Hash{h})
	})
	err := s.View(t.Context(), func(tx gatehouse.ReadTx) error {
		list, err := tx.UnnumberedLeaves(10)
		var rows []int64
		for _, l := range list {
			rows = append(rows, l.Row)
		}
		if d := cmp.Diff([]int64{1, 3, 4}, rows); d != "" {
			t.Errorf("waiting (-want +got):\n%s", d)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// BenchmarkMigrateLog brings a log of a million entries over.
func BenchmarkMigrateLog(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		c, err := openWriter(b.TempDir() + "/gatehouse.db")
		if err != nil {
			b.Fatal(err)
		}
		first, err := migrations.ReadFile("migrations/0001_core.sql")
		if err == nil {
			err = apply(c, 1, string(first), time.Unix(1, 0))
		}
		if err == nil {
			err = c.script(`INSERT INTO audit_log VALUES ('default', 1000000, 1999993);
INSERT INTO audit_leaf (seq, tenant, action_id, number, hash, body) SELECT value + 1, 'default', printf('act_%032d', value / 4), value, randomblob(32),
  printf('{"data":"%0400d"}', value) FROM (WITH RECURSIVE i (value) AS (SELECT 0 UNION ALL SELECT value + 1 FROM i WHERE value < 999999) SELECT value FROM i);
INSERT INTO audit_hash SELECT 'default', value, randomblob(32) FROM (WITH RECURSIVE i (value) AS (SELECT 0 UNION ALL SELECT value + 1 FROM i WHERE value < 1999992) SELECT value FROM i)`)
		}
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if err := migrate(c, time.Unix(2, 0)); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if n, err := c.number(`SELECT sum(length(leaves)) / 8 FROM audit_batch`); n != 1_000_000 || err != nil {
			b.Fatal(n, err)
		}
		if err := c.close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
