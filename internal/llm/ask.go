package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
)

// requestForm is the JSON form of a request in a workflow's step.
type requestForm struct {
	Model    string `json:"model"`
	System   string `json:"system"`
	Prompt   string `json:"prompt"`
	Messages []struct {
		Role string `json:"role"`
		Text string `json:"text"`
	} `json:"messages"`
	MaxTokens int `json:"max_tokens"`
	// Temperature may be a number or a string.
	Temperature gatehouse.Decimal `json:"temperature"`
	JSON        bool              `json:"json"`
	Stop        []string          `json:"stop"`
}

// parseRequest parses the request of a step: an object of model, system, prompt or messages
// ([{role, text}]), max_tokens, temperature, json and stop. An unknown member is an error. The
// error is an *[Error] with code invalid.
func parseRequest(j gatehouse.JSON) (Request, error) {
	a, err := decode(j)
	if err != nil || !j.IsObject() {
		return Request{}, &Error{Code: CodeInvalid, Detail: unreadable(j, err), cause: err}
	}
	r := Request{
		Model: a.Model, System: a.System, Prompt: a.Prompt, MaxTokens: a.MaxTokens,
		Temperature: string(a.Temperature), JSON: a.JSON, Stop: a.Stop,
	}
	for _, m := range a.Messages {
		r.Messages = append(r.Messages, Message(m))
	}
	return r, nil
}

func decode(j gatehouse.JSON) (a requestForm, err error) {
	d := json.NewDecoder(bytes.NewReader([]byte(j)))
	d.DisallowUnknownFields()
	err = d.Decode(&a)
	return a, err
}

// unreadable says what is wrong with a request that cannot be decoded.
func unreadable(j gatehouse.JSON, err error) string {
	const form = "an object of model, system, prompt or messages, max_tokens, temperature, json and stop"
	members, none := j.Fields()
	if none != nil {
		return "the request must be " + form
	}
	if wrong := new(json.UnmarshalTypeError); errors.As(err, &wrong) {
		return gatehouse.Quote(wrong.Field) + " has a value of the wrong kind: " + wrong.Value
	}
	for _, m := range members {
		_, err := decode(gatehouse.ObjectJSON(m))
		switch {
		case err == nil:
		case m.Name == "messages":
			return `"messages" must be a list of objects of role and text`
		case m.Name == "temperature":
			return `"temperature" must be a number`
		default:
			return gatehouse.Quote(m.Name) + " is not a member of the request, which must be " + form
		}
	}
	return "the request must be " + form
}

// Ask makes the model call of a step. The answer is an object of text, json (if requested),
// stop_reason, model, input_tokens, output_tokens and request_id. usage is the cost of the call.
// It is nil if the answer reports no tokens, or if there was no answer. If the answer was unusable,
// usage and failure are both set.
// The Model of usage is the requested one, which determines the price. Without a price, Cost is 0
// and Currency "".
func (r *Registry) Ask(
	ctx context.Context, tenant, provider string, request gatehouse.JSON,
) (answer gatehouse.JSON, usage *gatehouse.ModelUsage, failure *gatehouse.StepFailure) {
	e, err := r.Lookup(tenant, provider)
	if err != nil {
		return "", nil, failed(err)
	}
	req, err := parseRequest(request)
	if err != nil {
		return "", nil, failed(err)
	}
	a, err := e.Complete(ctx, req)
	if a.InputTokens > 0 || a.OutputTokens > 0 {
		usage = &gatehouse.ModelUsage{Provider: provider, Model: req.Model, InputTokens: a.InputTokens,
			OutputTokens: a.OutputTokens, Cost: "0"}
		if p, ok := e.Price(req.Model); ok {
			usage.Cost, usage.Currency = p.Cost(a.InputTokens, a.OutputTokens), p.Currency
		}
	}
	if err != nil {
		return "", usage, failed(err)
	}
	return a.output(req), usage, nil
}

// output is the answer in the form that later steps use.
func (a Answer) output(r Request) gatehouse.JSON {
	members := []gatehouse.Member{
		{Name: "text", Value: gatehouse.StringJSON(a.Text)},
		{Name: "stop_reason", Value: gatehouse.StringJSON(a.StopReason)},
		{Name: "model", Value: gatehouse.StringJSON(a.Model)},
		{Name: "input_tokens", Value: gatehouse.JSON(strconv.FormatInt(a.InputTokens, 10))},
		{Name: "output_tokens", Value: gatehouse.JSON(strconv.FormatInt(a.OutputTokens, 10))},
		{Name: "request_id", Value: gatehouse.StringJSON(a.RequestID)},
	}
	if r.JSON {
		members = append(members, gatehouse.Member{Name: "json", Value: a.JSON})
	}
	return gatehouse.ObjectJSON(members...)
}

// MaxCost returns the maximum cost of a call, for checking a budget before the call. ok is false if
// the provider or the price is not known, or if the request is not valid. MaxCost assumes that a token
// has at least one byte, and that a provider adds at most 32 tokens to a message.
func (r *Registry) MaxCost(
	tenant, provider string, request gatehouse.JSON,
) (cost gatehouse.Decimal, currency string, ok bool) {
	e, err := r.Lookup(tenant, provider)
	if err != nil {
		return "", "", false
	}
	req, err := parseRequest(request)
	if err != nil {
		return "", "", false
	}
	if req, err = req.prepare("2"); err != nil {
		return "", "", false
	}
	p, ok := e.Price(req.Model)
	if !ok {
		return "", "", false
	}
	input := int64(len(req.System)) + 32
	for _, m := range req.Messages {
		input += int64(len(m.Text)) + 32
	}
	return p.Cost(input, int64(req.MaxTokens)), p.Currency, true
}

// failed converts an error to the failure of a step.
func failed(err error) *gatehouse.StepFailure {
	var e *Error
	if errors.As(err, &e) {
		return &gatehouse.StepFailure{Code: e.Code, Detail: e.Detail, Retryable: e.Retryable,
			RetryAfter: gatehouse.Duration(e.RetryAfter)}
	}
	var g *gatehouse.Error
	if errors.As(err, &g) {
		return &gatehouse.StepFailure{Code: string(g.Code), Detail: g.Detail}
	}
	return &gatehouse.StepFailure{Code: string(gatehouse.CodeInternal), Detail: "the request failed", Retryable: true}
}
