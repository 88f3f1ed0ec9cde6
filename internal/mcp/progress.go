package mcp

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// watcher is a client's request for progress notifications of an action.
type watcher struct {
	token []byte
	mu    sync.Mutex
	// last is the last reported progress, which must grow.
	last float64
}

// progressFrame takes the token, a growing number, and a message.
const progressFrame = `{"jsonrpc":"2.0","method":"notifications/progress",` +
	`"params":{"progressToken":%s,"progress":%s,"message":%s}}`

// step is what a waiting interval adds to the progress. It is small, so that
// the tool's own progress, reported later, is larger.
const step = 1e-6

// after returns the progress to report after one more waiting interval. It is larger than progress, unless progress
// is the largest float64.
func after(progress float64) float64 {
	return min(max(progress+step, math.Nextafter(progress, math.Inf(1))), math.MaxFloat64)
}

// progressToken is the token for progress of the proxy's own call of an action.
func progressToken(action string) gatehouse.JSON {
	return gatehouse.StringJSON(ownPrefix + "progress:" + action)
}

// progress sends progress notifications if the client asked for them: at intervals
// while the call is held, and for the progress that the server reports. stop ends
// the notifications.
func (p *Proxy) progress(ctx context.Context, c *call, a *gatehouse.Action) (stop func()) {
	if c.progress == nil {
		return func() {}
	}
	w := &watcher{token: c.progress}
	p.watch(a.ID, w)
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(p.Progress)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				message := gatehouse.StringJSON("waiting for the gate: " + a.ID)
				w.mu.Lock()
				w.last = after(w.last)
				p.answer(fmt.Appendf(nil, progressFrame, w.token, strconv.FormatFloat(w.last, 'f', -1, 64), message))
				w.mu.Unlock()
			}
		}
	}()
	return func() {
		cancel()
		<-ended
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.watching[a.ID], w)
		if len(p.watching[a.ID]) == 0 {
			delete(p.watching, a.ID)
		}
	}
}

// watch adds a watcher. If the policy allows a call at once, the server may have reported progress
// before: watch passes on this earlier progress first.
func (p *Proxy) watch(action string, w *watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.mu.Lock()
	if p.watching[action] == nil {
		p.watching[action] = map[*watcher]bool{}
	}
	p.watching[action][w] = true
	early := p.done.takeEarly(action)
	p.mu.Unlock()
	for _, f := range early {
		p.pass(w, f)
	}
}

// pass tells a watcher the server's progress if the progress has grown. The caller holds w.mu.
func (p *Proxy) pass(w *watcher, f *frame) {
	progress, err := strconv.ParseFloat(string(memberOf(f.params, "progress")), 64)
	if err != nil || progress <= w.last && w.last != 0 {
		return
	}
	w.last = progress
	p.answer(setMember(f.raw, "params", setMember(f.params, "progressToken", w.token)))
}

// deliverProgress passes the progress of one of the proxy's own calls to its watchers;
// false for any other frame.
func (p *Proxy) deliverProgress(f *frame) bool {
	if f.method != "notifications/progress" || f.isRequest() {
		return false
	}
	action, ok := strings.CutPrefix(text(memberOf(f.params, "progressToken")), ownPrefix+"progress:")
	if !ok {
		return false
	}
	p.mu.Lock()
	var watchers []*watcher
	for w := range p.watching[action] {
		watchers = append(watchers, w)
	}
	if len(watchers) == 0 {
		p.done.keepEarly(action, f)
	}
	p.mu.Unlock()
	for _, w := range watchers {
		w.mu.Lock()
		p.pass(w, f)
		w.mu.Unlock()
	}
	return true
}
