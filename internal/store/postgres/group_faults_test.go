package postgres

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// TestGroupCommitLost loses a group's COMMIT in three ways: each member is stored
// exactly once.
func TestGroupCommitLost(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]int32{"answer": loseAnswer, "request": loseRequest,
		"session stays open": swallowWhole} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			p, through := newProxy(t, database(t))
			s := openTest(t, Config{URL: through, MaxConns: 2, Patience: 2 * time.Second})
			var runs atomic.Int64
			group := func(prefix string, lose int32) {
				t.Helper()
				runs.Store(0)
				inside := func(run int) error {
					runs.Add(1)
					if run == 1 {
						p.lose.Store(lose) // the next message contains the last write and COMMIT
					}
					return nil
				}
				for _, err := range together(t, s, addLeaf(ctx, s, prefix+"1", inside), addLeaf(ctx, s, prefix+"2", inside),
					addLeaf(ctx, s, prefix+"3", inside)) {
					if err != nil {
						t.Error(err)
					}
				}
			}
			group("a", loseNothing) // prepares the statements
			group("b", lose)
			if want := map[bool]int64{true: 3, false: 6}[lose == loseAnswer]; runs.Load() != want {
				t.Errorf("the closures ran %d times, want %d", runs.Load(), want)
			}
			wantLeaves(t, s, "a1", "a2", "a3", "b1", "b2", "b3")
		})
	}
}

// TestGroupCommitNeverKnown loses the answer to a group's COMMIT, and every connection after that: no
// member's error allows a retry.
func TestGroupCommitNeverKnown(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p, through := newProxy(t, database(t))
	s := openTest(t, Config{URL: through, MaxConns: 2, Patience: 300 * time.Millisecond})
	inside := func(int) error {
		p.lose.Store(loseAnswer)
		p.gone.Store(true)
		return nil
	}
	for _, err := range together(t, s, addLeaf(ctx, s, "a1", nil), addLeaf(ctx, s, "a2", nil)) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, err := range together(t, s, addLeaf(ctx, s, "b1", inside), addLeaf(ctx, s, "b2", inside)) {
		if err == nil || errors.Is(err, gatehouse.ErrBusy) {
			t.Errorf("member %d: error %v: it must not invite to try again", i, err)
		}
	}
}

// TestGroupKilled terminates the session between a group's answers and its COMMIT: each member is still
// stored once.
func TestGroupKilled(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t, Config{})
	var once sync.Once
	kill := func(int) error {
		once.Do(func() {
			statement(t, s.config.URL, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`)
		})
		return nil
	}
	for _, err := range together(t, s, addLeaf(ctx, s, "a", kill), addLeaf(ctx, s, "b", kill), addLeaf(ctx, s, "c", nil)) {
		if err != nil {
			t.Error(err)
		}
	}
	wantLeaves(t, s, "a", "b", "c")
}
