package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

func TestApplyWorkflowTakesTheSourceAsItIs(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newServer(t, f)
	const source = "# kept\nname: triage\n\tsteps: [ü]\r\n"
	for contentType, ok := range map[string]bool{
		"": true, "application/yaml": true, "text/yaml; charset=UTF-8": true, "application/x-yaml": true,
		"application/json": true,
		"text/plain":       true, "application/x-www-form-urlencoded": true, "application/octet-stream": false,
		"text/yaml; charset=latin1": false, "text/html": false,
	} {
		r := request{method: "PUT", path: "/api/v1/workflows/triage", key: "gth_op", body: source}
		if contentType != "" {
			r.header = map[string]string{"Content-Type": contentType}
		}
		w := r.send(s)
		if !ok {
			wantCode(t, w, gatehouse.CodeMalformed)
			continue
		}
		if w.Code != http.StatusCreated || w.Header().Get("ETag") != `"sha256:ab"` {
			t.Fatalf("%s: %d %v %s", contentType, w.Code, w.Header(), w.Body)
		}
		if args := f.last(t, "ApplyWorkflow").args; args[0] != "triage" || args[1] != source {
			t.Errorf("%s: arrived as %q", contentType, args)
		}
	}
	w := request{method: "PUT", path: "/api/v1/workflows/unchanged", key: "gth_op", body: source}.send(s)
	if w.Code != http.StatusOK || w.Header().Get("ETag") == "" {
		t.Errorf("the source of the newest version: %d %v", w.Code, w.Header())
	}
}

func TestApplyWorkflowRefuses(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newServer(t, f)
	r := request{method: "PUT", path: "/api/v1/workflows/triage", key: "gth_op"}
	for name, tt := range map[string]struct {
		body string
		code gatehouse.Code
	}{
		"nothing":   {"", gatehouse.CodeMalformed},
		"blanks":    {" \n", gatehouse.CodeMalformed},
		"not UTF-8": {"name: \xff", gatehouse.CodeMalformed},
		"too large": {strings.Repeat("#", gatehouse.MaxWorkflowBytes+1), gatehouse.CodeBodyTooLarge},
	} {
		r.body = tt.body
		p := wantCode(t, r.send(s), tt.code)
		if tt.code == gatehouse.CodeBodyTooLarge && p["limit"] != float64(gatehouse.MaxWorkflowBytes) {
			t.Errorf("%s: limit %v", name, p["limit"])
		}
	}
	if f.count("ApplyWorkflow") != 0 {
		t.Error("the use case ran")
	}
	r.body = strings.Repeat("#", gatehouse.MaxWorkflowBytes)
	if w := r.send(s); w.Code != http.StatusCreated {
		t.Errorf("a body of the greatest size: %d %s", w.Code, w.Body)
	}
	// The problems of a source are reported with line numbers, and without an
	// ETag.
	e := &gatehouse.Error{Code: gatehouse.CodeInvalid, Detail: "2:7: unknown key",
		Violations: gatehouse.Violations{{Pointer: "/source", Detail: "2:7: unknown key"}}}
	f.err = e
	w := r.send(s)
	p := wantCode(t, w, gatehouse.CodeInvalid)
	if v := p["errors"].([]any)[0].(map[string]any); v["detail"] != "2:7: unknown key" || w.Header().Get("ETag") != "" {
		t.Errorf("%v %v", v, w.Header())
	}
}

func TestWorkflowVersions(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.values["WorkflowSummary"] = &gatehouse.WorkflowSummary{
		Workflow: testWorkflow(), Versions: 2,
		Runs: map[gatehouse.RunStatus]int{gatehouse.RunSucceeded: 3, gatehouse.RunFailed: 1, gatehouse.RunRunning: 2},
	}
	s := newServer(t, f)
	for _, query := range []string{"", "?version=7", "?version="} {
		w := request{path: "/api/v1/workflows/triage" + query, key: "gth_view"}.send(s)
		if w.Code != http.StatusOK || w.Header().Get("ETag") != `"sha256:ab"` {
			t.Errorf("%q: %d %v", query, w.Code, w.Header())
		}
		counted := strings.Contains(w.Body.String(),
			`"versions":2,"runs":{"failed_terminal":1,"running":2,"succeeded":3},"failure_rate":0.25`)
		if counted == (query == "?version=7") || !strings.Contains(w.Body.String(), `"source":"name: triage\n"`) {
			t.Errorf("%q: %s", query, w.Body)
		}
	}
	if got := f.last(t, "FindWorkflow").args[1]; got != 7 || f.count("FindWorkflow") != 1 {
		t.Errorf("version %v was asked for, and FindWorkflow ran %d times", got, f.count("FindWorkflow"))
	}
	f.values["WorkflowSummary"] = &gatehouse.WorkflowSummary{Workflow: testWorkflow(), Versions: 1,
		Runs: map[gatehouse.RunStatus]int{gatehouse.RunRunning: 1}}
	if w := (request{path: "/api/v1/workflows/triage", key: "gth_view"}).send(s); !strings.Contains(w.Body.String(),
		`"failure_rate":null`) {
		t.Errorf("none has ended: %s", w.Body)
	}
	for _, query := range []string{"?version=0", "?version=-1", "?version=x", "?version=99999999999"} {
		wantCode(t, request{path: "/api/v1/workflows/triage" + query, key: "gth_view"}.send(s), gatehouse.CodeInvalid)
	}
}

func TestRunReflexion(t *testing.T) {
	t.Parallel()
	s := newServer(t, newFake())
	w := request{path: "/api/v1/runs/run_1/reflexion", key: "gth_view"}.send(s)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"otherwise":"x"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	wantCode(t, request{path: "/api/v1/runs/run_9/reflexion", key: "gth_view"}.send(s), gatehouse.CodeNotFound)
	wantCode(t, request{path: "/api/v1/runs/run_1/reflexion"}.send(s), gatehouse.CodeUnauthenticated)
}

func TestStartRun(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := newServer(t, f)
	start := request{method: "POST", path: "/api/v1/workflows/triage/runs", key: "gth_bot"}
	for body, want := range map[string]int{
		"": http.StatusCreated, "{}": http.StatusCreated,
		`{"input":{"n":12345678901234567890},"trigger_ref":"new"}`: http.StatusCreated,
		`{"trigger_ref":"known"}`:                                  http.StatusOK,
	} {
		start.body = body
		if w := start.send(s); w.Code != want || !strings.Contains(w.Body.String(), `"input":{"n":12345678901234567890}`) {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
	for body, code := range map[string]gatehouse.Code{
		`{"input":`: gatehouse.CodeMalformed, `{"inputs":{}}`: gatehouse.CodeMalformed,
		`{"trigger_ref":7}`: gatehouse.CodeInvalid, `[]`: gatehouse.CodeInvalid,
	} {
		start.body = body
		wantCode(t, start.send(s), code)
	}
}
