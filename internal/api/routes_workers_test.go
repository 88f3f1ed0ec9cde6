package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestWorkerBodies sends valid and invalid bodies of workers; invalid ones must
// not reach the use case.
func TestWorkerBodies(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("x", n) }
	many := func(n int, item string) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	const usage = `{"provider":"openai","model":"m","input_tokens":1,"output_tokens":2,"cost":"0.1","currency":"USD"}`
	for _, tt := range []struct {
		path, body string
		at         string // the pointer of the error, "" for none
	}{
		{"/steps/lease", `{"tools":["page"]}`, ""},
		{"/steps/lease", `{"tools":["page","mail"],"max":100,"wait":"60s","lease":"1h","worker":"w"}`, ""},
		{"/steps/lease", `{}`, "/tools"},
		{"/steps/lease", `{"tools":[]}`, "/tools"},
		{"/steps/lease", `{"tools":[` + many(51, `"a"`) + `]}`, "/tools"},
		{"/steps/lease", `{"tools":["a",""]}`, "/tools/1"},
		{"/steps/lease", `{"tools":["a b"]}`, "/tools/0"},
		{"/steps/lease", `{"tools":"page"}`, "/tools"},
		{"/steps/lease", `{"tools":["a"],"max":101}`, "/max"},
		{"/steps/lease", `{"tools":["a"],"max":-1}`, "/max"},
		{"/steps/lease", `{"tools":["a"],"max":1.5}`, "/max"},
		{"/steps/lease", `{"tools":["a"],"wait":"61s"}`, "/wait"},
		{"/steps/lease", `{"tools":["a"],"wait":30}`, "/wait"},
		{"/steps/lease", `{"tools":["a"],"lease":"999ms"}`, "/lease"},
		{"/steps/lease", `{"tools":["a"],"lease":"61m"}`, "/lease"},
		{"/steps/lease", `{"tools":["a"],"worker":"` + long(129) + `"}`, "/worker"},
		{"/pushes/lease", `{"connectors":["crm"],"max":1,"wait":"0s","lease":"1s"}`, ""},
		{"/pushes/lease", `{"tools":["crm"]}`, "malformed"},
		{"/pushes/lease", `{"connectors":[]}`, "/connectors"},
		{"/steps/stp_1/heartbeat", `{"generation":1}`, ""},
		{"/steps/stp_1/heartbeat", `{"generation":1,"lease":"1h"}`, ""},
		{"/steps/stp_1/heartbeat", `{}`, "/generation"},
		{"/steps/stp_1/heartbeat", `{"generation":0}`, "/generation"},
		{"/steps/stp_1/heartbeat", `{"generation":1,"lease":"2h"}`, "/lease"},
		{"/pushes/psh_1/heartbeat", `{"generation":-1}`, "/generation"},
		{"/steps/stp_1/complete", `{"generation":1}`, ""},
		{"/steps/stp_1/complete", `{"generation":1,"output":[1,2.50],"usage":[` + usage + `]}`, ""},
		{"/steps/stp_1/complete", `{"output":{}}`, "/generation"},
		{"/steps/stp_1/complete", `{"generation":1,"usage":[` + many(101, usage) + `]}`, "/usage"},
		{"/steps/stp_1/complete", `{"generation":1,"usage":[` + strings.Replace(usage, "openai", "", 1) + `]}`,
			"/usage/0/provider"},
		{"/steps/stp_1/complete", `{"generation":1,"usage":[` + strings.Replace(usage, `"m"`, `""`, 1) + `]}`,
			"/usage/0/model"},
		{"/steps/stp_1/complete", `{"generation":1,"usage":[` + usage + "," + strings.Replace(usage, `:1,`, `:-1,`, 1) + `]}`,
			"/usage/1/input_tokens"},
		{"/steps/stp_1/complete", `{"generation":1,"usage":[` + strings.Replace(usage, `:2,`, `:-1,`, 1) + `]}`,
			"/usage/0/output_tokens"},
		{"/steps/stp_1/complete", `{"generation":1,"usage":[` + strings.Replace(usage, `0.1`, `-0.1`, 1) + `]}`,
			"/usage/0/cost"},
		{"/steps/stp_1/complete", `{"generation":1,"usage":[` + strings.Replace(usage, `0.1`, `much`, 1) + `]}`,
			"/usage/0/cost"},
		{"/steps/stp_1/complete", `{"generation":1,"usage":[` + strings.Replace(usage, `USD`, ``, 1) + `]}`, ""},
		{"/steps/stp_1/complete", `{"generation":1,"usage":[` + strings.Replace(usage, `USD`, `usd`, 1) + `]}`,
			"/usage/0/currency"},
		{"/steps/stp_1/fail", `{"generation":1,"detail":"no"}`, ""},
		{"/steps/stp_1/fail", `{"generation":1,"code":"c","detail":"no","retryable":true,"retry_after":"24h"}`, ""},
		{"/steps/stp_1/fail", `{"generation":1}`, "/detail"},
		{"/steps/stp_1/fail", `{"detail":"no"}`, "/generation"},
		{"/steps/stp_1/fail", `{"generation":1,"detail":"` + long(gatehouse.MaxNotesBytes+1) + `"}`, "/detail"},
		{"/steps/stp_1/fail", `{"generation":1,"detail":"no","code":"` + long(65) + `"}`, "/code"},
		{"/steps/stp_1/fail", `{"generation":1,"detail":"no","retry_after":"25h"}`, "/retry_after"},
		{"/steps/stp_1/fail", `{"generation":1,"detail":"no","retryable":"yes"}`, "/retryable"},
		{"/steps/stp_1/propose", `{"generation":1,"action":` + goodProposal + `}`, ""},
		{"/steps/stp_1/propose", `{"action":` + goodProposal + `}`, "/generation"},
		{"/steps/stp_1/propose", `{"generation":1}`, "/action/action_type"},
		{"/steps/stp_1/propose", `{"generation":1,"action":{"action":"x"}}`, "malformed"},
		{"/pushes/psh_1/complete", `{"generation":1,"external_id":"e","request_metadata":{},"response_metadata":{"n":1}}`,
			""},
		{"/pushes/psh_1/complete", `{"external_id":"e"}`, "/generation"},
		{"/pushes/psh_1/complete", `{"generation":1,"request_metadata":[]}`, "/request_metadata"},
		{"/pushes/psh_1/complete", `{"generation":1,"response_metadata":"x"}`, "/response_metadata"},
		{"/pushes/psh_1/complete", `{"generation":1,"external_id":"` + long(1025) + `"}`, "/external_id"},
		{"/pushes/psh_1/fail", `{"generation":1,"kind":"not_sent","code":"dns","detail":"no"}`, ""},
		{"/pushes/psh_1/fail", `{"generation":1,"code":"dns","detail":"no"}`, "/kind"},
		{"/pushes/psh_1/fail", `{"generation":1,"kind":"maybe","code":"dns","detail":"no"}`, "/kind"},
		{"/pushes/psh_1/fail", `{"kind":"terminal","code":"x","detail":"no"}`, "/generation"},
		{"/pushes/psh_1/fail", `{"generation":1,"kind":"terminal","code":"x"}`, "/detail"},
	} {
		f := newFake()
		w := request{method: "POST", path: Prefix + tt.path, key: "gth_work", body: tt.body}.send(newServer(t, f))
		name := fmt.Sprintf("%s %.90s", tt.path, tt.body)
		switch tt.at {
		case "":
			if w.Code >= 300 || len(f.calls) != 1 {
				t.Errorf("%s: %d %s", name, w.Code, w.Body)
			}
			continue
		case "malformed":
			wantCode(t, w, gatehouse.CodeMalformed)
		default:
			p := wantCode(t, w, gatehouse.CodeInvalid)
			if v := p["errors"].([]any)[0].(map[string]any); v["pointer"] != tt.at {
				t.Errorf("%s: %v, want it at %s", name, v, tt.at)
			}
		}
		if len(f.calls) != 0 {
			t.Errorf("%s: the use case ran", name)
		}
	}
}

func TestCallbackOfAWorkersProposal(t *testing.T) {
	t.Parallel()
	body := `{"generation":1,"action":` +
		strings.Replace(goodProposal, "{", `{"callback":{"type":"nats","subject":"a.*"},`, 1) + `}`
	r := request{method: "POST", path: Prefix + "/steps/stp_1/propose", key: "gth_work", body: body}
	wantCode(t, r.send(newServer(t, newFake())), gatehouse.CodeInvalid)
}

// TestLeasesAreABareList: the contract defines leases as a bare list, which is
// empty and not null when there are none.
func TestLeasesAreABareList(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newServer(t, f)
	lease := request{method: "POST", path: Prefix + "/steps/lease", key: "gth_work", body: `{"tools":["page"]}`}
	if w := lease.send(s); !strings.HasPrefix(w.Body.String(), `[{"step":{"id":"stp_1",`) ||
		!strings.HasSuffix(w.Body.String(), `"lease":{"generation":3,"expires_at":"2026-11-20T12:01:00.123456Z"}}]`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	f.values["LeaseSteps"], f.values["LeasePushes"] = []gatehouse.LeasedStep(nil), []gatehouse.LeasedPush(nil)
	if w := lease.send(s); w.Code != http.StatusOK || w.Body.String() != "[]" {
		t.Errorf("none: %d %s", w.Code, w.Body)
	}
	lease.path, lease.body = Prefix+"/pushes/lease", `{"connectors":["crm"]}`
	if w := lease.send(s); w.Code != http.StatusOK || w.Body.String() != "[]" {
		t.Errorf("none: %d %s", w.Code, w.Body)
	}
	beat := request{method: "POST", path: Prefix + "/steps/stp_1/heartbeat", key: "gth_work", body: `{"generation":3}`}
	if got := beat.send(
		s).Body.String(); got != `{"generation":3,"expires_at":"2026-11-20T12:01:00.123456Z","cancel":true}` {
		t.Errorf("heartbeat: %s", got)
	}
}

// TestStaleLeases: every call of a holder answers lease_lost as 409.
func TestStaleLeases(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.err = gatehouse.E(gatehouse.CodeLeaseLost, "another has it").With("generation", 4)
	s := newServer(t, f)
	seen := 0
	for i := range s.routes {
		rt := &s.routes[i]
		if rt.tag != tagWorkers || rt.object == "" {
			continue
		}
		seen++
		p := wantCode(t, request{method: rt.method, path: rt.url(), key: "gth_work", body: rt.example}.send(s),
			gatehouse.CodeLeaseLost)
		if p["generation"] != float64(4) || p["retryable"] != false {
			t.Errorf("%s: %v", rt.name, p)
		}
	}
	if seen != 7 {
		t.Errorf("%d routes", seen)
	}
}
