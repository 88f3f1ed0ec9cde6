package notify_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/notify"
	"github.com/gatehouse-dev/gatehouse/internal/notify/pagerduty"
)

const routingKey = "0123456789abcdef0123456789abcdef"

// pager is a fake of the Events API v2: it checks requests against PagerDuty's documentation, and
// stores incidents by dedup key.
type pager struct {
	*httptest.Server
	mu     sync.Mutex
	events []pagerEvent
	open   map[string]bool
	status int
}

type pagerEvent struct {
	RoutingKey string `json:"routing_key"`
	Action     string `json:"event_action"`
	DedupKey   string `json:"dedup_key"`
	Payload    *struct {
		Summary, Source, Severity string
	}
	Links []struct{ Href, Text string }
}

func newPager(t *testing.T) *pager {
	t.Helper()
	p := &pager{open: make(map[string]bool), status: http.StatusAccepted}
	p.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		content, err := io.ReadAll(r.Body)
		var e pagerEvent
		if err != nil || json.Unmarshal(content, &e) != nil || len(content) > 512<<10 || e.RoutingKey != routingKey ||
			len(e.DedupKey) > 255 || r.URL.Path != "/v2/enqueue" {
			rw.WriteHeader(http.StatusBadRequest)
			return
		}
		severities := []string{"critical", "error", "warning", "info"}
		if e.Action == "trigger" && (e.Payload == nil || e.Payload.Summary == "" || e.Payload.Source == "" ||
			len([]rune(e.Payload.Summary)) > 1024 || !slices.Contains(severities, e.Payload.Severity)) {
			rw.WriteHeader(http.StatusBadRequest)
			return
		}
		if p.status == http.StatusAccepted {
			p.events = append(p.events, e)
			p.open[e.DedupKey] = e.Action == "trigger"
		}
		rw.WriteHeader(p.status)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *pager) answers(status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status = status
}

func (p *pager) got() []pagerEvent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.events)
}

func (w *world) pager(p *pager) *notify.Configured {
	w.t.Helper()
	c, err := pagerduty.New(pagerduty.Config{
		RoutingKey: routingKey, URL: p.URL + "/v2/enqueue", AllowPrivate: true,
	})
	must(w.t, err)
	return &notify.Configured{Name: "oncall", Tenants: []string{"default"}, Channel: c}
}

// TestPagerDuty: a question opens one incident, and the decision resolves it; while PagerDuty throttles,
// the channel waits.
func TestPagerDuty(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := newPager(t)
	n := w.notifier(notify.Config{Channels: []*notify.Configured{w.pager(p)}})
	a := w.Propose("walnuts", "price_change", 12)
	for _, text := range append(hostileTexts, strings.Repeat("very long ", 90)) {
		w.hostile(text)
	}
	p.answers(http.StatusTooManyRequests)
	w.send(n, "oncall")
	if len(p.events) != 0 {
		t.Fatalf("%d events were accepted by a receiver that refuses", len(p.events))
	}
	for _, m := range w.list(gatehouse.NotificationFilter{Status: gatehouse.NotificationQueued}) {
		if wait := m.DueAt.Sub(w.Clock.Now()); m.LastError == "" || wait.Minutes() < 1 {
			t.Errorf("after a 429: %q, again in %s", m.LastError, wait)
		}
	}
	w.Clock.Advance(90e9)
	p.answers(http.StatusAccepted)
	w.deliver(n, "oncall")
	key := "gatehouse/default/" + a.ID + "/approval"
	first := p.events[0]
	if i := slices.IndexFunc(p.events, func(e pagerEvent) bool { return e.DedupKey == key }); i >= 0 {
		first = p.events[i]
	}
	if len(p.events) != len(hostileTexts)+2 || !p.open[key] || first.Payload.Severity != "warning" ||
		!strings.HasPrefix(first.Payload.Summary, "An approval waits: ") ||
		first.Links[0].Href != "https://gate.example/actions/"+a.ID {
		t.Errorf("%d events, open %v; the first: %+v", len(p.events), p.open, first)
	}
	w.Decide(a, "ana", gatehouse.Reject)
	w.send(n, "oncall")
	if p.open[key] || len(p.events) != len(hostileTexts)+3 {
		t.Errorf("the incident of a decided question is open: %v", p.open)
	}
	if got := w.statuses(); got[gatehouse.NotificationAccepted] != len(hostileTexts)+3 || len(got) != 1 {
		t.Errorf("statuses: %v", got)
	}
}

// TestPagerDutyEscalation: a question that pages only when it escalates has the severity of its risk level.
func TestPagerDutyEscalation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := newPager(t)
	n := w.notifier(notify.Config{
		Channels: []*notify.Configured{w.mail(), w.pager(p)}, Routes: []notify.Route{{Channels: []string{"mail"}}},
	})
	w.askOncall()
	a := w.Propose("walnuts", "refund", 12)
	w.send(n, "oncall")
	if got := p.got(); len(got) != 0 {
		t.Fatalf("the first stage pages: %+v", got)
	}
	w.Clock.Advance(time.Hour)
	_, err := w.Gate.Sweep(t.Context())
	must(t, err)
	w.send(n, "oncall")
	if got := p.got(); len(got) != 1 || got[0].Payload.Severity != "error" ||
		got[0].DedupKey != "gatehouse/default/"+a.ID+"/approval" {
		t.Errorf("the second stage pages %+v", got)
	}
}

// askOncall sets a policy whose second stage notifies the channel oncall.
func (w *world) askOncall() {
	w.t.Helper()
	_, err := w.Gate.ApplyPolicy(w.Admin(), `version: 1
risk: {refund: 4}
approvals:
  4:
    stages:
      - {who: {people: [ana]}, for: 1h}
      - {who: {people: [bo]}, for: 9d, notify: [oncall]}
`)
	must(w.t, err)
}

// TestPagerDutyConfig: a configuration that PagerDuty would refuse is refused at the start.
func TestPagerDutyConfig(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]pagerduty.Config{
		"routing_key:": {RoutingKey: "short"},
		"url:":         {RoutingKey: routingKey, URL: "http://events.example/v2/enqueue"},
	} {
		if _, err := pagerduty.New(c); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", c, err, want)
		}
	}
}
