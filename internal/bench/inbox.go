package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
)

// pageRows is the number of rows on an inbox page.
const pageRows = 50

// inbox measures reading the inbox, page after page.
func (r *runner) inbox(ctx context.Context) error {
	return r.within(ctx, "inbox", held(), 1, func(dbs databases, w *world) (err error) {
		if err := r.fillScale(ctx, w); err != nil {
			return err
		}
		if err := dbs.analyze(ctx); err != nil {
			return err
		}
		walk, err := dbs.walk(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, walk.close()) }()
		client, err := dial(ctx, w.Addr)
		if err != nil {
			return err
		}
		defer client.close()
		d := r.slice(3)
		page := &httpWalk{client: client, headers: w.people[0].headers}
		direct := &storeWalk{store: w.Store}
		once := func(next func(context.Context) error) func() (*outcome, error) {
			return func() (*outcome, error) {
				return drive(ctx, 1, d, -1, func(int) (func(int) error, func(), error) {
					return func(int) error { return next(ctx) }, func() {}, nil
				})
			}
		}
		var p50, p99, store50, store99 values
		for round := range r.Rounds {
			r.say("inbox, round %d of %d", round+1, r.Rounds)
			if err := w.settle(ctx); err != nil {
				return err
			}
			over, err := r.profiled("inbox", round, once(page.next))
			if err != nil {
				return err
			}
			within, err := r.profiled("inbox-store", round, once(direct.next))
			if err != nil {
				return err
			}
			runtime.GC()
			bare, err := once(walk.next)()
			if err != nil {
				return err
			}
			p50.add(over.p50(), bare.p50())
			p99.add(over.p99(), bare.p99())
			store50.add(within.p50(), bare.p50())
			store99.add(within.p99(), bare.p99())
		}
		const is = "bare keyset query of the same rows, no HTTP"
		name := fmt.Sprintf("%d pending of %d", min(r.Scale, maxPending), r.Scale)
		r.report(Line{Figure: "inbox", Name: "page over HTTP p50, " + name, Unit: "ms", Baseline: is, Lower: true}, p50)
		r.report(Line{Figure: "inbox", Name: "page over HTTP p99, " + name, Unit: "ms", Baseline: is, Lower: true, Target: 3},
			p99)
		r.report(Line{Figure: "inbox", Name: "page from the store p50, " + name, Unit: "ms", Baseline: is, Lower: true},
			store50)
		r.report(Line{Figure: "inbox", Name: "page from the store p99, " + name, Unit: "ms", Baseline: is, Lower: true},
			store99)
		return nil
	})
}

// httpWalk reads the inbox over HTTP.
type httpWalk struct {
	client  *rawClient
	headers string
	cursor  string
	b       []byte
}

func (p *httpWalk) next(context.Context) error {
	path := "/api/v1/proposed-actions?sort=urgency&status=pending&limit=" + strconv.Itoa(pageRows)
	if p.cursor != "" {
		path += "&cursor=" + url.QueryEscape(p.cursor)
	}
	p.b = get(p.b[:0], path, p.headers)
	status, body, err := p.client.do(p.b)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("status %d: %s", status, body)
	}
	p.cursor, err = lastCursor(body)
	return err
}

// lastCursor reads next_cursor from the end of a page, without the cost of
// decoding fifty actions.
func lastCursor(body []byte) (string, error) {
	const tail = 1024
	from := max(0, len(body)-tail)
	at := bytes.LastIndex(body[from:], []byte(`"next_cursor":`))
	if at < 0 {
		return "", nil
	}
	var cursor *string
	rest := body[from+at+len(`"next_cursor":`):]
	end := 0
	for end < len(rest) && rest[end] != ',' && rest[end] != '}' {
		end++
	}
	if err := json.Unmarshal(rest[:end], &cursor); err != nil {
		return "", fmt.Errorf("next_cursor: %w", err)
	}
	if cursor == nil {
		return "", nil
	}
	return *cursor, nil
}

// storeWalk reads the inbox from the store.
type storeWalk struct {
	store  gatehouse.Store
	cursor string
}

func (p *storeWalk) next(ctx context.Context) error {
	return p.store.Read(ctx, gatehouse.DefaultTenant, func(tx gatehouse.ReadTx) error {
		page, err := tx.ListActions(gatehouse.ActionFilter{
			Status: gatehouse.StatusPending, Sort: gatehouse.SortUrgency, Limit: pageRows, Cursor: p.cursor,
		})
		p.cursor = page.NextCursor
		return err
	})
}
