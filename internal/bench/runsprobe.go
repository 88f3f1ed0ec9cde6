package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

const probeSource = `name: probe
steps:
  - id: ask
    uses: model.bench
    with: {model: none, prompt: "probe ${{ input.n }}"}
`

// probes is a model that answers at once and records which step asked when: at that time, the step
// has reached its worker.
type probes struct {
	mu    sync.Mutex
	asked map[string]chan time.Time
}

// Ask records the time.
func (p *probes) Ask(
	_ context.Context, _, provider string, request gatehouse.JSON,
) (gatehouse.JSON, *gatehouse.ModelUsage, *gatehouse.StepFailure) {
	now := time.Now()
	prompt, _ := request.Get("prompt")
	p.mu.Lock()
	if c := p.asked[string(prompt)]; c != nil {
		c <- now
		delete(p.asked, string(prompt))
	}
	p.mu.Unlock()
	return `{"text":"ok"}`, &gatehouse.ModelUsage{
		Provider: provider, Model: "none", InputTokens: 100, OutputTokens: 10, Cost: "0", Currency: "USD",
	}, nil
}

// Most says that every call is free.
func (*probes) Most(string, string, gatehouse.JSON) (gatehouse.Decimal, string, bool) {
	return "0", "USD", true
}

func (p *probes) expect(n int) <-chan time.Time {
	c := make(chan time.Time, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked == nil {
		p.asked = make(map[string]chan time.Time)
	}
	p.asked[fmt.Sprintf(`"probe %d"`, n)] = c
	return c
}

// probe starts runs of one step, one per interval and at least ten. It records the time from the
// moment when the step was marked ready until its worker had it.
func (w *world) probe(ctx context.Context, p *probes, d, interval time.Duration) (*outcome, error) {
	o := &outcome{}
	agent := gatehouse.NewContext(ctx, &gatehouse.Caller{Principal: w.agent, Via: gatehouse.ViaAPI})
	start := time.Now()
	for len(o.latencies) < 10 || time.Since(start) < d {
		next := time.After(interval)
		w.made++
		asked := p.expect(w.made)
		run, _, err := w.Runs.StartRun(agent, "probe",
			gatehouse.NewRun{Input: gatehouse.JSON(fmt.Sprintf(`{"n":%d}`, w.made))})
		if err != nil {
			return nil, err
		}
		ready := run.StepOf("ask").ReadyAt
		if ready == nil {
			return nil, errors.New("the step of a probe is not ready")
		}
		select {
		case at := <-asked:
			o.latencies = append(o.latencies, max(at.Sub(*ready), time.Microsecond))
		case <-time.After(time.Minute):
			return nil, errors.New("no worker took the step of a probe within a minute")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		select {
		case <-next:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	slices.Sort(o.latencies)
	o.done, o.elapsed = len(o.latencies), time.Since(start)
	return o, nil
}

// probeInterval is the interval between the runs that the quiet side starts.
func probeInterval(d time.Duration) time.Duration { return min(100*time.Millisecond, d/10) }

// backlog is the number of ready steps on the loaded side.
func (r *runner) backlog() int { return max(1, min(10_000, r.Scale/10)) }

// beside opens a gate, measures the probes alone, starts a backlog of another workflow's runs in
// the tenant, and measures the probes again. also, when set, is called in between, while the gate
// is idle.
func (r *runner) beside(
	ctx context.Context, name, tenant string, round int, d, interval time.Duration, also func(room) error,
) (alone, loaded *outcome, err error) {
	room, err := r.base.room(ctx, fmt.Sprintf("%s%d", name, round))
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, room.remove()) }()
	p := &probes{}
	w, err := r.open(ctx, room.place(Setup{Targets: noopTargets(), Models: p}), 1)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	err = w.Store.UpdateQueues(ctx, func(q gatehouse.Queues) error {
		if tenant != gatehouse.DefaultTenant {
			if err := q.In(tenant).InsertTenant(&gatehouse.Tenant{ID: tenant, CreatedAt: q.Now()}); err != nil {
				return err
			}
		}
		return insertWorkflow(q.In(gatehouse.DefaultTenant), gatehouse.DefaultTenant, "probe", probeSource)
	})
	if err != nil {
		return nil, nil, err
	}
	runtime.GC()
	alone, err = r.profiled(name+"-alone", round, func() (*outcome, error) { return w.probe(ctx, p, d, interval) })
	if err == nil && also != nil {
		err = also(room)
	}
	if err == nil {
		err = fillLines(ctx, w.Store, tenant, lineSteps, r.backlog())
	}
	if err == nil {
		err = room.known(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	loaded, err = r.profiled(name+"-beside", round, func() (*outcome, error) { return w.probe(ctx, p, d, interval) })
	return alone, loaded, err
}

// handed measures how long a ready step waits for its worker.
func (r *runner) handed(ctx context.Context) error {
	d := r.slice(3)
	var p50, p99, busy50, busy99 values
	var is string
	for round := range r.Rounds {
		r.say("handed, round %d of %d", round+1, r.Rounds)
		var bare *outcome
		idle, busy, err := r.beside(ctx, "handed", gatehouse.DefaultTenant, round, d, pause, func(in room) (err error) {
			bare, is, err = r.handOver(ctx, in, d)
			return err
		})
		if err != nil {
			return err
		}
		p50.add(idle.p50(), bare.p50())
		p99.add(idle.p99(), bare.p99())
		busy50.add(busy.p50(), idle.p50())
		busy99.add(busy.p99(), idle.p99())
	}
	load := fmt.Sprintf("step ready → with its worker, beside %d ready ones", r.backlog())
	r.report(Line{Figure: "handed", Name: "step ready → with its worker, idle, p50", Unit: "ms", Baseline: is,
		Lower: true}, p50)
	r.report(Line{Figure: "handed", Name: "step ready → with its worker, idle, p99", Unit: "ms", Baseline: is,
		Lower: true}, p99)
	r.report(Line{Figure: "handed", Name: load + ", p50", Unit: "ms", Baseline: "its own, idle", Lower: true}, busy50)
	r.report(Line{Figure: "handed", Name: load + ", p99", Unit: "ms", Baseline: "its own, idle", Lower: true}, busy99)
	return nil
}

// handOver measures the baseline of handed and returns its name: the external queue, if there is
// one.
func (r *runner) handOver(ctx context.Context, in room, d time.Duration) (o *outcome, is string, err error) {
	if r.Queue == nil {
		o, err = leaseOnce(ctx, in, d)
		return o, "bare lease of one step, durable, no hint and no run", err
	}
	q, err := r.Queue(ctx, in.place(Setup{}))
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	h, ok := q.(Handing)
	if !ok {
		return nil, "", errors.New("bench: the queue does not tell when a job is with its worker")
	}
	o = &outcome{}
	if o.latencies, err = h.Hand(ctx, max(10, int(d/pause)), pause); err != nil {
		return nil, "", err
	}
	slices.Sort(o.latencies)
	o.done = len(o.latencies)
	return o, q.Is(), nil
}

// leaseOnce leases one bare step after another, with the same pause as between the probes.
func leaseOnce(ctx context.Context, in room, d time.Duration) (o *outcome, err error) {
	s, err := in.steps(ctx, 1)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	most := max(lineSteps, int(d/pause)/lineSteps*lineSteps)
	if err := s.Store(ctx, most); err != nil {
		return nil, err
	}
	o = &outcome{}
	for range most {
		took, err := s.one(ctx)
		if err != nil {
			return nil, err
		}
		o.latencies = append(o.latencies, took)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	slices.Sort(o.latencies)
	o.done = len(o.latencies)
	return o, nil
}

// fair measures how the backlog of one tenant affects another one.
func (r *runner) fair(ctx context.Context) error {
	d := r.slice(2)
	var p50, p99 values
	for round := range r.Rounds {
		r.say("fair, round %d of %d", round+1, r.Rounds)
		alone, beside, err := r.beside(ctx, "fair", "noisy", round, d, probeInterval(d), nil)
		if err != nil {
			return err
		}
		p50.add(beside.p50(), alone.p50())
		p99.add(beside.p99(), alone.p99())
	}
	name := strings.Join([]string{"step ready → with its worker, beside a tenant with", fmt.Sprint(r.backlog()), "ready"},
		" ")
	r.report(Line{Figure: "fair", Name: name + ", p50", Unit: "ms", Baseline: "the same tenant alone", Lower: true}, p50)
	r.report(Line{Figure: "fair", Name: name + ", p99", Unit: "ms", Baseline: "the same tenant alone", Lower: true}, p99)
	return nil
}
