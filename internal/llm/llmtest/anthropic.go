package llmtest

import (
	"encoding/json"
	"net/http"
	"strings"
)

type anthropic struct{}

func (anthropic) requestIDHeader() string { return "Request-Id" }

func (anthropic) authenticate(h http.Header, key string) *refusal {
	switch {
	case h.Get("X-Api-Key") != key:
		return &refusal{status: http.StatusUnauthorized, kind: "authentication_error", message: "invalid x-api-key"}
	case h.Get("Anthropic-Version") == "":
		return invalid("anthropic-version: header is required")
	case h.Get("Anthropic-Version") != "2023-06-01":
		return invalid("anthropic-version: %q is not a valid version", h.Get("Anthropic-Version"))
	}
	return nil
}

func (anthropic) parse(body []byte) (Call, *refusal) {
	var r struct {
		Model     string `json:"model"`
		MaxTokens *int   `json:"max_tokens"`
		Messages  []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		System      json.RawMessage `json:"system"`
		Temperature json.Number     `json:"temperature"`
		Stop        []string        `json:"stop_sequences"`
		Stream      bool            `json:"stream"`
		Metadata    *struct {
			UserID string `json:"user_id"`
		} `json:"metadata"`
	}
	if bad := decode(body, &r); bad != nil {
		return Call{}, bad
	}
	if bad := common(r.Model, len(r.Messages), r.Temperature, 1); bad != nil {
		return Call{}, bad
	}
	c := Call{Protocol: Anthropic, Model: r.Model, Temperature: string(r.Temperature), Stop: r.Stop}
	switch {
	case r.MaxTokens == nil:
		return c, invalid("max_tokens: Field required")
	case *r.MaxTokens < 1:
		return c, invalid("max_tokens: must be at least 1")
	case r.Stream:
		return c, invalid("this fake does not stream")
	}
	c.MaxTokens = *r.MaxTokens
	for i, s := range r.Stop {
		if strings.TrimSpace(s) == "" {
			return c, invalid("stop_sequences.%d: each stop sequence must contain non-whitespace", i)
		}
	}
	if len(r.System) > 0 {
		said, bad := text(r.System)
		if bad != nil {
			return c, bad
		}
		c.System = said
	}
	for i, m := range r.Messages {
		said, bad := text(m.Content)
		if bad != nil {
			return c, bad
		}
		switch {
		case m.Role != "user" && m.Role != "assistant":
			return c, invalid("messages.%d.role: must be user or assistant; system is a parameter of its own", i)
		case i == 0 && m.Role != "user":
			return c, invalid("messages: first message must use the \"user\" role")
		case strings.TrimSpace(said) == "":
			return c, invalid("messages.%d: text content blocks must contain non-whitespace text", i)
		}
		c.Messages = append(c.Messages, Message{m.Role, said})
	}
	return c, nil
}

func (anthropic) reply(id string, c Call, r Reply) any {
	stop := r.Stop
	if stop == "" {
		stop = "end_turn"
	}
	var sequence any
	if stop == "stop_sequence" && len(c.Stop) > 0 {
		sequence = c.Stop[0]
	}
	return map[string]any{
		"id": "msg_fake_" + id, "type": "message", "role": "assistant", "model": c.Model,
		"content":     []any{map[string]any{"type": "text", "text": r.Text}},
		"stop_reason": stop, "stop_sequence": sequence,
		"usage": map[string]any{
			"input_tokens": tokens(r.Input, c.input()...), "output_tokens": tokens(r.Output, r.Text),
			"cache_creation_input_tokens": r.CacheWrite, "cache_read_input_tokens": r.CacheRead,
			"service_tier": "standard",
		},
	}
}

func (anthropic) failure(id string, r *refusal) any {
	e := map[string]any{"type": r.kind, "message": r.message}
	if r.code != "" {
		e["details"] = map[string]any{"error_code": r.code}
	}
	return map[string]any{"type": "error", "error": e, "request_id": id}
}
