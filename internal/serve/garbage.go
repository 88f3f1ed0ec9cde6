package serve

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// Values of GOGC. A collection of even a small heap uses all cores for some
// milliseconds, and in a rush (many requests at once) it delayed one answer in
// fifty. At rest, low memory use matters more.
const (
	atRest = 100 // percent of the live heap: Go's default
	inRush = 400
	// rushRoom bounds the uncollected garbage in a rush, in bytes. A larger heap may have as
	// much garbage as atRest allows.
	rushRoom = 64 << 20
	// A rush begins when two collections are at most rushBegins apart, and ends when
	// they are more than rushIsOver apart. The runtime collects at least every 2 min.
	rushBegins, rushIsOver = 250 * time.Millisecond, 3 * time.Second
)

// garbagePace makes garbage collections less frequent in a rush.
type garbagePace struct {
	mu      sync.Mutex
	percent int64
	last    time.Time // the last collection; zero before the first
	// over ends a rush if no further collection does.
	over *time.Timer
}

// adaptGarbage starts to adapt the pace. If the variable GOGC is set, it does nothing
// and returns nil.
func adaptGarbage() *garbagePace {
	if os.Getenv("GOGC") != "" {
		return nil
	}
	p := &garbagePace{percent: atRest}
	p.over = time.AfterFunc(rushIsOver, p.rest)
	p.arm()
	return p
}

// arm calls look after the next collection, which frees an unreferenced object.
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

// nextPercent is the next value of GOGC. since is the time between the last two
// collections, live the bytes in use after the last one.
func nextPercent(old int64, since time.Duration, live uint64) int64 {
	switch {
	case since > rushIsOver:
		return atRest
	case since > rushBegins && old == atRest:
		return atRest
	}
	return max(atRest, min(inRush, int64(rushRoom*100/max(live, 1))))
}

// liveHeap is the number of bytes that the last collection found in use.
func liveHeap() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
