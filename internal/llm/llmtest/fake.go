package llmtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// The protocols.
const (
	OpenAI    = "openai"
	Anthropic = "anthropic"
)

// maxBody bounds a request, in bytes.
const maxBody = 32 << 20

// Call is a request that was well-formed.
type Call struct {
	Protocol string
	Model    string
	// System is what the system messages say.
	System   string
	Messages []Message
	// MaxTokens is 0 where a request of OpenAI's sets none.
	MaxTokens int
	// Temperature is the number as it was written, "" for none.
	Temperature string
	Stop        []string
	// JSON says that the request has the response_format json_object.
	JSON bool
	// Body is the request as it came.
	Body []byte
	// HTTP is the request; its body has been read.
	HTTP *http.Request
}

// Message is one turn of a conversation.
type Message struct{ Role, Text string }

// Last is the text of the last message.
func (c Call) Last() string { return c.Messages[len(c.Messages)-1].Text }

// Reply says what to answer.
type Reply struct {
	Text string
	// Stop is why the answer ended, as the protocol has it; "stop" or
	// "end_turn" by default.
	Stop string
	// Refusal is a text in place of an answer; OpenAI only.
	Refusal string
	// The numbers of tokens. If Input or Output is 0, the length of the texts determines it. For
	// OpenAI, Input includes CacheWrite and CacheRead; for Anthropic, it does not.
	Input, Output         int
	CacheWrite, CacheRead int
	// Status other than 0 and 200 answers an error of Kind with Message;
	// Code is OpenAI's code, or Anthropic's details.error_code.
	Status              int
	Kind, Message, Code string
	// Header is added to the answer.
	Header http.Header
	// Raw, when not nil, is the whole body instead.
	Raw []byte
}

// Fake is the provider; it is an http.Handler for both protocols.
type Fake struct {
	key    string
	answer func(Call) Reply

	mu    sync.Mutex
	calls []Call
}

// New makes a provider that requires key and replies what answer returns. It calls answer
// concurrently, and answer may block.
func New(key string, answer func(Call) Reply) *Fake { return &Fake{key: key, answer: answer} }

// Calls returns the requests that were well-formed, in the order in which they
// came.
func (f *Fake) Calls() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Call(nil), f.calls...)
}

// refusal is an answer with an error, such as that to a request that the protocol does not allow.
type refusal struct {
	status              int
	kind, message, code string
}

func invalid(format string, args ...any) *refusal {
	return &refusal{status: http.StatusBadRequest, kind: "invalid_request_error", message: fmt.Sprintf(format, args...)}
}

// protocol has the functions in which the two protocols differ.
type protocol interface {
	// authenticate checks the headers that are the protocol's own.
	authenticate(h http.Header, key string) *refusal
	parse(body []byte) (Call, *refusal)
	reply(id string, c Call, r Reply) any
	failure(id string, r *refusal) any
	requestIDHeader() string
}

// ServeHTTP answers one request.
func (f *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Server", "gatehouse-fake-models")
	var p protocol
	switch r.URL.Path {
	case "/v1/chat/completions":
		p = openAI{}
	case "/v1/messages":
		p = anthropic{}
	case "/":
		_, _ = io.WriteString(w, "This is a fake provider of models, for tests and examples. No model is behind it.\n")
		return
	default:
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return // the client is gone
	}
	call, bad := check(p, r, body, f.key)
	f.mu.Lock()
	if bad == nil {
		f.calls = append(f.calls, call)
	}
	id := "req_fake_" + strconv.Itoa(len(f.calls))
	f.mu.Unlock()
	w.Header().Set(p.requestIDHeader(), id)
	if bad != nil {
		write(w, bad.status, p.failure(id, bad))
		return
	}
	reply := f.answer(call)
	for name, values := range reply.Header {
		w.Header()[http.CanonicalHeaderKey(name)] = values
	}
	status := max(reply.Status, http.StatusOK)
	switch {
	case reply.Raw != nil:
		if w.Header().Get("Content-Type") == "" {
			w.Header().Set("Content-Type", "application/json")
		}
		w.WriteHeader(status)
		_, _ = w.Write(reply.Raw)
	case status != http.StatusOK:
		write(w, status, p.failure(id, &refusal{status, reply.Kind, reply.Message, reply.Code}))
	default:
		write(w, status, p.reply(id, call, reply))
	}
}

func check(p protocol, r *http.Request, body []byte, key string) (Call, *refusal) {
	if r.Method != http.MethodPost {
		return Call{},
			&refusal{status: http.StatusMethodNotAllowed, kind: "invalid_request_error", message: "Method Not Allowed"}
	}
	if bad := p.authenticate(r.Header, key); bad != nil {
		return Call{}, bad
	}
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); kind != "application/json" {
		return Call{}, invalid("Content-Type must be application/json")
	}
	if len(body) > maxBody {
		return Call{},
			&refusal{status: http.StatusRequestEntityTooLarge, kind: "request_too_large",
				message: "Request exceeds the maximum allowed number of bytes."}
	}
	call, bad := p.parse(body)
	call.Body, call.HTTP = body, r
	return call, bad
}

func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// tokens returns given or, if it is 0, one token for every four bytes of each text, rounded up.
func tokens(given int, texts ...string) int {
	if given > 0 {
		return given
	}
	n := 0
	for _, t := range texts {
		n += (len(t) + 3) / 4
	}
	return n
}

// input returns the system prompt and the texts of all messages.
func (c Call) input() []string {
	texts := []string{c.System}
	for _, m := range c.Messages {
		texts = append(texts, m.Text)
	}
	return texts
}
