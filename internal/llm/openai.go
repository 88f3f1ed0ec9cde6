package llm

import (
	"context"
	"encoding/json"
)

// openAI implements chat completions
// (https://platform.openai.com/docs/api-reference/chat/create).
type openAI struct {
	*endpoint
	limitField string
}

func newOpenAI(c Config) *openAI {
	p := &openAI{endpoint: newEndpoint(c, "/chat/completions"), limitField: c.MaxTokensField}
	if p.limitField == "" {
		p.limitField = FieldMaxCompletionTokens
	}
	p.requestID = "X-Request-Id"
	if c.Key != "" {
		p.header.Set("Authorization", "Bearer "+c.Key)
	}
	return p
}

type openAIMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type openAIFormat struct {
	Type string `json:"type"`
}

type openAIRequest struct {
	Model    string          `json:"model"`
	Messages []openAIMessage `json:"messages"`
	// One of the two is set: OpenAI deprecates max_tokens, and some other servers accept only max_tokens.
	MaxCompletionTokens int             `json:"max_completion_tokens,omitempty"`
	MaxTokens           int             `json:"max_tokens,omitempty"`
	Temperature         json.RawMessage `json:"temperature,omitempty"`
	Stop                []string        `json:"stop,omitempty"`
	ResponseFormat      *openAIFormat   `json:"response_format,omitempty"`
}

type openAIAnswer struct {
	Model   string `json:"model"`
	Choices []struct {
		Message struct {
			Content *string `json:"content"`
			Refusal *string `json:"refusal"`
		} `json:"message"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		PromptTokens     *int64 `json:"prompt_tokens"`
		CompletionTokens *int64 `json:"completion_tokens"`
	} `json:"usage"`
}

var openAIReasons = map[string]string{"stop": StopEnd, "length": StopMaxTokens, "content_filter": StopRefusal}

// Complete implements [Provider].
func (p *openAI) Complete(ctx context.Context, r Request) (Answer, error) {
	r, err := r.prepare("2")
	if err != nil {
		return Answer{}, err
	}
	body := openAIRequest{Model: r.Model, Temperature: r.temperature(), Stop: r.Stop}
	if p.limitField == FieldMaxTokens {
		body.MaxTokens = r.MaxTokens
	} else {
		body.MaxCompletionTokens = r.MaxTokens
	}
	if r.JSON {
		body.ResponseFormat = &openAIFormat{"json_object"}
	}
	if r.System != "" {
		body.Messages = append(body.Messages, openAIMessage{"system", r.System})
	}
	for _, m := range r.Messages {
		body.Messages = append(body.Messages, openAIMessage{m.Role, m.Text})
	}
	var said openAIAnswer
	id, err := p.post(ctx, body, &said, openAIFailure)
	if err != nil {
		return Answer{RequestID: id}, err
	}
	if u := said.Usage; len(said.Choices) != 1 || u == nil || u.PromptTokens == nil || u.CompletionTokens == nil ||
		*u.PromptTokens < 0 || *u.CompletionTokens < 0 {
		return Answer{RequestID: id},
			&Error{Code: CodeBadAnswer, Detail: "the answer must have exactly one choice, and usage", Status: 200, RequestID: id}
	}
	choice := said.Choices[0]
	a := Answer{
		StopReason: choice.FinishReason, RequestID: id, Model: said.Model,
		InputTokens: *said.Usage.PromptTokens, OutputTokens: *said.Usage.CompletionTokens,
	}
	if reason, ok := openAIReasons[choice.FinishReason]; ok {
		a.StopReason = reason
	}
	if choice.Message.Content != nil {
		a.Text = *choice.Message.Content
	}
	if refusal := choice.Message.Refusal; refusal != nil && *refusal != "" {
		a.StopReason, a.Text = StopRefusal, *refusal
	}
	return a.finish(r)
}

// openAIFailure parses {"error": {"message", "type", "param", "code"}}. code is more specific
// than type, but may be null.
func openAIFailure(body []byte) failure {
	var said struct {
		Error struct {
			Message string `json:"message"`
			Type    string `json:"type"`
			Code    any    `json:"code"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &said) != nil {
		return failure{}
	}
	f := failure{kind: said.Error.Type, message: said.Error.Message}
	if code, ok := said.Error.Code.(string); ok && code != "" {
		f.kind = code
	}
	return f
}
