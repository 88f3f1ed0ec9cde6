package serve

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// How seldom garbage is collected. A collection of a small heap takes all cores
// for some milliseconds, whatever it finds, and in a rush one answer in fifty
// met one; at rest memory counts for more.
const (
	atRest = 100 // percent of what is in use: Go's own default
	inRush = 400
	// rushRoom bounds in bytes what waits to be collected, where much is in use.
	rushRoom = 64 << 20
	// A rush has begun when one collection comes so soon after another, and is over
	// when it comes so late. The runtime collects every two minutes in any case.
	rushBegins, rushIsOver = 250 * time.Millisecond, 3 * time.Second
)

// garbagePace has garbage collected less often in a rush.
type garbagePace struct {
	mu      sync.Mutex
	percent int64
	last    time.Time // of the collections; none yet if zero
	// over ends a rush after which there is no collection that would.
	over *time.Timer
}

// paceGarbage begins to pace. It returns nil and does nothing where GOGC says how
// often garbage is collected.
func paceGarbage() *garbagePace {
	if os.Getenv("GOGC") != "" {
		return nil
	}
	p := &garbagePace{percent: atRest}
	p.over = time.AfterFunc(rushIsOver, p.rest)
	p.arm()
	return p
}

// arm looks again after the next collection, which finds what nothing refers to.
func (p *garbagePace) arm() {
	runtime.AddCleanup(new([64]byte), func(p *garbagePace) { p.look(); p.arm() }, p)
}

func (p *garbagePace) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.set(nextPercent(p.percent, now.Sub(p.last), liveHeap()))
	p.last = now
	p.over.Reset(rushIsOver)
}

func (p *garbagePace) rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.last) >= rushIsOver {
		p.set(atRest)
	}
}

func (p *garbagePace) set(percent int64) {
	if percent != p.percent {
		debug.SetGCPercent(int(percent))
		p.percent = percent
	}
}

// nextPercent is what GOGC becomes after a collection that came so long after the
// one before and left so many bytes in use.
func nextPercent(old int64, since time.Duration, live uint64) int64 {
	switch {
	case since > rushIsOver:
		return atRest
	case since > rushBegins && old == atRest:
		return atRest
	}
	return max(atRest, min(inRush, int64(rushRoom*100/max(live, 1))))
}

// liveHeap is how many bytes the last collection found in use.
func liveHeap() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
