package api

import (
	"bytes"
	"context"
	"math"
	"net/http"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Hooks receives the deliveries of webhooks.
type Hooks interface {
	// Receive starts a run of a tenant's workflow for a delivery. A repeated
	// delivery returns the run that it started first, and replayed true. The
	// context has no caller: the signature over headers and body is the
	// authority. A missing or wrong signature is an error with code
	// bad_signature, and so is a tenant or workflow that does not exist, or takes
	// no webhooks.
	Receive(ctx context.Context, tenant, workflow string, h http.Header, body []byte) (run *gatehouse.Run, replayed bool,
		err error)
}

// received is the answer to a delivery.
type received struct {
	RunID string `json:"run_id"`
}

// hookRoute is served outside the pipeline, because senders have no key.
var hookRoute = route{
	method: "POST", path: "/hooks/{workflow}", name: "receiveHook", tag: tagWorkflows,
	summary: "Deliver a webhook",
	doc: "Needs no key: the signature that the workflow's trigger requires authenticates the request. It covers the " +
		"unchanged bytes of the body. 202 when it starts a run, 200 when this delivery has already started one.",
	status: http.StatusAccepted, replays: true, out: typeOf[received](), open: true,
	query: []param{{name: "tenant", max: 128, doc: "The workflow's tenant; if absent, the tenant named default."}},
	codes: []gatehouse.Code{gatehouse.CodeBadSignature, gatehouse.CodeNotFound},
}

// serveHook serves a route for senders without a key. It makes the cheap checks
// first: anybody can send requests here.
func (s *Server) serveHook(rt *route, receive func(http.ResponseWriter, *http.Request) (int, error)) http.Handler {
	observe := s.metrics.observer(rt)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		id := requestID(w, r)
		status := s.guarded(w, r, id, func() (int, error) {
			if r.Method != rt.method {
				w.Header().Set("Allow", rt.method)
				return 0, gatehouse.E(gatehouse.CodeMethodNotAllowed, "this path allows %s", rt.method)
			}
			return receive(w, r)
		})
		if r.Method == rt.method {
			observe(r, status, time.Since(start))
		}
	})
}

// readHook counts a delivery against the sender's bound, and reads its query and body.
func (s *Server) readHook(
	w http.ResponseWriter, r *http.Request, rt *route, name string,
) (query map[string]string, body []byte, err error) {
	if err := s.hooks.take(s.cfg.Addresses.Of(r), name); err != nil {
		return nil, nil, err
	}
	if query, err = parseQuery(r.URL.RawQuery, rt.query); err != nil {
		return nil, nil, err
	}
	// Not a pooled buffer: the receiver may keep the body.
	var buffer bytes.Buffer
	err = fill(&buffer, w, r, s.cfg.BodyTimeout)
	return query, buffer.Bytes(), err
}

func (s *Server) receive(w http.ResponseWriter, r *http.Request) (int, error) {
	workflow := r.PathValue("workflow")
	query, body, err := s.readHook(w, r, &hookRoute, workflow)
	if err != nil {
		return 0, err
	}
	tenant := query["tenant"]
	if tenant == "" {
		tenant = gatehouse.DefaultTenant
	}
	if !gatehouse.ValidName(tenant) || !gatehouse.ValidName(workflow) {
		return 0, noHook()
	}
	run, replayed, err := s.cfg.Hooks.Receive(r.Context(), tenant, workflow, r.Header, body)
	if gatehouse.CodeOf(publicError(err)) == gatehouse.CodeNotFound {
		err = noHook()
	}
	if err != nil {
		return 0, err
	}
	status := http.StatusAccepted
	if replayed {
		status = http.StatusOK
	}
	return status, s.write(w, status, &call{}, received{RunID: run.ID})
}

// noHook returns the error for an invalid name of a tenant or workflow, and for an unknown source. It
// does not say which of them is wrong.
func noHook() error { return gatehouse.E(gatehouse.CodeNotFound, "no such webhook") }

// HookRate bounds deliveries to PerSecond, with bursts of Burst. PerSecond 0
// means the default rate, a negative value no bound. Burst 0 means four times
// the rate, or with PerSecond 0 the default burst.
type HookRate struct {
	PerSecond float64
	Burst     int
}

// defaultHookRate bounds the deliveries of one address to one workflow.
var defaultHookRate = HookRate{PerSecond: 50, Burst: 200}

func (r HookRate) or(common HookRate) HookRate {
	if r.PerSecond == 0 {
		r.PerSecond = common.PerSecond
		if r.Burst <= 0 {
			r.Burst = common.Burst
		}
	}
	if r.Burst <= 0 {
		r.Burst = max(1, int(math.Ceil(4*r.PerSecond)))
	}
	return r
}

// hookLimits bounds the deliveries of an address per workflow, so that one
// workflow does not crowd out another, and in total, so that invented workflow
// names do not raise the bound.
type hookLimits struct {
	one, all *buckets
	own      map[string]*buckets // of workflows with their own rate
}

func newHookLimits(common HookRate, own map[string]HookRate) hookLimits {
	common = common.or(defaultHookRate)
	l := hookLimits{one: newBuckets(common.PerSecond, common.Burst), own: make(map[string]*buckets, len(own))}
	greatest, unbounded := common, common.PerSecond < 0
	for name, r := range own {
		r = r.or(common)
		l.own[name] = newBuckets(r.PerSecond, r.Burst)
		greatest.PerSecond, greatest.Burst = max(greatest.PerSecond, r.PerSecond), max(greatest.Burst, r.Burst)
		unbounded = unbounded || r.PerSecond < 0
	}
	if !unbounded {
		l.all = newBuckets(4*greatest.PerSecond, 4*greatest.Burst)
	}
	return l
}

// take counts a delivery, or fails with code rate_limited.
func (l hookLimits) take(address, workflow string) error {
	if err := l.all.take(address); err != nil {
		return err
	}
	if own, ok := l.own[workflow]; ok {
		return own.take(address + " " + workflow)
	}
	return l.one.take(address + " " + workflow)
}
