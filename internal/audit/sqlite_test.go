package audit_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite/sqlitetest/migratedfile"
)

func openStore(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	store := migratedfile.Open(t, path, nil)
	return store
}

// appendLeaves stores leaves n0 to n1-1 of a tenant, in one transaction.
func appendLeaves(store gatehouse.Store, tenant, writer string, n0, n1 int) error {
	return store.Update(context.Background(), tenant, func(tx gatehouse.Tx) error {
		for i := n0; i < n1; i++ {
			err := tx.AppendLeaf(&gatehouse.Leaf{
				Tenant: tenant, Type: "hitl.approved", Subject: fmt.Sprintf("act_%d", i), ActionID: fmt.Sprintf("act_%d", i),
				Actor: writer,
				Data:  gatehouse.MustJSON(map[string]any{"n": i}),
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// TestTwoSequencers lets two sequencers number the leaves that several writers
// append concurrently. The log has each leaf once, without gaps, in the order of
// each writer, and verifies.
func TestTwoSequencers(t *testing.T) {
	t.Parallel()
	const writers, perWriter = 4, 250
	store := openStore(t, migratedfile.New(t))
	tenants := []string{"default", "acme"}
	name := func(writer int) string { return fmt.Sprintf("<é😀\u2028\"\\\n> & %d", writer) }

	var writing, numbering sync.WaitGroup
	done := make(chan struct{})
	for w := range writers {
		writing.Go(func() {
			for i := 0; i < perWriter; i += 5 {
				if err := appendLeaves(store, tenants[w%2], name(w), i, i+5); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var counts [2]int
	for s := range counts {
		numbering.Go(func() {
			seq := audit.Sequencer{Store: store, Batch: 13}
			for {
				var finished bool
				select {
				case <-done:
					finished = true
				default:
				}
				n, err := seq.Once(context.Background())
				if err != nil && !errors.Is(err, gatehouse.ErrConflict) {
					t.Error(err)
					return
				}
				counts[s] += n
				if finished && n == 0 && err == nil {
					return
				}
				if n == 0 {
					time.Sleep(time.Millisecond) // leaves the CPU to the writers
				}
			}
		})
	}
	writing.Wait()
	close(done)
	numbering.Wait()

	if counts[0]+counts[1] != writers*perWriter {
		t.Errorf("the sequencers numbered %v leaves, want %d together", counts, writers*perWriter)
	}
	for i, tenant := range tenants {
		next := map[string]int{}
		var records [][]byte
		for _, e := range allEntries(t, store, tenant) {
			var l gatehouse.Leaf
			must(t, json.Unmarshal([]byte(e.Body), &l))
			if want := fmt.Sprintf("act_%d", next[l.Actor]); e.Index != int64(len(records)) || l.Tenant != tenant ||
				l.Subject != want {
				t.Fatalf("tenant %s, place %d: entry %d of tenant %s is %s of writer %s, want %s", tenant, len(records), e.Index,
					l.Tenant, l.Subject, l.Actor, want)
			}
			if c, err := gatehouse.Canonicalize([]byte(e.Body)); err != nil || c != e.Body {
				t.Fatalf("entry %d is not in canonical form: %s, %v", e.Index, e.Body, err)
			}
			next[l.Actor]++
			records = append(records, []byte(e.Body))
		}
		if len(next) != 2 || next[name(i)] != perWriter || next[name(i+2)] != perWriter {
			t.Errorf("tenant %s: leaves by writer %v, want %d each", tenant, next, perWriter)
		}
		r, err := audit.Check(t.Context(), store, tenant)
		if err != nil || r.Err() != nil || r.Found != int64(len(records)) || r.Unnumbered != 0 || r.Root != mth(records) {
			t.Errorf("tenant %s: %+v, %v", tenant, r, err)
		}
	}
}

func allEntries(t testing.TB, store gatehouse.Store, tenant string) []*gatehouse.Entry {
	t.Helper()
	var entries []*gatehouse.Entry
	err := store.View(t.Context(), tenant, func(tx gatehouse.ReadTx) (err error) {
		entries, err = tx.ListEntries(0, 1_000_000)
		return err
	})
	must(t, err)
	return entries
}

// overtaken is a store that calls a function before each UpdateQueues.
type overtaken struct {
	gatehouse.Store
	before func()
}

func (o overtaken) UpdateQueues(ctx context.Context, fn func(gatehouse.Queues) error) error {
	o.before()
	return o.Store.UpdateQueues(ctx, fn)
}

// TestOvertakenSequencer lets another sequencer number some of one tenant's leaves
// after a batch was computed and before it is written.
func TestOvertakenSequencer(t *testing.T) {
	t.Parallel()
	store := openStore(t, migratedfile.New(t))
	for _, tenant := range []string{"default", "acme"} {
		must(t, appendLeaves(store, tenant, "w", 0, 10))
	}
	slow := audit.Sequencer{Store: overtaken{store, func() {
		fast := audit.Sequencer{Store: store, Batch: 3}
		if n, err := fast.Once(t.Context()); n != 3 || err != nil {
			t.Error(n, err)
		}
	}}}
	if n, err := slow.Once(t.Context()); n != 0 || !errors.Is(err, gatehouse.ErrConflict) {
		t.Errorf("the overtaken batch: %d, %v; want ErrConflict", n, err)
	}
	if a, b := len(allEntries(t, store, "default")), len(allEntries(t, store, "acme")); a != 3 || b != 0 {
		t.Errorf("the logs have %d and %d entries, want 3 and 0: the batch is all or nothing", a, b)
	}
	seq := audit.Sequencer{Store: store}
	if n, err := seq.Once(t.Context()); n != 17 || err != nil {
		t.Errorf("the next batch: %d, %v; want 17", n, err)
	}
	for _, tenant := range []string{"default", "acme"} {
		if r, err := audit.Check(t.Context(), store, tenant); err != nil || r.Err() != nil || r.Found != 10 {
			t.Errorf("tenant %s: %+v, %v", tenant, r, err)
		}
	}
}

// TestCheckSQLite opens the database without the store, removes the triggers that
// protect the log, and tampers. Check names the changed place.
func TestCheckSQLite(t *testing.T) {
	t.Parallel()
	const n = 40
	forgedHash := fmt.Sprintf("X'%x'", audit.LeafHash("{}"))
	const zeros = `zeroblob(32)`
	// leaf is the condition for the row of one entry's leaf, leavesFrom for the rows from it on.
	leaf := func(number int) string {
		return fmt.Sprintf(
			`tenant = 'default' AND seq = (SELECT seq FROM audit_leaf WHERE tenant = 'default' ORDER BY seq LIMIT 1 OFFSET %d)`,
			number)
	}
	leavesFrom := func(number int) string {
		return fmt.Sprintf(
			`tenant = 'default' AND seq IN (
  SELECT seq FROM audit_leaf WHERE tenant = 'default' ORDER BY seq LIMIT -1 OFFSET %d)`, number)
	}
	// batch joins pieces into a new blob for the only batch. A piece is two numbers, a range of the old
	// blob in units of size bytes, or an SQL expression.
	batch := func(column string, size int, pieces ...any) string {
		var parts []string
		for i := 0; i < len(pieces); i++ {
			if text, ok := pieces[i].(string); ok {
				parts = append(parts, text)
				continue
			}
			from, to := pieces[i].(int), pieces[i+1].(int)
			parts, i = append(parts, fmt.Sprintf("substr(%s, %d, %d)", column, 1+from*size, (to-from)*size)), i+1
		}
		return fmt.Sprintf(`UPDATE audit_batch SET %s = CAST(%s AS BLOB) WHERE tenant = 'default'`, column,
			strings.Join(parts, " || "))
	}
	const most = 1000
	setHash := func(level int, i int64, hash string) string {
		at := int(tlog.StoredHashIndex(level, i))
		return batch("hashes", 32, 0, at, hash, at+1, most)
	}
	cutHashes := func(level int, i int64) string { return batch("hashes", 32, 0, int(tlog.StoredHashIndex(level, i))) }
	leaves := func(pieces ...any) string { return batch("leaves", 8, pieces...) }
	appended := `INSERT INTO audit_leaf (tenant, action_id, body) VALUES ('default', '', '{}');
		` + leaves(0, n, `(SELECT unhex(printf('%016x', max(seq))) FROM audit_leaf)`)
	path := migratedfile.New(t)
	store := openStore(t, path)
	seq := audit.Sequencer{Store: store}
	for _, tenant := range []string{"default", "acme"} {
		must(t, appendLeaves(store, tenant, "w", 0, n))
	}
	if got, err := seq.Once(t.Context()); got != 2*n || err != nil {
		t.Fatal(got, err)
	}
	must(t, store.Close())
	whole, err := os.ReadFile(path)
	must(t, err)
	for _, tt := range []struct {
		name  string
		sql   string
		kind  audit.FaultKind // "" for none
		index int64
		found int64
	}{
		{"nothing", `SELECT 1`, "", 0, n},
		{"body", `UPDATE audit_leaf SET body = '{}' WHERE ` + leaf(17), audit.FaultLeafHash, 17, n},
		{"one byte", `UPDATE audit_leaf SET body = replace(body, 'approved', 'approvee') WHERE ` + leaf(17),
			audit.FaultLeafHash, 17, n},
		{"leaf hash", setHash(0, 17, zeros), audit.FaultLeafHash, 17, n},
		{"body and leaf hash", `UPDATE audit_leaf SET body = '{}' WHERE ` + leaf(17) + `; ` + setHash(0, 17, forgedHash),
			audit.FaultTreeHash, 17, n},
		{"node", setHash(3, 2, zeros), audit.FaultTreeHash, 23, n},
		{"hash removed", batch("hashes", 32, 0, int(tlog.StoredHashIndex(0, 20)), int(tlog.StoredHashIndex(0, 20))+1, most),
			audit.FaultLeafHash, 20, n},
		{"hashes removed from the middle on", cutHashes(0, 20), audit.FaultLeafHash, 20, n},
		{"last hashes removed", cutHashes(3, 4), audit.FaultTreeHash, 39, n},
		{"entry removed", `DELETE FROM audit_leaf WHERE ` + leaf(5), audit.FaultIndex, 5, n - 1},
		{"entry removed, rest moved up", leaves(0, 5, 6, n), audit.FaultLeafHash, 5, n - 1},
		{"number taken away", leaves(0, 5, `zeroblob(8)`, 6, n), audit.FaultIndex, 5, n - 1},
		{"entries swapped", leaves(0, 8, 9, 10, 8, 9, 10, n), audit.FaultLeafHash, 8, n},
		{"batch moved", `UPDATE audit_batch SET number = 1 WHERE tenant = 'default'`, audit.FaultIndex, 0, n},
		{"batch removed", `DELETE FROM audit_batch WHERE tenant = 'default'`, audit.FaultMissing, 0, 0},
		{"end cut off", `DELETE FROM audit_leaf WHERE ` + leavesFrom(35), audit.FaultMissing, 35, 35},
		{"end cut off, numbers too", leaves(0, 35), audit.FaultMissing, 35, 35},
		{"end cut off, size too", `DELETE FROM audit_leaf WHERE ` + leavesFrom(35) + `; ` + leaves(0, 35) + `;
			UPDATE audit_log SET size = 35 WHERE tenant = 'default'`, audit.FaultBeyond, 35, 35},
		{"size lowered", `UPDATE audit_log SET size = 35 WHERE tenant = 'default'`, audit.FaultBeyond, 35, n},
		{"log forgotten", `DELETE FROM audit_log WHERE tenant = 'default'`, audit.FaultBeyond, 0, n},
		{"entry appended", appended, audit.FaultBeyond, n, n + 1},
		{"entry appended, size too", appended + `; UPDATE audit_log SET size = 41 WHERE tenant = 'default'`,
			audit.FaultLeafHash, n, n + 1},
		{"entry appended, with its hash, size too", appended + `; ` + batch("hashes", 32, 0, most, forgedHash) + `;
			UPDATE audit_log SET size = 41 WHERE tenant = 'default'`, "", n, n + 1},
		{"entry given to another tenant", `UPDATE audit_leaf SET tenant = 'zen' WHERE ` + leaf(5), audit.FaultIndex, 5,
			n - 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "gate.db")
			must(t, os.WriteFile(path, whole, 0o600))
			tamper(t, path, tt.sql)

			store := openStore(t, path)
			r, err := audit.Check(t.Context(), store, "default")
			must(t, err)
			switch {
			case tt.kind == "":
				if r.Err() != nil || r.Found != tt.found {
					t.Errorf("%+v", r)
				}
			case r.Fault == nil || r.Fault.Kind != tt.kind || r.Fault.Index != tt.index || r.Found != tt.found:
				t.Errorf("got %+v with %d found, want %s at %d with %d", r.Fault, r.Found, tt.kind, tt.index, tt.found)
			}
			if r, err := audit.Check(t.Context(), store, "acme"); err != nil || r.Err() != nil {
				t.Errorf("the log of another tenant: %+v, %v", r, err)
			}
		})
	}
}

// tamper changes a database as a person with access to its file can.
func tamper(t *testing.T, path, statements string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(path))
	must(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	rows, err := db.Query(`SELECT name FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'audit%'`)
	must(t, err)
	defer rows.Close()
	var triggers []string
	for rows.Next() {
		var name string
		must(t, rows.Scan(&name))
		triggers = append(triggers, name)
	}
	if err := rows.Err(); err != nil || len(triggers) == 0 {
		t.Fatalf("%d triggers guard the log, %v", len(triggers), err)
	}
	for _, name := range triggers {
		if _, err := db.Exec(`DROP TRIGGER ` + name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Exec(statements); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkSequencer numbers waiting leaves in full batches.
func BenchmarkSequencer(b *testing.B) {
	store := openStore(b, migratedfile.New(b))
	seq := audit.Sequencer{Store: store}
	for b.Loop() {
		b.StopTimer()
		must(b, appendLeaves(store, "default", "w", 0, audit.DefaultBatch))
		b.StartTimer()
		if n, err := seq.Once(b.Context()); n != audit.DefaultBatch || err != nil {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(float64(b.N)*audit.DefaultBatch/b.Elapsed().Seconds(), "leaves/s")
}

// must ends the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
