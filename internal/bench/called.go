package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	httpconn "github.com/gatehouse-dev/gatehouse/connector/http"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// pause is the time between two samples of an idle system.
const pause = 5 * time.Millisecond

// stamped records when the use cases announce that a push was committed.
type stamped struct {
	usecase.Hints
	at *atomic.Pointer[time.Time]
}

func (s stamped) Notify(topic string) {
	if topic == usecase.TopicPush {
		now := time.Now()
		s.at.Store(&now)
	}
	s.Hints.Notify(topic)
}

// called measures the time from the decision to the call on an idle gate: from the moment when the
// use case learns of its commit until the target's handler starts.
func (r *runner) called(ctx context.Context) (err error) {
	dbs, err := r.base.databases(ctx, "called")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dbs.remove()) }()
	arrivals := make(chan time.Time, 16)
	target, err := serveBare(ctx, "/", func(w http.ResponseWriter, req *http.Request) {
		arrivals <- time.Now()
		_, _ = io.Copy(io.Discard, req.Body)
		w.Header().Set("Content-Length", "2")
		_, _ = io.WriteString(w, "{}")
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.close()) }()
	c, err := httpconn.New(ctx, httpconn.Config{
		BaseURL: "http://" + target.addr, AllowPrivate: true,
		Operations: map[string]httpconn.Operation{
			"update": {Method: "POST", Path: "/items/{entity_ref}", Class: connector.ClassA},
		},
	}, func(string) (string, error) { return "", errors.New("there are no secrets") })
	if err != nil {
		return err
	}
	var committed atomic.Pointer[time.Time]
	setup := dbs.place(Setup{
		Targets: []dispatch.Target{{Name: "shop", Connector: c}},
		Hints:   func(h usecase.Hints) usecase.Hints { return stamped{h, &committed} },
	})
	over := ""
	if setup.DatabaseURL != "" {
		// One replica takes the decisions, another one carries out the actions.
		setup.Roles, over = []string{"api"}, " of another replica"
	}
	w, err := r.open(ctx, setup, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if setup.DatabaseURL != "" {
		setup.Roles, setup.Hints = []string{"dispatcher", "sequencer"}, nil
		other, err := r.Start(ctx, setup)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, other.Close()) }()
	}
	bare, err := dbs.claims(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.close()) }()
	b := newBareCaller(bare, target.addr)
	defer b.close()

	d := r.slice(2)
	samples := max(5, int(d/(pause+5*time.Millisecond)))
	var p50, p99 values
	for round := range r.Rounds {
		r.say("called, round %d of %d", round+1, r.Rounds)
		list, err := w.fill(ctx, samples)
		if err != nil {
			return err
		}
		ids, err := bare.pending(samples)
		if err != nil {
			return err
		}
		if err := w.settle(ctx); err != nil {
			return err
		}
		if round == 0 {
			if err := dbs.analyze(ctx); err != nil {
				return err
			}
		}
		client, err := dial(ctx, w.Addr)
		if err != nil {
			return err
		}
		request := w.decideRequest(list)
		ours, err := r.profiled("called", round, func() (*outcome, error) {
			return sample(ctx, samples, arrivals, func(i int) (func() time.Time, error) {
				status, body, err := client.do(request(nil, 0, i))
				if err == nil && status != http.StatusOK {
					err = fmt.Errorf("status %d: %s", status, body)
				}
				return func() time.Time { return *committed.Load() }, err
			})
		})
		client.close()
		if err != nil {
			return err
		}
		if err := w.quiet(ctx); err != nil {
			return err
		}
		runtime.GC()
		theirs, err := sample(ctx, samples, arrivals, func(i int) (func() time.Time, error) { return b.decide(ids[i]) })
		if err != nil {
			return err
		}
		p50.add(ours.p50(), theirs.p50())
		p99.add(ours.p99(), theirs.p99())
	}
	const is = "bare claim, signal, lease, intent, net/http POST"
	name, t50, t99 := "decision committed to call"+over+", idle, ", 3.0, 15.0
	if setup.DatabaseURL != "" {
		t50, t99 = 5, 25
	}
	r.report(Line{Figure: "called", Name: name + "p50", Unit: "ms", Baseline: is, Lower: true, Absolute: true,
		Target: t50}, p50)
	r.report(Line{Figure: "called", Name: name + "p99", Unit: "ms", Baseline: is, Lower: true, Absolute: true,
		Target: t99}, p99)
	return nil
}

// sample decides one action at a time, each after the previous one's call has arrived. decide
// returns a function that returns the time of its commit.
func sample(
	ctx context.Context, n int, arrivals <-chan time.Time, decide func(int) (func() time.Time, error),
) (*outcome, error) {
	o := &outcome{done: n}
	for i := range n {
		committed, err := decide(i)
		if err != nil {
			return nil, err
		}
		select {
		case at := <-arrivals:
			o.latencies = append(o.latencies, at.Sub(committed()))
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Second):
			return nil, errors.New("the call did not arrive")
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	slices.Sort(o.latencies)
	return o, nil
}

// quiet waits until no call to a target and no log entry is outstanding.
func (w *world) quiet(ctx context.Context) error {
	for {
		var next time.Time
		err := w.Store.ViewQueues(ctx, func(q gatehouse.ReadQueues) (err error) {
			next, err = q.NextPushAt()
			return err
		})
		if err != nil {
			return err
		}
		if next.IsZero() {
			return w.settle(ctx)
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// bareCaller does the minimum between a decision and a safe call: the claim's commit, a lease, and
// an intent that is stored before the call.
type bareCaller struct {
	claims claimer
	http   *http.Client
	url    string
	work   chan string
	failed chan error
}

func newBareCaller(c claimer, addr string) *bareCaller {
	b := &bareCaller{
		claims: c, http: &http.Client{Transport: &http.Transport{}}, url: "http://" + addr + "/items/",
		work: make(chan string, 16), failed: make(chan error, 1),
	}
	go func() {
		defer close(b.failed)
		for id := range b.work {
			err := c.lease([]string{id})
			if err == nil {
				err = c.intent(id)
			}
			if err == nil {
				err = b.post(id)
			}
			if err != nil {
				b.failed <- err
				return
			}
		}
	}()
	return b
}

func (b *bareCaller) decide(id string) (func() time.Time, error) {
	if err := b.claims.claim(id); err != nil {
		return nil, err
	}
	at := time.Now()
	select {
	case b.work <- id:
	case err := <-b.failed:
		return nil, err
	}
	return func() time.Time { return at }, nil
}

func (b *bareCaller) post(id string) error {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, b.url+id,
		strings.NewReader(`{"currency":"EUR","price":"12.50"}`))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := b.http.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, res.Body)
	return errors.Join(err, res.Body.Close())
}

func (b *bareCaller) close() {
	close(b.work)
	for range b.failed { // wait for the worker to end
	}
	b.http.CloseIdleConnections()
}
