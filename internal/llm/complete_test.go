package llm_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/llm"
	"github.com/gatehouse-dev/gatehouse/internal/llm/llmtest"
)

func TestComplete(t *testing.T) {
	t.Parallel()
	reply := func(c llmtest.Call) llmtest.Reply {
		r := llmtest.Reply{Text: "It is the printer.", Input: 100, Output: 7, CacheRead: 40}
		if c.Protocol == llmtest.Anthropic {
			r.CacheWrite = 3
		}
		return r
	}
	each(t, reply, func(t *testing.T, w *world, p llm.Provider) {
		got, err := p.Complete(t.Context(), llm.Request{
			Model: "small", System: "Be brief.", Temperature: "2e-1", MaxTokens: 50, Stop: []string{"END"},
			Messages: []llm.Message{{Role: llm.RoleUser, Text: "What is it?"}, {Role: llm.RoleAssistant, Text: "Hm."},
				{Role: llm.RoleUser, Text: "Well?"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		call := w.fake.Calls()[0]
		want := llm.Answer{Text: "It is the printer.", StopReason: llm.StopEnd, InputTokens: 100, OutputTokens: 7,
			RequestID: "req_fake_1", Model: "small"}
		if call.Protocol == llmtest.Anthropic {
			// Anthropic's input_tokens exclude the tokens read from a cache and those written to it.
			want.InputTokens = 143
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		call.Body, call.HTTP = nil, nil
		wantCall := llmtest.Call{
			Protocol: call.Protocol, Model: "small", System: "Be brief.", Temperature: "0.2", MaxTokens: 50,
			Stop: []string{"END"},
			Messages: []llmtest.Message{{Role: "user", Text: "What is it?"}, {Role: "assistant", Text: "Hm."},
				{Role: "user", Text: "Well?"}},
		}
		if diff := cmp.Diff(wantCall, call); diff != "" {
			t.Error(diff)
		}
	})
}

func TestStopReasons(t *testing.T) {
	t.Parallel()
	given := map[string]map[string]string{
		llmtest.OpenAI: {"stop": llm.StopEnd, "length": llm.StopMaxTokens, "content_filter": llm.StopRefusal,
			"tool_calls": "tool_calls"},
		llmtest.Anthropic: {"end_turn": llm.StopEnd, "max_tokens": llm.StopMaxTokens, "stop_sequence": llm.StopSequence,
			"refusal": llm.StopRefusal, "pause_turn": "pause_turn"},
	}
	reply := func(c llmtest.Call) llmtest.Reply { return llmtest.Reply{Text: "so", Stop: c.Last()} }
	w := newWorld(t, reply)
	for protocol, reasons := range given {
		for reason, want := range reasons {
			got, err := w.providers[protocol].Complete(t.Context(), llm.Request{Model: "m", Prompt: reason})
			if err != nil || got.StopReason != want {
				t.Errorf("%s %s: %q, %v; want %q", protocol, reason, got.StopReason, err, want)
			}
		}
	}
}

func TestJSONAnswers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reply     llmtest.Reply
		want      gatehouse.JSON
		code      string
		retryable bool
	}{
		"exact": {llmtest.Reply{Text: ` {"b": 0.30, "a": 12345678901234567890.10} `},
			`{"a":12345678901234567890.10,"b":0.30}`, "", false},
		"fenced":      {llmtest.Reply{Text: "```json\n{\"a\": 1}\n```\n"}, `{"a":1}`, "", false},
		"fenced bare": {llmtest.Reply{Text: "```\n{\"a\": 1}\n```"}, `{"a":1}`, "", false},
		"with talk":   {llmtest.Reply{Text: `Here it is: {"a": 1}`}, "", llm.CodeNotJSON, true},
		"array":       {llmtest.Reply{Text: `[1]`}, "", llm.CodeNotJSON, true},
		"duplicates":  {llmtest.Reply{Text: `{"a": 1, "a": 2}`}, "", llm.CodeNotJSON, true},
		"two":         {llmtest.Reply{Text: `{"a": 1}{"b": 2}`}, "", llm.CodeNotJSON, true},
		"empty":       {llmtest.Reply{}, "", llm.CodeNotJSON, true},
		"other fence": {llmtest.Reply{Text: "```yaml\n{\"a\": 1}\n```"}, "", llm.CodeNotJSON, true},
		"cut off":     {llmtest.Reply{Text: `{"a": `, Stop: "length"}, "", llm.CodeTruncated, false},
		"refused":     {llmtest.Reply{Refusal: "I will not."}, "", llm.CodeRefused, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reply := tc.reply
			reply.Input, reply.Output = 11, 5
			w := newWorld(t, func(llmtest.Call) llmtest.Reply { return reply })
			got, err := w.providers[llmtest.OpenAI].Complete(t.Context(),
				llm.Request{Model: "m", Prompt: "classify", JSON: true})
			if got.JSON != tc.want || got.InputTokens != 11 || got.OutputTokens != 5 {
				t.Errorf("got %+v, want %s and what it cost", got, tc.want)
			}
			if !w.fake.Calls()[0].JSON {
				t.Error("no JSON was asked for")
			}
			if tc.code == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if e := errorOf(t, err); e.Code != tc.code || e.Retryable != tc.retryable || e.RequestID == "" {
				t.Errorf("err = %+v", e)
			}
		})
	}
}

// TestJSONOfAnthropic: the Messages API has no format for an arbitrary JSON object, so the system prompt asks
// for one.
func TestJSONOfAnthropic(t *testing.T) {
	t.Parallel()
	w := newWorld(t, say("```json\n{\"group\": \"network\"}\n```"))
	got, err := w.providers[llmtest.Anthropic].Complete(t.Context(),
		llm.Request{Model: "m", System: "Classify.", Prompt: "x", JSON: true})
	if err != nil || got.JSON != `{"group":"network"}` {
		t.Errorf("got %s, %v", got.JSON, err)
	}
	if s := w.fake.Calls()[0].System; !strings.HasPrefix(s, "Classify.\n\n") || !strings.Contains(s, "JSON object") {
		t.Errorf("system = %q", s)
	}
}

// TestMaxTokensField: the token limit has the configured name, max_completion_tokens by default.
func TestMaxTokensField(t *testing.T) {
	t.Parallel()
	w := newWorld(t, say("so"))
	for field, want := range map[string]string{"": `"max_completion_tokens":1024`,
		llm.FieldMaxTokens: `"max_tokens":1024`} {
		c := w.configs()[llmtest.OpenAI]
		c.MaxTokensField = field
		p, err := llm.New(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Complete(t.Context(), llm.Request{Model: "m", Prompt: "x"}); err != nil {
			t.Fatal(err)
		}
		calls := w.fake.Calls()
		if body := string(calls[len(calls)-1].Body); !strings.Contains(body, want) {
			t.Errorf("%q: %s", field, body)
		}
	}
}

func TestRequestsRefused(t *testing.T) {
	t.Parallel()
	user := []llm.Message{{Role: llm.RoleUser, Text: "x"}}
	for name, r := range map[string]llm.Request{
		"no model":              {Prompt: "x"},
		"nothing said":          {Model: "m"},
		"prompt and messages":   {Model: "m", Prompt: "x", Messages: user},
		"a system message":      {Model: "m", Messages: []llm.Message{{Role: "system", Text: "x"}}},
		"an empty message":      {Model: "m", Messages: []llm.Message{{Role: llm.RoleUser, Text: " "}}},
		"assistant speaks last": {Model: "m", Messages: append(user, llm.Message{Role: llm.RoleAssistant, Text: "{"})},
		"negative limit":        {Model: "m", Prompt: "x", MaxTokens: -1},
		"huge limit":            {Model: "m", Prompt: "x", MaxTokens: llm.MaxTokens + 1},
		"temperature no number": {Model: "m", Prompt: "x", Temperature: "warm"},
		"temperature below 0":   {Model: "m", Prompt: "x", Temperature: "-0.1"},
		"temperature above 2":   {Model: "m", Prompt: "x", Temperature: "2.01"},
		"five stops":            {Model: "m", Prompt: "x", Stop: []string{"1", "2", "3", "4", "5"}},
		"a blank stop":          {Model: "m", Prompt: "x", Stop: []string{"\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, say("so"), func(t *testing.T, w *world, p llm.Provider) {
				_, err := p.Complete(t.Context(), r)
				if e := errorOf(t, err); e.Code != llm.CodeInvalid || e.Retryable || e.Status != 0 {
					t.Errorf("err = %+v", e)
				}
				if len(w.fake.Calls()) != 0 {
					t.Error("it was sent")
				}
			})
		})
	}
}

func TestTemperatureOfAnthropicEndsAtOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, say("so"))
	r := llm.Request{Model: "m", Prompt: "x", Temperature: "1.5"}
	if _, err := w.providers[llmtest.OpenAI].Complete(t.Context(), r); err != nil {
		t.Error(err)
	}
	if _, err := w.providers[llmtest.Anthropic].Complete(t.Context(), r); errorOf(t, err).Code != llm.CodeInvalid {
		t.Error(err)
	}
}
