package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
)

// oldLog is the log of two tenants as databases had it before entries stood in
// batches, and what is to be read of it.
type oldLog struct {
	url     string
	entries map[string][]*gatehouse.Entry
	hashes  map[string][]gatehouse.Hash
	waiting []int64 // rows
}

// newOldLog makes a database of the thirteenth version in which numbers of two
// tenants' leaves are given, in turns; one leaf in seventeen
// is numbered late, behind the next ten, and the last ones wait.
func newOldLog(t *testing.T, leaves, waiting int, damage string) *oldLog {
	t.Helper()
	o := &oldLog{url: pgtest.Database(t), entries: map[string][]*gatehouse.Entry{}, hashes: map[string][]gatehouse.Hash{}}
	c, err := pgx.Connect(t.Context(), o.url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	var b pgx.Batch
	exec := func(sql string, args ...any) { b.Queue(sql, args...) }
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	run := func(sql string) {
		t.Helper()
		if _, err := c.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%.60s: %v", sql, err)
		}
	}
	run(`SET ` + TenantSetting + ` = '*'; CREATE TABLE gatehouse_schema (version INTEGER PRIMARY KEY, applied_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp())`)
	for _, name := range names[:13] {
		text, err := migrations.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		run(string(text))
	}
	run(`INSERT INTO gatehouse_schema (version) VALUES (13); INSERT INTO tenant (id, created_at) VALUES ('acme', 1)`)
	trees := map[string]*audit.Tree{"default": {}, "acme": {}}
	number := func(row int64, tenant string, body gatehouse.JSON) {
		e := &gatehouse.Entry{Index: trees[tenant].Size(), LeafHash: audit.LeafHash(body), Body: body}
		exec(`UPDATE audit_leaf SET number = $1, hash = $2 WHERE seq = $3`, e.Index, e.LeafHash[:], row)
		for _, h := range trees[tenant].Append(e.LeafHash, nil) {
			exec(`INSERT INTO audit_hash VALUES ($1, $2, $3)`, tenant, len(o.hashes[tenant]), h[:])
			o.hashes[tenant] = append(o.hashes[tenant], h)
		}
		o.entries[tenant] = append(o.entries[tenant], e)
	}
	late := func() {}
	for row := int64(1); row <= int64(leaves); row++ {
		tenant := "default"
		if row%3 == 0 {
			tenant = "acme"
		}
		body := gatehouse.JSON(fmt.Sprintf(`{"n":%d}`, row))
		exec(`INSERT INTO audit_leaf (seq, tenant, action_id, body) VALUES ($1, $2, $3, $4)`, row, tenant, fmt.Sprintf("act_%d", row%50), string(body))
		switch {
		case row > int64(leaves-waiting):
			late()
			late = func() {}
			o.waiting = append(o.waiting, row)
		case row%17 == 7:
			late = func() { number(row, tenant, body) }
		default:
			number(row, tenant, body)
			if row%17 == 0 {
				late()
				late = func() {}
			}
		}
	}
	for tenant, tree := range trees {
		exec(`INSERT INTO audit_log (tenant, size, hashes) VALUES ($1, $2, $3)`, tenant, tree.Size(), len(o.hashes[tenant]))
	}
	if err := c.SendBatch(t.Context(), &b).Close(); err != nil {
		t.Fatal(err)
	}
	if damage != "" {
		run(`ALTER TABLE audit_leaf DISABLE TRIGGER USER; ALTER TABLE audit_hash DISABLE TRIGGER USER`)
		run(damage)
	}
	return o
}

// TestOldLogsAreBatched brings a log of before to this version: each entry, each
// hash and all that wait read as they did, and the log goes on.
func TestOldLogsAreBatched(t *testing.T) {
	t.Parallel()
	o := newOldLog(t, 1500, 9, "")
	s := openTest(t, Config{URL: o.url})
	view := func(fn func(tx gatehouse.ReadTx) error) {
		t.Helper()
		if err := s.View(t.Context(), fn); err != nil {
			t.Fatal(err)
		}
	}
	read := func() (rows []int64) {
		t.Helper()
		view(func(tx gatehouse.ReadTx) error {
			list, err := tx.UnnumberedLeaves(100)
			for _, l := range list {
				rows = append(rows, l.Row)
			}
			return err
		})
		return rows
	}
	if diff := cmp.Diff(o.waiting, read()); diff != "" {
		t.Errorf("what waits (-want +got):\n%s", diff)
	}
	for tenant, entries := range o.entries {
		view(func(tx gatehouse.ReadTx) error {
			for _, from := range []int{0, 1, 255, 256, 257, len(entries) - 1, len(entries)} {
				for _, limit := range []int{1, 259, 10_000} {
					got, err := tx.ListEntries(tenant, int64(from), limit)
					if err != nil {
						return err
					}
					if diff := cmp.Diff(entries[from:min(from+limit, len(entries))], got, cmpopts.EquateEmpty()); diff != "" {
						t.Errorf("%d entries of %s from %d on (-want +got):\n%s", limit, tenant, from, diff)
					}
				}
			}
			all := make([]int64, len(o.hashes[tenant]))
			for i := range all {
				all[i] = int64(i)
			}
			got, err := tx.LogHashes(tenant, all)
			if diff := cmp.Diff(o.hashes[tenant], got); diff != "" {
				t.Errorf("hashes of %s (-want +got):\n%s", tenant, diff)
			}
			if err != nil {
				return err
			}
			byAction := map[string][]*gatehouse.Entry{}
			for _, e := range entries {
				var n int
				if _, err := fmt.Sscanf(string(e.Body), `{"n":%d}`, &n); err != nil {
					return err
				}
				id := fmt.Sprintf("act_%d", n%50)
				byAction[id] = append(byAction[id], e)
			}
			for id, want := range byAction {
				got, err := tx.ListActionEntries(tenant, id)
				if err != nil {
					return err
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("entries of %s, %s (-want +got):\n%s", tenant, id, diff)
				}
			}
			return nil
		})
	}
	err := s.Update(t.Context(), func(tx gatehouse.Tx) error {
		return tx.AppendLeaf(&gatehouse.Leaf{Tenant: "acme", Type: "t", Subject: "x", Actor: "a"})
	})
	if err != nil {
		t.Fatal(err)
	}
	if want, got := append(o.waiting, 1501), read(); !cmp.Equal(want, got) {
		t.Errorf("%v wait, want %v", got, want)
	}
	// Less at a time than wait together.
	for _, want := range []int{4, 4, 2, 0} {
		if n, err := (&audit.Sequencer{Store: s, Batch: 4}).Once(t.Context()); n != want || err != nil {
			t.Errorf("%d were numbered, want %d: %v", n, want, err)
		}
	}
	for tenant := range o.entries {
		report, err := audit.Check(t.Context(), s, tenant)
		if err == nil {
			err = report.Err()
		}
		if err != nil || report.Unnumbered != 0 {
			t.Errorf("%s: %+v, %v", tenant, report, err)
		}
	}
}

// TestDamagedLogsStayDamaged: bringing a log to this version mends nothing.
func TestDamagedLogsStayDamaged(t *testing.T) {
	t.Parallel()
	for _, d := range []struct {
		name, sql string
		kind      audit.FaultKind
		at        int64
	}{
		{"body", `UPDATE audit_leaf SET body = '{}' WHERE tenant = 'default' AND number = 17`, audit.FaultLeafHash, 17},
		{"body and leaf hash", `UPDATE audit_leaf SET body = '{}', hash = sha256('\x007b7d') WHERE tenant = 'default' AND number = 17`, audit.FaultLeafHash, 17},
		{"entry removed", `DELETE FROM audit_leaf WHERE tenant = 'default' AND number = 5`, audit.FaultIndex, 5},
		{"hash changed", `UPDATE audit_hash SET hash = sha256('x') WHERE tenant = 'default' AND position = 2`, audit.FaultTreeHash, 1},
		{"hash removed", `DELETE FROM audit_hash WHERE tenant = 'default' AND position = 2`, audit.FaultTreeHash, 1},
		{"end cut off", `DELETE FROM audit_leaf WHERE tenant = 'default' AND number >= 20`, audit.FaultMissing, 20},
		{"end cut off, size too", `DELETE FROM audit_leaf WHERE tenant = 'default' AND number >= 20; UPDATE audit_log SET size = 20 WHERE tenant = 'default'`, audit.FaultBeyond, 20},
		{"all cut off, size too", `DELETE FROM audit_leaf WHERE tenant = 'default' AND number >= 0; UPDATE audit_log SET size = 0 WHERE tenant = 'default'`, audit.FaultBeyond, 0},
	} {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			o := newOldLog(t, 60, 0, d.sql)
			s := openTest(t, Config{URL: o.url})
			report, err := audit.Check(t.Context(), s, "default")
			if err != nil {
				t.Fatal(err)
			}
			if f := report.Fault; f == nil || f.Kind != d.kind || f.Index != d.at {
				t.Errorf("%+v, want %s at %d", report.Fault, d.kind, d.at)
			}
			if report, err := audit.Check(t.Context(), s, "acme"); err != nil || report.Err() != nil {
				t.Errorf("the other tenant's log: %+v, %v", report, err)
			}
		})
	}
}

// TestOthersLeaves: a program of before this version cannot store a leaf that
// nobody would number.
func TestOthersLeaves(t *testing.T) {
	t.Parallel()
	c, err := pgx.Connect(t.Context(), pgtest.AllTenants(database(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	_, err = c.Exec(t.Context(), `INSERT INTO audit_leaf (tenant, action_id, body) VALUES ('default', '', '{}')`)
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.ColumnName != "seq" {
		t.Errorf("%v, want a refusal of a leaf without a row", err)
	}
}
