package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// report returns a report with a valid signature for the fake.
func report(source, body string) request {
	r := delivery(body)
	r.path = Prefix + "/hooks/targets/" + source
	r.header["X-Request-Id"] = "same"
	return r
}

// TestTargetReports: the answer has the number of marked actions, and not their ids.
func TestTargetReports(t *testing.T) {
	t.Parallel()
	s := newServer(t, newFake())
	r := report("triage", "{}")
	w := r.send(s)
	if w.Code != http.StatusOK || w.Body.String() != `{"marked":3}` || w.Header().Get("Idempotency-Replayed") != "" {
		t.Errorf("%d %s %v", w.Code, w.Body, w.Header())
	}
	r.header["X-Event"] = "again"
	w = r.send(s)
	if w.Code != http.StatusOK || w.Body.String() != `{"marked":3}` || w.Header().Get("Idempotency-Replayed") != "true" {
		t.Errorf("again: %d %s %v", w.Code, w.Body, w.Header())
	}
	unsigned := report("triage", "{}")
	delete(unsigned.header, "X-Signature")
	wantCode(t, unsigned.send(s), gatehouse.CodeBadSignature)
	wantCode(t, report("triage", strings.Repeat("x", MaxBody+1)).send(s), gatehouse.CodeBodyTooLarge)
	query := report("triage", "{}")
	query.path += "?tenant=default"
	wantCode(t, query.send(s), gatehouse.CodeInvalid)
	get := report("triage", "{}")
	get.method = "GET"
	if w := get.send(s); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "POST" {
		t.Errorf("GET: %d", w.Code)
	}

	// An unknown source gets the same answer as an unknown workflow.
	var answers []string
	for _, path := range []string{"targets/other", "targets/a%2Fb", "other"} {
		r := report("triage", "{}")
		r.path = Prefix + "/hooks/" + path
		p := wantCode(t, r.send(s), gatehouse.CodeNotFound)
		delete(p, "instance")
		answers = append(answers, string(gatehouse.MustJSON(p)))
	}
	if answers[0] != answers[1] || answers[0] != answers[2] {
		t.Errorf("the answers differ: %v", answers)
	}

	limited := newServer(t, newFake(), func(c *Config) { c.HooksPerSecond, c.HookBurst = 0.001, 1 })
	if w := report("triage", "{}").send(limited); w.Code != http.StatusOK {
		t.Errorf("the first: %d", w.Code)
	}
	wantCode(t, report("triage", "{}").send(limited), gatehouse.CodeRateLimited)

	without := newServer(t, newFake(), func(c *Config) { c.TargetHooks = nil })
	if w := report("triage", "{}").send(without); w.Code == http.StatusOK {
		t.Errorf("without sources: %d", w.Code)
	}
}

func TestTargetReportsAreDocumented(t *testing.T) {
	t.Parallel()
	doc, _ := readDocument(t, newServer(t, newFake()))
	op := doc.Paths[Prefix+"/hooks/targets/{source}"]["post"]
	if op.OperationID != "reportTarget" || op.Security == nil || len(op.Security) != 0 ||
		op.Parameters[0].Name != "source" {
		t.Errorf("%+v", op)
	}
	for status, want := range map[string]string{"200": "", "401": "bad_signature", "404": "not_found",
		"429": "rate_limited"} {
		if r, ok := op.Responses[status]; !ok || strings.Join(r.Codes, " ") != want {
			t.Errorf("%s: %v", status, r.Codes)
		}
	}
}
