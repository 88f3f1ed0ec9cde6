package llmtest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/llm/llmtest"
)

func post(t *testing.T, url, body string, headers ...string) (status int, answer string, h http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b), res.Header
}

// TestStrict has what the references do not allow.
func TestStrict(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(llmtest.New("k", func(llmtest.Call) llmtest.Reply { return llmtest.Reply{Text: "so"} }))
	t.Cleanup(s.Close)
	open := []string{"Authorization", "Bearer k"}
	claude := []string{"X-Api-Key", "k", "Anthropic-Version", "2023-06-01"}
	for name, tc := range map[string]struct {
		path, body string
		headers    []string
		status     int
		want       string
	}{
		"openai good": {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"}]}`, open,
			200, `"finish_reason":"stop"`},
		"openai parts": {"/v1/chat/completions",
			`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x"}]}]}`, open, 200, `"total_tokens"`},
		"openai no key":      {"/v1/chat/completions", `{}`, nil, 401, `"code":"invalid_api_key"`},
		"openai no model":    {"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}]}`, open, 400, "model"},
		"openai no messages": {"/v1/chat/completions", `{"model":"m"}`, open, 400, "messages"},
		"openai unknown": {"/v1/chat/completions",
			`{"model":"m","messages":[{"role":"user","content":"x"}],"prompt":"x"}`, open, 400, "prompt"},
		"openai a role": {"/v1/chat/completions", `{"model":"m","messages":[{"role":"human","content":"x"}]}`, open,
			400, "role"},
		"openai both limits": {"/v1/chat/completions",
			`{"model":"m","messages":[{"role":"user","content":"x"}],"max_tokens":1,"max_completion_tokens":1}`, open, 400,
			"max_tokens"},
		"openai hot": {"/v1/chat/completions",
			`{"model":"m","messages":[{"role":"user","content":"x"}],"temperature":2.1}`, open, 400, "temperature"},
		"openai five stops": {"/v1/chat/completions",
			`{"model":"m","messages":[{"role":"user","content":"x"}],"stop":["1","2","3","4","5"]}`, open, 400, "stop"},
		"openai JSON unsaid": {"/v1/chat/completions",
			`{"model":"m","messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_object"}}`, open, 400,
			"word 'json'"},
		"openai stream": {"/v1/chat/completions",
			`{"model":"m","messages":[{"role":"user","content":"x"}],"stream":true}`, open, 400, "stream"},
		"anthropic good": {"/v1/messages", `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"x"}]}`,
			claude, 200, `"stop_reason":"end_turn"`},
		"anthropic no key":     {"/v1/messages", `{}`, claude[2:], 401, `"authentication_error"`},
		"anthropic no version": {"/v1/messages", `{}`, claude[:2], 400, "anthropic-version"},
		"anthropic no limit": {"/v1/messages", `{"model":"m","messages":[{"role":"user","content":"x"}]}`, claude, 400,
			"max_tokens: Field required"},
		"anthropic system role": {"/v1/messages", `{"model":"m","max_tokens":5,"messages":[{"role":"system","content":"x"}]}`,
			claude, 400, "role"},
		"anthropic assistant": {"/v1/messages",
			`{"model":"m","max_tokens":5,"messages":[{"role":"assistant","content":"x"}]}`, claude, 400, "first message"},
		"anthropic empty": {"/v1/messages", `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":" "}]}`,
			claude, 400, "non-whitespace"},
		"anthropic unknown": {"/v1/messages",
			`{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"x"}],"stop":["x"]}`, claude, 400, "stop"},
		"anthropic hot": {"/v1/messages",
			`{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"x"}],"temperature":1.1}`, claude, 400,
			"temperature"},
		"two values": {"/v1/messages", `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"x"}]} {}`, claude,
			400, "more than one"},
		"another path": {"/v1/complete", `{}`, claude, 404, ""},
		"not JSON":     {"/v1/messages", `{}`, append(claude, "Content-Type", "text/plain"), 400, "Content-Type"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, answer, h := post(t, s.URL+tc.path, tc.body, tc.headers...)
			if status != tc.status || !strings.Contains(answer, tc.want) {
				t.Errorf("%d %s", status, answer)
			}
			if h.Get("Server") != "gatehouse-fake-models" {
				t.Error("it does not say that it is a fake")
			}
			var e struct {
				Type  string
				Error struct{ Type, Message string }
			}
			if status == 400 &&
				(json.Unmarshal([]byte(answer), &e) != nil || e.Error.Type != "invalid_request_error" || e.Error.Message == "") {
				t.Errorf("not the protocol's shape: %s", answer)
			}
		})
	}
}

func TestCallsKeepsWellFormedEntries(t *testing.T) {
	t.Parallel()
	fake := llmtest.New("k", func(c llmtest.Call) llmtest.Reply { return llmtest.Reply{Text: "echo " + c.Last()} })
	s := httptest.NewServer(fake)
	t.Cleanup(s.Close)
	post(t, s.URL+"/v1/messages", `{}`, "X-Api-Key", "k", "Anthropic-Version", "2023-06-01")
	_, answer, _ := post(t, s.URL+"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hello"}]}`,
		"Authorization", "Bearer k")
	if calls := fake.Calls(); len(calls) != 1 || calls[0].Last() != "hello" || !strings.Contains(answer, "echo hello") {
		t.Errorf("calls = %v, answer = %s", calls, answer)
	}
}
