package bench

import (
	"context"
	"crypto/sha256"
	"fmt"
	"runtime"
	"time"

	"cel.dev/cel-go/cel"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
)

// repeat calls fn on one goroutine until the time is over; each call counts as n items.
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

// turns measures two sides alternately on one goroutine; each call of ours and of bare counts as n items.
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

// entries makes a log of n entries in the gate's format.
func entries(n int) ([]*gatehouse.Entry, gatehouse.LogHead) {
	list := make([]*gatehouse.Entry, n)
	var tree audit.Tree
	for i := range list {
		body := gatehouse.MustJSON(map[string]any{
			"action_id": fmt.Sprintf("act_%032d", i), "actor": "prn_reviewer", "at": "2026-11-20T12:00:00.123456Z",
			"data": map[string]any{"approval": fmt.Sprintf("apr_%032d", i), "decision": "approved", "required": 1,
				"via": "api", "votes": 1},
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
		Baseline: "two SHA-256 hashes per entry",
	}, n, ours, bare)
}

// bareConditions are the conditions of the default policy.
var bareConditions = []string{"risk <= 2", "risk >= 3 && action.reversal", "risk >= 5"}

// policy measures the evaluation of a price change by the default policy.
func (r *runner) policy(ctx context.Context) error {
	const n = 1000
	p := policy.Default()
	facts := policy.Facts{
		Tenant: gatehouse.DefaultTenant, Proposal: proposal(1),
		Proposer: &gatehouse.Principal{ID: "prn_agent", Name: "agent", Kind: gatehouse.KindAgent,
			Roles: []gatehouse.Role{gatehouse.RoleProposer}},
	}
	ours := func() error {
		for range n {
			if v := p.Evaluate(context.Background(), facts); v.Outcome != gatehouse.OutcomeNeedsApproval {
				return fmt.Errorf("the policy says %s", v.Outcome)
			}
		}
		return nil
	}
	var programs []cel.Program
	for _, source := range bareConditions {
		program, err := bareProgram(source)
		if err != nil {
			return err
		}
		programs = append(programs, program)
	}
	bare := func() error {
		for range n {
			vars := map[string]any{"risk": int64(3), "action": map[string]any{"reversal": false}}
			for _, p := range programs {
				v, _, err := p.Eval(vars)
				if err != nil {
					return err
				}
				if v.Value() != false {
					return fmt.Errorf("CEL says %v", v)
				}
			}
		}
		return nil
	}
	return r.turns(ctx, Line{
		Figure: "policy", Name: "policy evaluations, one core", Unit: "/s", Target: 200_000, Absolute: true,
		Baseline: "its conditions in bare CEL",
	}, n, ours, bare)
}

func bareProgram(source string) (cel.Program, error) {
	env, err := cel.NewEnv(cel.Variable("risk", cel.IntType),
		cel.Variable("action", cel.MapType(cel.StringType, cel.DynType)))
	if err != nil {
		return nil, err
	}
	tree, issues := env.Compile(source)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	return env.Program(tree)
}
