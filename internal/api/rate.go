package api

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// RateStore is a store that several processes share.
type RateStore interface {
	// SpendRate takes cost out of a principal's bucket and returns how long the
	// bucket takes, from now on, until it is full. Amounts are durations: the
	// time in which they are refilled. most is the time to refill an empty bucket.
	SpendRate(ctx context.Context, tenant, principalID string, cost, most time.Duration) (lacks time.Duration,
		err error)
}

const (
	// burstSlices is the number of slices of a burst: a process reports to the store each time it
	// has spent a slice. leak is the fraction of the rate that a process never reports, so requests
	// below that rate cost no statement. Up to two slices that a process has spent are unknown to
	// the other processes: a slice that is not reported yet, and a slice that is being reported.
	burstSlices = 20
	leak        = 0.1
	// spendTimeout bounds the wait for the store. After a failure of the store,
	// a process counts alone for spendPause.
	spendTimeout = time.Second
	spendPause   = 5 * time.Second
)

// buckets is a token bucket per name. A nil value bounds nothing.
type buckets struct {
	each  time.Duration // to refill one request
	most  time.Duration // to refill an empty bucket
	slice float64

	store RateStore // nil if the buckets are not shared
	log   *slog.Logger

	mu     sync.Mutex
	byName map[string]*bucket
	swept  time.Time
	again  time.Time // when to ask the store again after a failure
}

// bucket counts the requests of one name in this process. The bucket is full at fullAt. unreported
// is the number of requests not reported to the store, less the leak, as of asOf. reporting is locked during a report.
type bucket struct {
	fullAt     time.Time
	unreported float64
	asOf       time.Time
	reporting  sync.Mutex
}

func newBuckets(perSecond float64, burst int) *buckets {
	if perSecond <= 0 {
		return nil
	}
	if burst <= 0 {
		burst = max(1, int(math.Ceil(perSecond)))
	}
	return &buckets{
		each: over(1, perSecond), most: over(float64(burst), perSecond),
		slice: max(1, math.Floor(float64(burst)/burstSlices)), byName: make(map[string]*bucket),
	}
}

// over is the time for refilling n requests, at most a century.
func over(n, perSecond float64) time.Duration {
	return time.Duration(min(n/perSecond, 100*365*86400) * float64(time.Second))
}

// sharedBy shares the principals' buckets between the processes on the same
// store.
func (b *buckets) sharedBy(store RateStore, log *slog.Logger) {
	if b != nil {
		b.store, b.log = store, log
	}
}

// take counts a request of a name that is not shared between processes, or
// fails with code rate_limited.
func (b *buckets) take(name string) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	return b.count(b.of(name, now), now)
}

// spend is take for a principal's bucket, which all processes share if there is a store.
func (b *buckets) spend(ctx context.Context, p *gatehouse.Principal) error {
	if b == nil || b.store == nil {
		return b.take(p.ID)
	}
	k, tell, err := b.countUnreported(p.ID)
	if !tell {
		return err
	}
	k.reporting.Lock()
	defer k.reporting.Unlock()
	// Another request may have reported to the store meanwhile.
	if k, tell, err = b.countUnreported(p.ID); !tell {
		return err
	}
	return b.report(ctx, p, k)
}

// countUnreported counts a request, or fails with code rate_limited. If the request would complete a slice and the
// store can be asked, tell is true instead, and the request is not counted yet.
func (b *buckets) countUnreported(name string) (k *bucket, tell bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	k = b.of(name, now)
	k.unreported = max(0, k.unreported-leak*float64(now.Sub(k.asOf))/float64(b.each))
	k.asOf = now
	if k.lacks(now)+b.each <= b.most && k.unreported+1 >= b.slice && now.After(b.again) {
		return k, true, nil
	}
	if err := b.count(k, now); err != nil {
		return k, false, err
	}
	k.unreported++
	return k, false, nil
}

// report counts a request and reports all unreported requests to the store, which returns what all
// processes have spent.
func (b *buckets) report(ctx context.Context, p *gatehouse.Principal, k *bucket) error {
	b.mu.Lock()
	now := time.Now()
	n := k.unreported + 1
	err := b.count(k, now)
	if err == nil {
		k.unreported = 0
	}
	b.mu.Unlock()
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, spendTimeout)
	defer cancel()
	lacks, err := b.store.SpendRate(bounded, p.Tenant, p.ID, time.Duration(n*float64(b.each)), b.most)
	b.mu.Lock()
	defer b.mu.Unlock()
	now = time.Now()
	if err != nil {
		// Without the store, each process applies the bound to its own
		// requests.
		k.unreported += n
		if ctx.Err() == nil {
			b.again = now.Add(spendPause)
			b.log.Warn("the store did not answer: this process applies the rate limit on its own", "error", err)
		}
		return nil
	}
	if all := now.Add(lacks + time.Duration(k.unreported*float64(b.each))); all.After(k.fullAt) {
		k.fullAt = all
	}
	if over := k.lacks(now) - b.most; over > 0 {
		return rateLimited(over)
	}
	return nil
}

// count takes one request out of a bucket.
func (b *buckets) count(k *bucket, now time.Time) error {
	lacks := k.lacks(now) + b.each
	if lacks > b.most {
		return rateLimited(lacks - b.most)
	}
	k.fullAt = now.Add(lacks)
	return nil
}

// lacks is the time from now until the bucket is full.
func (k *bucket) lacks(now time.Time) time.Duration { return max(0, k.fullAt.Sub(now)) }

// of finds or creates a bucket. Once a minute it forgets full buckets.
func (b *buckets) of(name string, now time.Time) *bucket {
	if now.Sub(b.swept) > time.Minute {
		b.swept = now
		for name, k := range b.byName {
			if k.lacks(now) == 0 && now.Sub(k.asOf) > time.Minute {
				delete(b.byName, name)
			}
		}
	}
	k := b.byName[name]
	if k == nil {
		k = new(bucket)
		b.byName[name] = k
	}
	return k
}
