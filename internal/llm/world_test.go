package llm_test

import (
	"errors"
	"net/http/httptest"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/llm"
	"github.com/gatehouse-dev/gatehouse/internal/llm/llmtest"
)

// key has what JSON and URLs escape.
const key = `sk-fake-012/345+6"789=`

// world is a fake provider and both clients of it.
type world struct {
	fake      *llmtest.Fake
	server    *httptest.Server
	providers map[string]llm.Provider
}

func newWorld(t *testing.T, answer func(llmtest.Call) llmtest.Reply) *world {
	t.Helper()
	w := &world{fake: llmtest.New(key, answer), providers: map[string]llm.Provider{}}
	w.server = httptest.NewServer(w.fake)
	t.Cleanup(w.server.Close)
	for protocol, config := range w.configs() {
		p, err := llm.New(config)
		if err != nil {
			t.Fatal(err)
		}
		w.providers[protocol] = p
	}
	return w
}

func (w *world) configs() map[string]llm.Config {
	return map[string]llm.Config{
		llmtest.OpenAI:    {Type: llm.TypeOpenAI, BaseURL: w.server.URL + "/v1", Key: key, AllowPrivate: true},
		llmtest.Anthropic: {Type: llm.TypeAnthropic, BaseURL: w.server.URL, Key: key, AllowPrivate: true},
	}
}

// each runs a test with either protocol.
func each(t *testing.T, answer func(llmtest.Call) llmtest.Reply, test func(t *testing.T, w *world, p llm.Provider)) {
	t.Helper()
	for _, protocol := range []string{llmtest.OpenAI, llmtest.Anthropic} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, answer)
			test(t, w, w.providers[protocol])
		})
	}
}

func say(text string) func(llmtest.Call) llmtest.Reply {
	return func(llmtest.Call) llmtest.Reply { return llmtest.Reply{Text: text} }
}

func errorOf(t *testing.T, err error) *llm.Error {
	t.Helper()
	var e *llm.Error
	if !errors.As(err, &e) {
		t.Fatalf("err = %v, want an *llm.Error", err)
	}
	return e
}
