package api

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-dev/gatehouse"
)

func TestDecisionsAreCounted(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newServer(t, f)
	answer := func(code string, replayed bool) *gatehouse.Answer {
		return &gatehouse.Answer{Code: code, Result: code, Action: testAction(), Replayed: replayed}
	}
	for _, value := range []*gatehouse.Answer{
		answer(gatehouse.Decided, false), answer(gatehouse.VoteRecorded, false), answer(gatehouse.VoteRecorded, true),
		answer(gatehouse.AlreadyApproved, false), answer(gatehouse.AlreadyRejected, false),
	} {
		f.values["Decide"] = value
		decideRequest().send(s)
	}
	for _, code := range []gatehouse.Code{gatehouse.CodeAlreadyDecided, gatehouse.CodeAlreadyVoted, gatehouse.CodeExpired,
		gatehouse.CodeDigestMismatch, gatehouse.CodeSelfApproval} {
		f.err = gatehouse.E(code, "x")
		decideRequest().send(s)
	}
	f.err = nil
	keyed(decideRequest(), "k").send(s)
	keyed(decideRequest(), "k").send(s)
	request{method: "POST", path: "/api/v1/approvals/apr_1/approve", key: "gth_ana", token: "gte_ana",
		body: `{"digest":"d"}`}.send(s)
	request{
		method: "POST", path: "/api/v1/proposed-actions/bulk-decide", key: "gth_ana", token: "gte_ana",
		body: `{"decision":"rejected","items":[{"action_id":"a"}]}`,
	}.send(s)
	edit := request{method: "POST", path: "/api/v1/proposed-actions/act_1/edit", key: "gth_ana", token: "gte_ana"}
	for _, edit.body = range []string{
		`{"digest":"d","note":"why","patch":{"price":"11.00"},"approve":true}`,
		`{"digest":"d","note":"why","patch":{"price":"11.00"}}`,
	} {
		if w := edit.send(s); w.Code != http.StatusCreated {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	// A request that did not reach the use case is not a decision.
	request{method: "POST", path: decidePath, key: "gth_ana", body: goodDecision}.send(s)

	text := request{path: "/metrics", key: "gth_aud"}.send(s).Body.String()
	for _, want := range []string{
		`gatehouse_decisions_total{endpoint="decide",result="won"} 1`,
		`gatehouse_decisions_total{endpoint="decide",result="voted"} 2`,
		`gatehouse_decisions_total{endpoint="decide",result="replayed"} 5`,
		`gatehouse_decisions_total{endpoint="decide",result="conflict"} 2`,
		`gatehouse_decisions_total{endpoint="decide",result="refused"} 3`,
		`gatehouse_decisions_total{endpoint="approve",result="replayed"} 1`,
		`gatehouse_decisions_total{endpoint="reject",result="won"} 0`,
		`gatehouse_decisions_total{endpoint="bulk-decide",result="won"} 1`,
		`gatehouse_decisions_total{endpoint="bulk-decide",result="conflict"} 1`,
		`gatehouse_decisions_total{endpoint="bulk-decide",result="refused"} 1`,
		`gatehouse_http_request_duration_seconds_count{method="POST",route="/proposed-actions/{id}/decide",status="403"} 2`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("/metrics lacks %s", want)
		}
	}
}

// TestLabelsAreBounded: requests from strangers create no new series.
func TestLabelsAreBounded(t *testing.T) {
	t.Parallel()
	s := newServer(t, newFake())
	count := func() int {
		return strings.Count(request{path: "/metrics", key: "gth_aud"}.send(s).Body.String(), "_count{")
	}
	get := func(i int) {
		request{path: fmt.Sprintf("/api/v1/proposed-actions/act_x%d", i), key: "gth_ana"}.send(s)
		request{path: fmt.Sprintf("/api/v1/x%d", i), key: "gth_ana"}.send(s)
		request{method: fmt.Sprintf("M%d", i), path: decidePath, key: "gth_ana"}.send(s)
		request{path: fmt.Sprintf("/api/v1/proposed-actions/act_x%d?wait=1s", i), key: "gth_ana"}.send(s)
	}
	get(0)
	before := count()
	if before == 0 {
		t.Fatal("nothing is measured")
	}
	for i := range 50 {
		get(i)
	}
	text := request{path: "/metrics", key: "gth_aud"}.send(s).Body.String()
	if want := `method="GET",route="/proposed-actions/{id}?wait",status="404"} 51`; !strings.Contains(text, want) {
		t.Errorf("/metrics lacks %s", want)
	}
	if after := count(); after != before {
		t.Errorf("%d series became %d", before, after)
	}
}

// unreadable is a collector whose read fails.
type unreadable struct{ desc *prometheus.Desc }

func (u unreadable) Describe(ch chan<- *prometheus.Desc) { ch <- u.desc }

func (u unreadable) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.NewInvalidMetric(u.desc, errors.New("the store is slow"))
}

// TestMetricsWithoutOne: a collector that fails takes no other metric away, and its error is logged.
func TestMetricsWithoutOne(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	registry.MustRegister(unreadable{prometheus.NewDesc("gatehouse_unreadable", "x", nil, nil)})
	var logged bytes.Buffer
	s := newServer(t, newFake(), func(c *Config) {
		c.Registerer, c.Gatherer, c.Logger = registry, registry, slog.New(slog.NewTextHandler(&logged, nil))
	})
	w := request{path: "/metrics", key: "gth_aud"}.send(s)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "gatehouse_decisions_total") {
		t.Errorf("%d %.200s", w.Code, w.Body)
	}
	if !strings.Contains(logged.String(), "the store is slow") {
		t.Errorf("logged %q", logged.String())
	}
}

func TestMetricsOfTwoServers(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	set := func(c *Config) { c.Registerer, c.Gatherer = registry, registry }
	s := newServer(t, newFake(), set)
	cfg := s.cfg
	if _, err := New(cfg); err == nil {
		t.Error("one registry took two servers")
	}
}

func TestNewNeedsItsParts(t *testing.T) {
	t.Parallel()
	whole := newServer(t, newFake()).cfg
	whole.Registerer, whole.Gatherer = nil, nil
	for name, take := range map[string]func(*Config){
		"actions": func(c *Config) { c.Actions = nil }, "dispatch": func(c *Config) { c.Dispatch = nil },
		"admin":    func(c *Config) { c.Admin = nil },
		"policies": func(c *Config) { c.Policies = nil }, "audit": func(c *Config) { c.Audit = nil },
		"auth":   func(c *Config) { c.Auth = nil },
		"lookup": func(c *Config) { c.Lookup = nil },
		"logger": func(c *Config) { c.Logger = nil },
	} {
		cfg := whole
		take(&cfg)
		if _, err := New(cfg); err == nil {
			t.Errorf("a server without %s", name)
		}
	}
	if _, err := New(whole); err != nil {
		t.Error(err)
	}
}
