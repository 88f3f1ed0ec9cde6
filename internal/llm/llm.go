package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/gatehouse-dev/gatehouse"
)

// Provider answers requests. It is safe for concurrent use.
type Provider interface {
	// Complete asks a model once. An error is an *[Error]. Where an answer came
	// and is of no use, such as one that is no JSON, the Answer holds all but
	// JSON beside the error, since it has cost what it says.
	Complete(ctx context.Context, r Request) (Answer, error)
}

// The bounds of a request.
const (
	// DefaultMaxTokens is used where a request sets none: a cost needs a bound.
	DefaultMaxTokens = 1024
	MaxTokens        = 1_000_000
	MaxMessages      = 1000
	// MaxStops is how many stop sequences OpenAI documents.
	MaxStops = 4
	// MaxBytes bounds the body of a request, and that of an answer.
	MaxBytes = 4 << 20
)

// Request asks a model for one answer.
type Request struct {
	Model string
	// System instructs the model. Optional.
	System string
	// Exactly one of Prompt, one message of the user's, and Messages is set.
	// The last of Messages is the user's.
	Prompt   string
	Messages []Message
	// MaxTokens bounds the answer, in tokens; 0 for [DefaultMaxTokens].
	MaxTokens int
	// Temperature is a decimal: 0 to 2 for OpenAI, 0 to 1 for Anthropic. ""
	// leaves it to the provider.
	Temperature string
	// JSON asks for one JSON object as the whole answer.
	JSON bool
	// Stop lists texts that end the answer; at most [MaxStops].
	Stop []string
}

// The roles of messages.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
)

// Message is one turn of a conversation.
type Message struct {
	Role string
	Text string
}

// The reasons why an answer ended, whichever provider gave it. A reason that
// has no name here is given as the provider names it.
const (
	StopEnd       = "end"
	StopMaxTokens = "max_tokens"
	// StopSequence is told by Anthropic only; with OpenAI it is StopEnd.
	StopSequence = "stop_sequence"
	StopRefusal  = "refusal"
)

// Answer is what a model said.
type Answer struct {
	Text string
	// JSON is the answer as an object, digit for digit, when it was asked for.
	JSON         gatehouse.JSON
	StopReason   string
	InputTokens  int64
	OutputTokens int64
	// RequestID is the provider's name for the request, "" if it gave none.
	RequestID string
	// Model is the one that answered, as the provider names it.
	Model string
}

// jsonInstruction is added to the system text where JSON is asked for. OpenAI
// refuses response_format json_object unless a message says JSON; Anthropic has
// no such format, and follows this.
const jsonInstruction = "Answer with exactly one JSON object and nothing else: no Markdown, no explanation."

// prepare checks a request and fills in what it leaves open. maxTemperature is
// the provider's bound.
func (r Request) prepare(maxTemperature gatehouse.Decimal) (Request, error) {
	bad := func(format string, args ...any) (Request, error) {
		return r, &Error{Code: CodeInvalid, Detail: fmt.Sprintf(format, args...)}
	}
	switch {
	case r.Model == "" || len(r.Model) > 200 || !utf8.ValidString(r.Model):
		return bad("model must be 1 to 200 bytes of text")
	case (r.Prompt == "") == (len(r.Messages) == 0):
		return bad("exactly one of prompt and messages is needed")
	case len(r.Messages) > MaxMessages:
		return bad("there may be at most %d messages", MaxMessages)
	case r.MaxTokens < 0 || r.MaxTokens > MaxTokens:
		return bad("max_tokens must be 1 to %d", MaxTokens)
	case len(r.Stop) > MaxStops:
		return bad("there may be at most %d stop texts", MaxStops)
	}
	if r.MaxTokens == 0 {
		r.MaxTokens = DefaultMaxTokens
	}
	for _, s := range r.Stop {
		if strings.TrimSpace(s) == "" {
			return bad("a stop text must be more than white space")
		}
	}
	if r.Prompt != "" {
		r.Messages, r.Prompt = []Message{{RoleUser, r.Prompt}}, ""
	}
	for i, m := range r.Messages {
		switch {
		case m.Role != RoleUser && m.Role != RoleAssistant:
			return bad("messages[%d].role must be %s or %s", i, RoleUser, RoleAssistant)
		case strings.TrimSpace(m.Text) == "":
			return bad("messages[%d] is empty", i)
		}
	}
	if r.Messages[len(r.Messages)-1].Role != RoleUser {
		return bad("the last message must be the user's")
	}
	if r.Temperature != "" {
		t, err := gatehouse.ParseDecimal(r.Temperature)
		if err != nil || t.Sign() < 0 || t.Cmp(maxTemperature) > 0 {
			return bad("temperature must be a number from 0 to %s", maxTemperature)
		}
		// Without exponent, sign or leading zeros: a JSON number.
		r.Temperature = string(t.Abs())
	}
	if r.JSON {
		r.System = strings.TrimSpace(r.System + "\n\n" + jsonInstruction)
	}
	return r, nil
}

// temperature is the number as JSON, nil for none.
func (r Request) temperature() json.RawMessage {
	if r.Temperature == "" {
		return nil
	}
	return json.RawMessage(r.Temperature)
}

// finish reads the object of an answer that was to be one.
func (a Answer) finish(r Request) (Answer, error) {
	if !r.JSON {
		return a, nil
	}
	fail := func(code, detail string, retryable bool) (Answer, error) {
		return a, &Error{Code: code, Detail: detail, Retryable: retryable, RequestID: a.RequestID}
	}
	switch a.StopReason {
	case StopMaxTokens:
		return fail(CodeTruncated, fmt.Sprintf("the answer was cut off at max_tokens, %d", r.MaxTokens), false)
	case StopRefusal:
		return fail(CodeRefused, "the model refused to answer", false)
	}
	j, err := gatehouse.Canonicalize([]byte(unfence(a.Text)))
	if err != nil || !j.IsObject() {
		// Another sample may be one.
		return fail(CodeNotJSON, "the answer is not one JSON object", true)
	}
	a.JSON = j
	return a, nil
}

// unfence takes off a Markdown fence around a whole text. Models put one around
// JSON even when asked not to; nothing else is taken off.
func unfence(s string) string {
	s = strings.TrimSpace(s)
	body, ok := strings.CutPrefix(s, "```")
	if !ok {
		return s
	}
	body, ok = strings.CutSuffix(body, "```")
	info, body, line := strings.Cut(body, "\n")
	if !ok || !line || info != "" && !strings.EqualFold(strings.TrimSpace(info), "json") {
		return s
	}
	return strings.TrimSpace(body)
}
