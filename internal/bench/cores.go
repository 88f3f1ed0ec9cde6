package bench

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"cel.dev/cel-go/cel"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// repeat runs fn, which does n things, on one goroutine until the time is over.
func repeat(ctx context.Context, d time.Duration, n int, fn func() error) (*outcome, error) {
	o := &outcome{}
	start := time.Now()
	for o.elapsed < d {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := fn(); err != nil {
			return nil, err
		}
		o.done += n
		o.elapsed = time.Since(start)
	}
	return o, nil
}

// turns measures two sides on one goroutine, in turns.
func (r *runner) turns(ctx context.Context, l Line, n int, ours, bare func() error) error {
	d := r.slice(2)
	var rate values
	for round := range r.Rounds {
		r.say("%s, round %d of %d", l.Figure, round+1, r.Rounds)
		a, err := r.profiled(l.Figure, round, func() (*outcome, error) { return repeat(ctx, d, n, ours) })
		if err != nil {
			return err
		}
		runtime.GC()
		b, err := repeat(ctx, d, n, bare)
		if err != nil {
			return err
		}
		rate.add(a.perSecond(), b.perSecond())
	}
	r.report(l, rate)
	return nil
}

// entries makes a log of n entries as the gate writes them.
func entries(n int) ([]*gatehouse.Entry, gatehouse.LogHead) {
	list := make([]*gatehouse.Entry, n)
	var tree audit.Tree
	for i := range list {
		body := gatehouse.MustJSON(map[string]any{
			"action_id": fmt.Sprintf("act_%032d", i), "actor": "prn_reviewer", "at": "2026-11-20T12:00:00.123456Z",
			"data":   map[string]any{"approval": fmt.Sprintf("apr_%032d", i), "decision": "approved", "required": 1, "via": "api", "votes": 1},
			"digest": bareDigest, "from": "pending", "id": fmt.Sprintf("evt_%032d", i), "subject": fmt.Sprintf("act_%032d", i),
			"tenant": gatehouse.DefaultTenant, "to": "approved", "type": "hitl.approved",
		})
		h := audit.LeafHash(body)
		tree.Append(h, nil)
		list[i] = &gatehouse.Entry{Index: int64(i), LeafHash: h, Body: body}
	}
	return list, gatehouse.LogHead{Tenant: gatehouse.DefaultTenant, Size: int64(n), Root: tree.Root()}
}

// verify measures the verification of a log in memory.
func (r *runner) verify(ctx context.Context) error {
	const n = 20_000
	list, head := entries(n)
	ours := func() error {
		report, err := audit.VerifyEntries(func(yield func(*gatehouse.Entry, error) bool) {
			for _, e := range list {
				if !yield(e, nil) {
					return
				}
			}
		}, head)
		if err == nil && report.Fault != nil {
			err = fmt.Errorf("%v", report.Fault)
		}
		return err
	}
	var buf, node []byte
	node = make([]byte, 65)
	var sum [32]byte
	bare := func() error {
		for _, e := range list {
			buf = append(append(buf[:0], 0), e.Body...)
			sum = sha256.Sum256(buf)
			copy(node[1:], sum[:])
			sum = sha256.Sum256(node)
		}
		return nil
	}
	return r.turns(ctx, Line{
		Figure: "verify", Name: "audit entries verified, one core", Unit: "/s", Target: 300_000, Absolute: true,
		Baseline: "two SHA-256 an entry",
	}, n, ours, bare)
}

// policy measures the judging of a price change by the default policy.
func (r *runner) policy(ctx context.Context) error {
	const n = 1000
	p := policy.Default()
	facts := policy.Facts{
		Tenant: gatehouse.DefaultTenant, Proposal: proposal(1),
		Proposer: &gatehouse.Principal{ID: "prn_agent", Name: "agent", Kind: gatehouse.KindAgent, Roles: []gatehouse.Role{gatehouse.RoleProposer}},
	}
	ours := func() error {
		for range n {
			if v := p.Evaluate(facts); v.Outcome != gatehouse.OutcomeNeedsApproval {
				return fmt.Errorf("the policy says %s", v.Outcome)
			}
		}
		return nil
	}
	program, err := bareProgram("risk <= 2")
	if err != nil {
		return err
	}
	ceiling, err := bareProgram("risk >= 5")
	if err != nil {
		return err
	}
	bare := func() error {
		for range n {
			vars := map[string]any{"risk": int64(3)}
			for _, p := range []cel.Program{program, ceiling} {
				if v, _, err := p.Eval(vars); err != nil || v.Value() != false {
					return fmt.Errorf("CEL says %v, %v", v, err)
				}
			}
		}
		return nil
	}
	return r.turns(ctx, Line{
		Figure: "policy", Name: "policy evaluations, one core", Unit: "/s", Target: 200_000, Absolute: true,
		Baseline: "its two conditions in bare CEL",
	}, n, ours, bare)
}

func bareProgram(source string) (cel.Program, error) {
	env, err := cel.NewEnv(cel.Variable("risk", cel.IntType))
	if err != nil {
		return nil, err
	}
	tree, issues := env.Compile(source)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	return env.Program(tree)
}

// sequence measures the numbering of leaves.
func (r *runner) sequence(ctx context.Context) (err error) {
	dir, remove, err := r.folder("sequence")
	if err != nil {
		return err
	}
	defer remove()
	w, err := r.open(ctx, Setup{Dir: dir, Targets: noopTargets(), Idle: true}, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	b, err := openNumbers(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.db.Close()) }()
	d := r.slice(2)
	var rate values
	var ours, bare *outcome
	for round := range r.Rounds {
		r.say("sequence, round %d of %d", round+1, r.Rounds)
		if err := w.number(ctx); err != nil {
			return err
		}
		n := leavesFor(ours, d)
		if err := w.leaves(ctx, n); err != nil {
			return err
		}
		m := leavesFor(bare, d)
		if err := b.fill(m); err != nil {
			return err
		}
		ours, err = r.profiled("sequence", round, func() (*outcome, error) {
			start := time.Now()
			err := w.number(ctx)
			return &outcome{done: n, elapsed: time.Since(start)}, err
		})
		if err != nil {
			return err
		}
		runtime.GC()
		start := time.Now()
		if err := b.number(m); err != nil {
			return err
		}
		bare = &outcome{done: m, elapsed: time.Since(start)}
		rate.add(ours.perSecond(), bare.perSecond())
	}
	r.report(Line{
		Figure: "sequence", Name: "audit leaves numbered", Unit: "/s",
		Baseline: "bare UPDATE and two INSERTs a leaf, 1000 a transaction",
	}, rate)
	return nil
}

// leavesFor is how many leaves fill a side's time: by what it did last time.
func leavesFor(last *outcome, d time.Duration) int {
	rate := 20_000.0
	if last != nil {
		rate = last.perSecond()
	}
	return max(100, int(rate*d.Seconds()))
}

// leaves appends n leaves as the gate writes them.
func (w *world) leaves(ctx context.Context, n int) error {
	if w.template == nil {
		if err := w.propose(ctx); err != nil {
			return err
		}
	}
	a := *w.template
	for done := 0; done < n; {
		batch := min(fillBatch, n-done)
		err := w.Store.Update(ctx, func(tx gatehouse.Tx) error {
			for range batch {
				if err := w.append(tx, &a, "hitl.proposed", "", "pending"); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		done += batch
	}
	return nil
}

// numbers is the baseline of the sequencer.
type numbers struct {
	db                 *bareDB
	leaf, update, hash *sql.Stmt
	first, next        int
}

const numbersSchema = `
CREATE TABLE leaf (seq INTEGER PRIMARY KEY, body TEXT NOT NULL, number INTEGER, hash BLOB) STRICT;
CREATE UNIQUE INDEX leaf_number ON leaf (number) WHERE number IS NOT NULL;
CREATE TABLE hash (position INTEGER PRIMARY KEY, hash BLOB NOT NULL) STRICT;`

func openNumbers(ctx context.Context, dir string) (*numbers, error) {
	db, err := openBare(ctx, filepath.Join(dir, "bare.db"), numbersSchema)
	if err != nil {
		return nil, err
	}
	st, err := db.prepare(ctx, `INSERT INTO leaf (body) VALUES (?)`, `UPDATE leaf SET number = ?, hash = ? WHERE seq = ? AND number IS NULL`,
		`INSERT INTO hash (hash) VALUES (?)`)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &numbers{db: db, leaf: st[0], update: st[1], hash: st[2]}, nil
}

func (b *numbers) fill(n int) error {
	list, _ := entries(1)
	return b.db.whole(func() error {
		for range n {
			if err := execStmt(b.leaf, string(list[0].Body)); err != nil {
				return err
			}
			b.next++
		}
		return nil
	})
}

func (b *numbers) number(n int) error {
	for n > 0 {
		batch := min(n, audit.DefaultBatch)
		err := b.db.whole(func() error {
			for i := range batch {
				seq := b.first + i
				sum := sha256.Sum256([]byte{byte(seq), byte(seq >> 8), byte(seq >> 16)})
				if err := execStmt(b.update, seq, sum[:], seq+1); err != nil {
					return err
				}
				for range 2 {
					if err := execStmt(b.hash, sum[:]); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		b.first += batch
		n -= batch
	}
	return nil
}
