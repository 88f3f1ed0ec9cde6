package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// callers are the measured numbers of concurrent callers.
var callers = []int{1, 16, 64, 256}

// fill stores n pending actions and returns their ids' suffixes.
func fill(tb testing.TB, s *Store, n int) []string {
	tb.Helper()
	ids := make([]string, n)
	for i := 0; i < n; i += 500 {
		err := s.Update(context.Background(), gatehouse.DefaultTenant, func(tx gatehouse.Tx) error {
			for j := i; j < min(i+500, n); j++ {
				ids[j] = fmt.Sprintf("%09d", j)
				if err := tx.InsertAction(pendingAction(ids[j], tx.Now())); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	return ids
}

// spread runs work for 0 ≤ i < n on k goroutines.
func spread(b *testing.B, k, n int, work func(i int) error) {
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range k {
		wg.Go(func() {
			for {
				i := int(next.Add(1) - 1)
				if i >= n {
					return
				}
				if err := work(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "tx/s")
}

// BenchmarkUpdateDecide measures all reads and writes of one decision.
func BenchmarkUpdateDecide(b *testing.B) {
	for _, k := range callers {
		b.Run(fmt.Sprintf("callers=%d", k), func(b *testing.B) {
			s := openTest(b, Config{})
			ids := fill(b, s, b.N)
			before := s.writer.commits.Load()
			spread(b, k, b.N, func(i int) error {
				return s.Update(
					context.Background(),
					gatehouse.DefaultTenant,
					func(tx gatehouse.Tx) error { return decide(tx, ids[i]) },
				)
			})
			b.ReportMetric(float64(b.N)/float64(s.writer.commits.Load()-before), "tx/commit")
		})
	}
}

// BenchmarkUpdateClaim measures the bare claim through the store: the guarded
// update, its push and one leaf.
func BenchmarkUpdateClaim(b *testing.B) {
	for _, k := range callers {
		b.Run(fmt.Sprintf("callers=%d", k), func(b *testing.B) {
			s := openTest(b, Config{})
			ids := fill(b, s, b.N)
			spread(b, k, b.N, func(i int) error {
				return s.Update(
					context.Background(),
					gatehouse.DefaultTenant,
					func(tx gatehouse.Tx) error { return claim(tx, ids[i]) },
				)
			})
		})
	}
}

func claim(tx gatehouse.Tx, id string) error {
	err := tx.MoveAction(gatehouse.ActionMove{
		ID: "act_" + id, From: gatehouse.StatusPending, To: gatehouse.StatusApproved,
		DecidedBy: "ana", DecidedVia: gatehouse.ViaAPI, Decided: true,
	})
	if err != nil {
		return err
	}
	if err := tx.InsertPush(&gatehouse.Push{
		ID: "psh_" + id, Tenant: "default", ActionID: "act_" + id, Connector: "shop", IdempotencyKey: id, Digest: "d",
		Status: gatehouse.PushQueued, NotBefore: tx.Now(), CreatedAt: tx.Now(),
	}); err != nil {
		return err
	}
	return tx.AppendLeaf(
		&gatehouse.Leaf{Tenant: "default", Type: "hitl.approved", Subject: "act_" + id, ActionID: "act_" + id, Actor: "ana"})
}

// The baseline: the claim as three plain SQL statements over three plain
// tables, through database/sql.
const (
	bareSchema = `
CREATE TABLE action (id TEXT PRIMARY KEY, tenant TEXT NOT NULL, status TEXT NOT NULL, body TEXT NOT NULL,
  decided_by TEXT, decided_at INTEGER) STRICT;
CREATE INDEX action_status ON action (tenant, status, id);
CREATE TABLE push (id TEXT PRIMARY KEY, tenant TEXT NOT NULL, action_id TEXT NOT NULL UNIQUE, status TEXT NOT NULL,
  due INTEGER NOT NULL) STRICT;
CREATE INDEX push_due ON push (due) WHERE status = 'queued';
CREATE TABLE event (seq INTEGER PRIMARY KEY, tenant TEXT NOT NULL, body TEXT NOT NULL) STRICT;`
	bareUpdate = `UPDATE action SET status = 'approved', decided_by = ?, decided_at = ?
		WHERE tenant = ? AND id = ? AND status = 'pending' RETURNING id`
	barePush  = `INSERT INTO push VALUES (?, ?, ?, 'queued', ?)`
	bareEvent = `INSERT INTO event (tenant, body) VALUES (?, ?)`
)

func bareOpen(b *testing.B, n int) *sql.DB {
	b.Helper()
	dsn := "file:" + filepath.Join(b.TempDir(), "bare.db") +
		"?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)" +
		"&_pragma=wal_autocheckpoint(8000)"
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(bareSchema); err != nil {
		b.Fatal(err)
	}
	tx, err := db.Begin()
	if err != nil {
		b.Fatal(err)
	}
	for i := range n {
		if _, err := tx.Exec(`INSERT INTO action VALUES (?, 'default', 'pending', ?, NULL, NULL)`, fmt.Sprintf("%09d", i),
			fmt.Sprintf("%0400d", i)); err != nil {
			b.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		b.Fatal(err)
	}
	return db
}

type bareStmts struct{ update, push, event *sql.Stmt }

func bareClaim(tx *sql.Tx, st bareStmts, i int) error {
	id := fmt.Sprintf("%09d", i)
	var got string
	if err := tx.Stmt(st.update).QueryRow("ana", time.Now().UnixMicro(), "default", id).Scan(&got); err != nil {
		return err
	}
	if _, err := tx.Stmt(st.push).Exec(id, "default", id, time.Now().UnixMicro()); err != nil {
		return err
	}
	_, err := tx.Stmt(st.event).Exec("default", `{"type":"hitl.approved","subject":"`+id+`","actor":"ana"}`)
	return err
}

func bareStatements(b *testing.B, db *sql.DB) (st bareStmts) {
	b.Helper()
	for _, p := range []struct {
		to  **sql.Stmt
		sql string
	}{{&st.update, bareUpdate}, {&st.push, barePush}, {&st.event, bareEvent}} {
		s, err := db.Prepare(p.sql)
		if err != nil {
			b.Fatal(err)
		}
		*p.to = s
	}
	return st
}

// BenchmarkBareClaim runs each claim in its own transaction.
func BenchmarkBareClaim(b *testing.B) {
	db := bareOpen(b, b.N)
	st := bareStatements(b, db)
	spread(b, 1, b.N, func(i int) error {
		tx, err := db.Begin()
		if err != nil {
			return err
		}
		if err := bareClaim(tx, st, i); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// BenchmarkBareGroup is the simplest group commit: a writer runs up to 64
// waiting claims in one transaction, each in a savepoint.
func BenchmarkBareGroup(b *testing.B) {
	for _, k := range callers[1:] {
		b.Run(fmt.Sprintf("callers=%d", k), func(b *testing.B) {
			db := bareOpen(b, b.N)
			st := bareStatements(b, db)
			type job struct {
				i    int
				done chan error
			}
			queue := make(chan job, 256)
			go func() {
				for first := range queue {
					tx, err := db.Begin()
					if err != nil {
						first.done <- err
						continue
					}
					batch := []job{first}
					for n := 0; n < len(batch); n++ {
						if _, err := tx.Exec(`SAVEPOINT s`); err != nil {
							b.Error(err)
						}
						if err := bareClaim(tx, st, batch[n].i); err != nil {
							b.Error(err)
						}
						if _, err := tx.Exec(`RELEASE s`); err != nil {
							b.Error(err)
						}
						if len(batch) < maxBatch {
							select {
							case j := <-queue:
								batch = append(batch, j)
							default:
							}
						}
					}
					err = tx.Commit()
					for _, j := range batch {
						j.done <- err
					}
				}
			}()
			spread(b, k, b.N, func(i int) error {
				j := job{i, make(chan error, 1)}
				queue <- j
				return <-j.done
			})
			close(queue)
		})
	}
}

// BenchmarkView measures a transaction that reads one row: a request's API key,
// or an action with everything that belongs to it.
func BenchmarkView(b *testing.B) {
	s := openTest(b, Config{})
	fill(b, s, 1000)
	var hash [32]byte
	err := s.Update(context.Background(), "default", func(tx gatehouse.Tx) error {
		p := &gatehouse.Principal{ID: "prn_1", Tenant: "default", Name: "ana", Kind: gatehouse.KindPerson,
			Roles: []gatehouse.Role{gatehouse.RoleApprover}, Person: "prn_1"}
		if err := tx.InsertPrincipal(p); err != nil {
			return err
		}
		return tx.InsertKey(&gatehouse.Key{ID: "key_1", Tenant: "default", PrincipalID: "prn_1", Hash: hash})
	})
	if err != nil {
		b.Fatal(err)
	}
	for name, fn := range map[string]func(gatehouse.ReadTx) error{
		"empty":  func(gatehouse.ReadTx) error { return nil },
		"key":    func(tx gatehouse.ReadTx) error { _, _, err := tx.FindKey(hash); return err },
		"action": func(tx gatehouse.ReadTx) error { _, err := tx.FindAction("act_000000500"); return err },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := s.View(context.Background(), gatehouse.DefaultTenant, fn); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
