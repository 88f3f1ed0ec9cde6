package app

import (
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// How long what cannot be woken is left alone: it doubles with each time.
const (
	asideFirst = time.Second
	asideMost  = 5 * time.Minute
)

// maxAside bounds what is set aside, as each look reads past it. What is beyond
// is tried at each look.
const maxAside = 10_000

// setAside are the steps, and without a step the runs, that could not be woken.
// They are known to this process only: another one, and this one after a
// restart, tries them once itself.
type setAside struct {
	mu    sync.Mutex
	until map[gatehouse.StepRef]aside
}

type aside struct {
	tries int
	at    time.Time
}

func (a *setAside) size() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.until)
}

// without leaves out what is not to be tried yet, and puts what has not failed
// before the rest: however long that takes, it keeps nobody.
func (a *setAside) without(refs []gatehouse.StepRef, now time.Time) []gatehouse.StepRef {
	a.mu.Lock()
	defer a.mu.Unlock()
	for ref, s := range a.until { // what is no longer found, nobody notes
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

// note tells what came of a try, and returns how many have failed.
func (a *setAside) note(ref gatehouse.StepRef, failure error, now time.Time) (tries int) {
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
		a.until = make(map[gatehouse.StepRef]aside)
	}
	if _, known := a.until[ref]; known || len(a.until) < maxAside {
		a.until[ref] = s
	}
	return s.tries
}
