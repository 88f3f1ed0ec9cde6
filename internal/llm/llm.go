package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/gatehouse-dev/gatehouse"
)

// Provider sends requests to models. It is safe for concurrent use.
type Provider interface {
	// Complete calls a model once. An error is an *[Error]. If there was an unusable answer,
	// such as invalid JSON, it returns the Answer without JSON together with the error, because
	// the tokens cost money.
	Complete(ctx context.Context, r Request) (Answer, error)
}

// The limits of a request.
const (
	// DefaultMaxTokens is used if a request sets no limit: without one, the cost has no upper
	// bound.
	DefaultMaxTokens = 1024
	MaxTokens        = 1_000_000
	MaxMessages      = 1000
	// MaxStops is OpenAI's documented maximum of stop sequences.
	MaxStops = 4
	// MaxBytes limits the bodies of requests and answers.
	MaxBytes = 4 << 20
)

// Request is a request for one answer of a model.
type Request struct {
	Model string
	// System is the optional system prompt.
	System string
	// Either Prompt, a single user message, or Messages is set. The last of Messages has the
	// role user.
	Prompt   string
	Messages []Message
	// MaxTokens limits the answer, in tokens; 0 means [DefaultMaxTokens].
	MaxTokens int
	// Temperature is a decimal: 0 to 2 for OpenAI, 0 to 1 for Anthropic. "" means the provider's
	// default.
	Temperature string
	// JSON requests one JSON object as the whole answer.
	JSON bool
	// Stop lists at most [MaxStops] texts that end the answer.
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

// The reasons why an answer ended, the same for all providers. Other reasons keep the provider's
// name.
const (
	StopEnd       = "end"
	StopMaxTokens = "max_tokens"
	// StopSequence occurs only with Anthropic; OpenAI reports StopEnd instead.
	StopSequence = "stop_sequence"
	StopRefusal  = "refusal"
)

// Answer is the answer of a model.
type Answer struct {
	Text string
	// JSON is the answer as an object with exact numbers, if it was requested.
	JSON         gatehouse.JSON
	StopReason   string
	InputTokens  int64
	OutputTokens int64
	// RequestID is the provider's id of the request, "" for none.
	RequestID string
	// Model is the model that answered, as the provider names it.
	Model string
}

// jsonInstruction is added to the system prompt if JSON is requested. OpenAI refuses
// response_format json_object unless a message contains "JSON"; Anthropic has no such format and
// follows this instruction.
const jsonInstruction = "Answer with exactly one JSON object and nothing else: no Markdown, no explanation."

// prepare validates a request and fills in the defaults. maxTemperature is the provider's limit.
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
		// Abs writes no exponent, sign or leading zeros, so this is a JSON number.
		r.Temperature = string(t.Abs())
	}
	if r.JSON {
		r.System = strings.TrimSpace(r.System + "\n\n" + jsonInstruction)
	}
	return r, nil
}

// temperature returns the number as JSON, nil for none.
func (r Request) temperature() json.RawMessage {
	if r.Temperature == "" {
		return nil
	}
	return json.RawMessage(r.Temperature)
}

// finish parses the JSON object of an answer, if one was requested.
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
		// Another attempt may return JSON.
		return fail(CodeNotJSON, "the answer is not one JSON object", true)
	}
	a.JSON = j
	return a, nil
}

// unfence removes a Markdown fence around the whole text. Models add one to JSON although the
// instruction forbids it.
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
