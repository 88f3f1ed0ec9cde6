package runs

import (
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// The backoff of a step or run that could not be woken: it doubles with each
// failure.
const (
	asideFirst = time.Second
	asideMost  = 5 * time.Minute
)

// maxBackoffs bounds the set, because each poll finds its members again. Steps and runs beyond the
// bound are retried at each poll.
const maxBackoffs = 10_000

// backoffs holds the steps, and (without a step id) the runs, that could not be woken. Each
// process has its own set: another process, or this one after a restart, tries each step and run
// once before it sets it aside.
type backoffs struct {
	mu    sync.Mutex
	until map[gatehouse.StepRef]backoff
}

type backoff struct {
	tries int
	at    time.Time
}

func (a *backoffs) size() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.until)
}

// without drops the references whose backoff has not ended, and puts those that
// have never failed first, so that slow retries do not delay them.
func (a *backoffs) without(refs []gatehouse.StepRef, now time.Time) []gatehouse.StepRef {
	a.mu.Lock()
	defer a.mu.Unlock()
	for ref, s := range a.until { // drop references that polls no longer find
		if now.Sub(s.at) > asideMost {
			delete(a.until, ref)
		}
	}
	var left, again []gatehouse.StepRef
	for _, ref := range refs {
		switch s, failed := a.until[ref]; {
		case !failed:
			left = append(left, ref)
		case !now.Before(s.at):
			again = append(again, ref)
		}
	}
	return append(left, again...)
}

// note records the result of a try, and returns the number of failures.
func (a *backoffs) note(ref gatehouse.StepRef, failure error, now time.Time) (tries int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.until[ref]
	if failure == nil {
		delete(a.until, ref)
		return 0
	}
	s.tries++
	s.at = now.Add(min(asideFirst<<min(s.tries-1, 20), asideMost))
	if a.until == nil {
		a.until = make(map[gatehouse.StepRef]backoff)
	}
	if _, known := a.until[ref]; known || len(a.until) < maxBackoffs {
		a.until[ref] = s
	}
	return s.tries
}
