package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
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
	rushBegins, rushIsOver = time.Second, 10 * time.Second
)

// garbagePace has garbage collected less often in a rush.
type garbagePace struct {
	percent atomic.Int64
	last    time.Time // of the collections
}

// paceGarbage begins to pace. It returns nil and does nothing where GOGC says how
// often garbage is collected.
func paceGarbage() *garbagePace {
	if os.Getenv("GOGC") != "" {
		return nil
	}
	p := &garbagePace{last: time.Now()}
	p.percent.Store(atRest)
	p.arm()
	return p
}

// arm looks again after the next collection, which finds what nothing refers to.
func (p *garbagePace) arm() {
	runtime.AddCleanup(new([64]byte), func(p *garbagePace) { p.look(); p.arm() }, p)
}

func (p *garbagePace) look() {
	now, old := time.Now(), p.percent.Load()
	percent := nextPercent(old, now.Sub(p.last), liveHeap())
	p.last = now
	if percent != old {
		debug.SetGCPercent(int(percent))
		p.percent.Store(percent)
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
