package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// outcome is the result of one side in one round.
type outcome struct {
	done      int
	elapsed   time.Duration
	latencies []time.Duration // sorted
	// cpu is the CPU time of the process during the measurement: server, client and background.
	cpu time.Duration
}

func (o *outcome) perSecond() float64 {
	if o.elapsed <= 0 {
		return 0
	}
	return float64(o.done) / o.elapsed.Seconds()
}

// cpuEach is the CPU time per item, in microseconds; 0 if it is not known.
func (o *outcome) cpuEach() float64 {
	if o.done == 0 {
		return 0
	}
	return float64(o.cpu) / float64(time.Microsecond) / float64(o.done)
}

func (o *outcome) p50() float64 { return quantile(o.latencies, 0.50) }
func (o *outcome) p99() float64 { return quantile(o.latencies, 0.99) }

// errEnough ends a drive early, without a failure.
var errEnough = errors.New("enough")

// drive runs on n goroutines until the time is over or no items are left. work returns two functions for
// one goroutine: the first processes an item, the second releases the resources of the first at the end.
// Over all goroutines, the items are the distinct numbers from 0 on. total limits the number of items;
// negative means no limit.
func drive(
	ctx context.Context, n int, d time.Duration, total int, work func(worker int) (func(item int) error, func(), error),
) (*outcome, error) {
	type worker struct {
		do        func(int) error
		stop      func()
		latencies []time.Duration
		last      time.Time
		err       error
	}
	workers := []*worker{}
	defer func() {
		for _, w := range workers {
			w.stop()
		}
	}()
	for i := range n {
		do, stop, err := work(i)
		if err != nil {
			return nil, err
		}
		workers = append(workers, &worker{do: do, stop: stop})
	}
	var next atomic.Int64
	var stopped atomic.Bool
	var wg sync.WaitGroup
	cpu := cpuTime()
	start := time.Now()
	end := start.Add(d)
	for _, w := range workers {
		wg.Go(func() {
			begin := time.Now()
			// Each worker processes at least one item, because on a busy machine the time may be
			// over already.
			for first := true; (first || begin.Before(end)) && ctx.Err() == nil && !stopped.Load(); first = false {
				item := int(next.Add(1) - 1)
				if total >= 0 && item >= total {
					return
				}
				if w.err = w.do(item); w.err != nil {
					stopped.Store(true)
					if errors.Is(w.err, errEnough) {
						w.err = nil
					}
					return
				}
				now := time.Now()
				w.latencies = append(w.latencies, now.Sub(begin))
				w.last, begin = now, now
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	o := &outcome{cpu: cpuTime() - cpu}
	for _, w := range workers {
		if w.err != nil {
			return nil, w.err
		}
		o.latencies = append(o.latencies, w.latencies...)
		o.elapsed = max(o.elapsed, w.last.Sub(start))
	}
	slices.Sort(o.latencies)
	o.done = len(o.latencies)
	return o, nil
}

// driveHTTP is drive over n raw connections. request appends the request for an item to a buffer,
// or returns nil to stop; any status except want is a failure.
func driveHTTP(
	ctx context.Context, addr string, n int, d time.Duration, total, want int,
	request func(b []byte, worker, item int) []byte,
) (*outcome, error) {
	return drive(ctx, n, d, total, func(worker int) (func(int) error, func(), error) {
		c, err := dial(ctx, addr)
		if err != nil {
			return nil, nil, err
		}
		var b []byte
		return func(item int) error {
			if b = request(b[:0], worker, item); b == nil {
				return errEnough
			}
			status, body, err := c.do(b)
			if err == nil && status != want {
				err = fmt.Errorf("status %d: %s", status, body)
			}
			return err
		}, c.close, nil
	})
}
