package llm

import (
	"context"
	"encoding/json"
	"strings"
)

// anthropicVersion is the value of the header anthropic-version
// (https://platform.claude.com/docs/en/api/versioning).
const anthropicVersion = "2023-06-01"

// anthropic speaks the Messages API
// (https://platform.claude.com/docs/en/api/messages).
type anthropic struct{ *endpoint }

func newAnthropic(c Config) *anthropic {
	p := &anthropic{newEndpoint(c, "/v1/messages")}
	p.requestID = "Request-Id"
	p.header.Set("Anthropic-Version", anthropicVersion)
	if c.Key != "" {
		p.header.Set("X-Api-Key", c.Key)
	}
	return p
}

type anthropicMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type anthropicRequest struct {
	Model       string             `json:"model"`
	MaxTokens   int                `json:"max_tokens"`
	Messages    []anthropicMessage `json:"messages"`
	System      string             `json:"system,omitempty"`
	Temperature json.RawMessage    `json:"temperature,omitempty"`
	Stop        []string           `json:"stop_sequences,omitempty"`
}

type anthropicAnswer struct {
	Type    string `json:"type"`
	Model   string `json:"model"`
	Content []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
	StopReason string `json:"stop_reason"`
	Usage      *struct {
		InputTokens   *int64 `json:"input_tokens"`
		OutputTokens  *int64 `json:"output_tokens"`
		CacheCreation int64  `json:"cache_creation_input_tokens"`
		CacheRead     int64  `json:"cache_read_input_tokens"`
	} `json:"usage"`
}

var anthropicReasons = map[string]string{"end_turn": StopEnd, "max_tokens": StopMaxTokens,
	"stop_sequence": StopSequence, "refusal": StopRefusal}

// Complete implements [Provider].
func (p *anthropic) Complete(ctx context.Context, r Request) (Answer, error) {
	r, err := r.prepare("1")
	if err != nil {
		return Answer{}, err
	}
	body := anthropicRequest{Model: r.Model, MaxTokens: r.MaxTokens, System: r.System, Temperature: r.temperature(),
		Stop: r.Stop}
	for _, m := range r.Messages {
		body.Messages = append(body.Messages, anthropicMessage{m.Role, m.Text})
	}
	var said anthropicAnswer
	id, err := p.post(ctx, body, &said, anthropicFailure)
	if err != nil {
		return Answer{RequestID: id}, err
	}
	u := said.Usage
	if said.Type != "message" || u == nil || u.InputTokens == nil || u.OutputTokens == nil ||
		*u.InputTokens < 0 || *u.OutputTokens < 0 || u.CacheCreation < 0 || u.CacheRead < 0 {
		return Answer{RequestID: id}, &Error{Code: CodeBadAnswer, Detail: "the answer is not a message with usage",
			Status: 200, RequestID: id}
	}
	a := Answer{
		StopReason: said.StopReason, RequestID: id, Model: said.Model,
		InputTokens: *u.InputTokens + u.CacheCreation + u.CacheRead, OutputTokens: *u.OutputTokens,
	}
	if reason, ok := anthropicReasons[said.StopReason]; ok {
		a.StopReason = reason
	}
	var text strings.Builder
	for _, c := range said.Content {
		if c.Type == "text" { // the other types are thinking and tools
			text.WriteString(c.Text)
		}
	}
	a.Text = text.String()
	return a.finish(r)
}

// anthropicFailure reads {"type": "error", "error": {"type", "message",
// "details": {"error_code"}}, "request_id"}.
func anthropicFailure(body []byte) failure {
	var said struct {
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
			Details struct {
				ErrorCode string `json:"error_code"`
			} `json:"details"`
		} `json:"error"`
	}
	// The details may have another form; the fields that were decoded are used.
	_ = json.Unmarshal(body, &said)
	f := failure{kind: said.Error.Type, message: said.Error.Message}
	if said.Error.Details.ErrorCode != "" {
		f.kind = said.Error.Details.ErrorCode
	}
	return f
}
