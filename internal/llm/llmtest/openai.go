package llmtest

import (
	"encoding/json"
	"net/http"
	"strings"
)

type openAI struct{}

func (openAI) requestIDHeader() string { return "X-Request-Id" }

func (openAI) authenticate(h http.Header, key string) *refusal {
	if h.Get("Authorization") == "Bearer "+key {
		return nil
	}
	given := strings.TrimPrefix(h.Get("Authorization"), "Bearer ")
	return &refusal{
		status: http.StatusUnauthorized, kind: "invalid_request_error", code: "invalid_api_key",
		// The real one repeats the key too, in part.
		message: "Incorrect API key provided: " + given + ".",
	}
}

func (openAI) parse(body []byte) (Call, *refusal) {
	var r struct {
		Model    string `json:"model"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
			Name    string          `json:"name"`
		} `json:"messages"`
		MaxCompletionTokens *int            `json:"max_completion_tokens"`
		MaxTokens           *int            `json:"max_tokens"`
		Temperature         json.Number     `json:"temperature"`
		Stop                json.RawMessage `json:"stop"`
		N                   *int            `json:"n"`
		Stream              bool            `json:"stream"`
		ResponseFormat      *struct {
			Type string `json:"type"`
		} `json:"response_format"`
	}
	if bad := decode(body, &r); bad != nil {
		return Call{}, bad
	}
	if bad := common(r.Model, len(r.Messages), r.Temperature, 2); bad != nil {
		return Call{}, bad
	}
	c := Call{Protocol: OpenAI, Model: r.Model, Temperature: string(r.Temperature)}
	switch {
	case r.Stream:
		return c, invalid("this fake does not stream")
	case r.N != nil && *r.N != 1:
		return c, invalid("this fake gives one choice")
	case r.MaxCompletionTokens != nil && r.MaxTokens != nil:
		return c, invalid("max_tokens and max_completion_tokens cannot both be set")
	}
	for _, limit := range []*int{r.MaxCompletionTokens, r.MaxTokens} {
		if limit == nil {
			continue
		}
		if c.MaxTokens = *limit; c.MaxTokens < 1 {
			return c, invalid("max_completion_tokens: must be at least 1")
		}
	}
	if len(r.Stop) > 0 && json.Unmarshal(r.Stop, &c.Stop) != nil {
		var one string
		if json.Unmarshal(r.Stop, &one) != nil {
			return c, invalid("stop: must be a string or a list of strings")
		}
		c.Stop = []string{one}
	}
	if len(c.Stop) > 4 {
		return c, invalid("stop: at most 4 sequences")
	}
	saysJSON := false
	for i, m := range r.Messages {
		said, bad := text(m.Content)
		if bad != nil {
			return c, bad
		}
		saysJSON = saysJSON || strings.Contains(strings.ToLower(said), "json")
		switch m.Role {
		case "system", "developer":
			c.System += said
		case "user", "assistant":
			c.Messages = append(c.Messages, Message{m.Role, said})
		default:
			return c, invalid("messages[%d].role: %q is not one of system, developer, user, assistant", i, m.Role)
		}
	}
	if len(c.Messages) == 0 {
		return c, invalid("messages: this fake wants one of the user's")
	}
	if f := r.ResponseFormat; f != nil {
		switch {
		case f.Type != "json_object" && f.Type != "text":
			return c, invalid("response_format.type: this fake knows text and json_object")
		case f.Type == "json_object" && !saysJSON:
			return c, invalid(
				"'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.")
		}
		c.JSON = f.Type == "json_object"
	}
	return c, nil
}

func (openAI) reply(id string, c Call, r Reply) any {
	stop := r.Stop
	if stop == "" {
		stop = "stop"
	}
	message := map[string]any{"role": "assistant", "content": r.Text, "refusal": nil, "annotations": []any{}}
	if r.Refusal != "" {
		message["content"], message["refusal"] = nil, r.Refusal
	}
	in, out := tokens(r.Input, c.input()...), tokens(r.Output, r.Text, r.Refusal)
	return map[string]any{
		"id": "chatcmpl-fake-" + id, "object": "chat.completion", "created": 1763712000, "model": c.Model,
		"choices":            []any{map[string]any{"index": 0, "message": message, "logprobs": nil, "finish_reason": stop}},
		"service_tier":       "default",
		"system_fingerprint": "fp_fake",
		"usage": map[string]any{
			"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out,
			"prompt_tokens_details":     map[string]any{"cached_tokens": r.CacheRead, "audio_tokens": 0},
			"completion_tokens_details": map[string]any{"reasoning_tokens": 0, "audio_tokens": 0},
		},
	}
}

func (openAI) failure(_ string, r *refusal) any {
	var code any
	if r.code != "" {
		code = r.code
	}
	return map[string]any{"error": map[string]any{"message": r.message, "type": r.kind, "param": nil, "code": code}}
}
