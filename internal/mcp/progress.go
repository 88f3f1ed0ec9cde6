package mcp

import (
	"context"
	"fmt"
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

// progressToken is the token for progress of the proxy's own call of an action.
func progressToken(action string) gatehouse.JSON {
	return gatehouse.StringJSON(ownPrefix + "progress:" + action)
}

// progress tells the client at intervals that the call is held, and passes on
// the server's progress, if the client asked for it. stop ends it.
func (p *Proxy) progress(ctx context.Context, c *call, a *gatehouse.Action) (stop func()) {
	if c.progress == nil {
		return func() {}
	}
	w := &watcher{token: c.progress}
	p.mu.Lock()
	if p.watching[a.ID] == nil {
		p.watching[a.ID] = map[*watcher]bool{}
	}
	p.watching[a.ID][w] = true
	p.mu.Unlock()
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
				w.last += step
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

// told passes the progress of one of the proxy's own calls to its watchers;
// false for any other frame.
func (p *Proxy) told(f *frame) bool {
	if f.method != "notifications/progress" || f.isRequest() {
		return false
	}
	action, ok := strings.CutPrefix(text(memberOf(f.params, "progressToken")), ownPrefix+"progress:")
	if !ok {
		return false
	}
	progress, err := strconv.ParseFloat(string(memberOf(f.params, "progress")), 64)
	if err != nil {
		return true
	}
	p.mu.Lock()
	var watchers []*watcher
	for w := range p.watching[action] {
		watchers = append(watchers, w)
	}
	p.mu.Unlock()
	for _, w := range watchers {
		w.mu.Lock()
		if progress > w.last || w.last == 0 {
			w.last = progress
			p.answer(setMember(f.raw, "params", setMember(f.params, "progressToken", w.token)))
		}
		w.mu.Unlock()
	}
	return true
}
