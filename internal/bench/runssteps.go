package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// inFlight are the numbers of steps executed concurrently.
var inFlight = []int{16, 64}

// ways are the two modes of execution: the runtime's default, which executes a step without outside
// effects inline with the one before it, and a separate lease for each step.
var ways = []struct {
	name, file string
	onward     int
}{
	{"", "", 0},
	{", each under a lease of its own", "-alone", -1},
}

// steps measures steps that do nothing, through lease, evaluation and completion, with the attempt,
// the audit leaf and the readying of the next step. The baseline writes the same rows by bare
// statements in batches of the same size.
func (r *runner) steps(ctx context.Context) error {
	e := &endCounter{}
	setup := Setup{Targets: noopTargets(), Idle: true, Hints: func(h usecase.Hints) usecase.Hints {
		e.Hints = h
		return e
	}}
	return r.within(ctx, "steps", setup, 1, func(dbs databases, w *world) error {
		for _, n := range inFlight {
			if err := r.stepsWith(ctx, dbs, w, e, n); err != nil {
				return err
			}
		}
		return nil
	})
}

// lines is a Queue of bare runs.
type lines struct{ stepper }

// Is describes the baseline for the table.
func (*lines) Is() string {
	return "bare lease and completion of the same rows, in batches of the same size, one transaction per batch"
}

func (r *runner) lines(ctx context.Context, in databases, n int) (Queue, error) {
	if r.Queue != nil {
		return r.Queue(ctx, in.place(Setup{}))
	}
	s, err := in.steps(ctx, n)
	return &lines{s}, err
}

func (r *runner) stepsWith(ctx context.Context, in databases, w *world, e *endCounter, n int) (err error) {
	b, err := r.lines(ctx, in, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	d := r.slice((1 + len(ways)) * len(inFlight))
	guess := func(last *outcome) int {
		rate := 3000.0
		if last != nil {
			rate = last.perSecond()
		}
		return max(2*n, int(rate*d.Seconds())/lineSteps)
	}
	rate, cpu := make([]values, len(ways)), make([]values, len(ways))
	ours := make([]*outcome, len(ways))
	var bare *outcome
	for round := range r.Rounds {
		r.say("steps, %d in flight, round %d of %d", n, round+1, r.Rounds)
		bareRuns := guess(bare)
		if err := b.Store(ctx, bareRuns*lineSteps); err != nil {
			return err
		}
		for i, way := range ways {
			runs := guess(ours[i])
			if err := fillLines(ctx, w.Store, runs); err != nil {
				return err
			}
			if round == 0 && i == 0 {
				if err := in.analyze(ctx); err != nil {
					return err
				}
			}
			ours[i], err = r.profiled(fmt.Sprintf("steps-%d%s", n, way.file), round,
				func() (*outcome, error) { return w.carryLines(ctx, e, n, way.onward, runs) })
			if err == nil {
				err = w.bundle(ctx)
			}
			if err != nil {
				return err
			}
		}
		runtime.GC()
		before := cpuTime()
		took, err := b.Carry(ctx, bareRuns*lineSteps)
		if err != nil {
			return err
		}
		bare = &outcome{done: bareRuns * lineSteps, elapsed: took, cpu: cpuTime() - before}
		for i, o := range ours {
			rate[i].add(o.perSecond(), bare.perSecond())
			cpu[i].add(o.cpuEach(), bare.cpuEach())
		}
	}
	for i, way := range ways {
		l := Line{Figure: "steps", Name: fmt.Sprintf("steps leased, carried out, completed, %d in flight%s", n, way.name),
			Unit: "/s", Baseline: b.Is()}
		alone := way.onward < 0
		switch {
		case r.Queue != nil && !alone:
			l.Target = 1
		case r.Queue == nil && r.base.engine() == "SQLite":
			l.Target = 0.5
		case r.Queue == nil && alone:
			l.Target = 1
		}
		r.report(l, rate[i])
		if r.Queue == nil {
			r.reportCPU(Line{Figure: "steps", Name: fmt.Sprintf("CPU a step, %d in flight%s", n, way.name), Baseline: b.Is()},
				cpu[i])
		}
	}
	return nil
}
