package llm_test

import (
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/llm"
	"github.com/gatehouse-dev/gatehouse/internal/llm/llmtest"
)

func TestCost(t *testing.T) {
	t.Parallel()
	mini := llm.Price{InputPerMillion: "0.15", OutputPerMillion: "0.60", Currency: "USD"}
	for _, tc := range []struct {
		price   llm.Price
		in, out int64
		want    gatehouse.Decimal
	}{
		{mini, 0, 0, "0"},
		{mini, 1, 0, "0.00000015"},
		{mini, 1000, 100, "0.00021"},
		{mini, 1_000_000, 1_000_000, "0.75"},
		// 1e-10, rounded up
		{llm.Price{InputPerMillion: "0.0001", OutputPerMillion: "0", Currency: "USD"}, 1, 0, "0.000000001"},
		{llm.Price{InputPerMillion: "1e3", OutputPerMillion: "0", Currency: "EUR"}, 1000, 0, "1"},
		{llm.Price{InputPerMillion: "30.00", OutputPerMillion: "60.00", Currency: "EUR"}, 1 << 40, 1 << 40, "98956046.49984"},
		{llm.Price{}, 5, 5, "0"},
	} {
		if got := tc.price.Cost(tc.in, tc.out); got != tc.want {
			t.Errorf("%v of %d and %d = %s, want %s", tc.price, tc.in, tc.out, got, tc.want)
		}
	}
}

// TestCostIsExactRoundedUp compares with fractions: a cost is the least
// multiple of 1e-9 that is not below the exact one.
func TestCostIsExactRoundedUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		price := func(label string) gatehouse.Decimal {
			return gatehouse.Decimal(rapid.StringMatching(`[0-9]{1,4}(\.[0-9]{1,8})?`).Draw(t, label))
		}
		p := llm.Price{InputPerMillion: price("in"), OutputPerMillion: price("out"), Currency: "USD"}
		in, out := rapid.Int64Range(0, 1<<40).Draw(t, "in tokens"), rapid.Int64Range(0, 1<<40).Draw(t, "out tokens")
		rat := func(d gatehouse.Decimal) *big.Rat { r, _ := new(big.Rat).SetString(string(d)); return r }
		exact := new(big.Rat).Add(
			new(big.Rat).Mul(rat(p.InputPerMillion), big.NewRat(in, 1_000_000)),
			new(big.Rat).Mul(rat(p.OutputPerMillion), big.NewRat(out, 1_000_000)))
		got := rat(p.Cost(in, out))
		over := new(big.Rat).Sub(got, exact)
		if over.Sign() < 0 || over.Cmp(big.NewRat(1, 1_000_000_000)) >= 0 ||
			!new(big.Rat).Mul(got, big.NewRat(1_000_000_000, 1)).IsInt() {
			t.Fatalf("%s for %s", got.FloatString(12), exact.FloatString(12))
		}
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	good := llm.Config{Type: llm.TypeOpenAI, BaseURL: "https://api.openai.com/v1", Key: key}
	if _, err := llm.New(good); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change func(*llm.Config)
		want   string
	}{
		"another type":     {func(c *llm.Config) { c.Type = "gemini" }, "type must be"},
		"no address":       {func(c *llm.Config) { c.BaseURL = "" }, "base_url"},
		"a user":           {func(c *llm.Config) { c.BaseURL = "https://u:p@x.test" }, "base_url"},
		"a query":          {func(c *llm.Config) { c.BaseURL = "https://x.test?a=b" }, "base_url"},
		"plain http":       {func(c *llm.Config) { c.BaseURL = "http://x.test" }, "in the clear"},
		"a key of lines":   {func(c *llm.Config) { c.Key = "a\nb: c" }, "the key"},
		"negative timeout": {func(c *llm.Config) { c.Timeout = -1 }, "timeout"},
		"unknown field":    {func(c *llm.Config) { c.MaxTokensField = "limit" }, "max_tokens_field"},
		"field of another": {func(c *llm.Config) { c.Type, c.MaxTokensField = llm.TypeAnthropic, llm.FieldMaxTokens },
			"max_tokens_field"},
		"negative price": {func(c *llm.Config) {
			c.Prices = map[string]llm.Price{"m": {InputPerMillion: "-1", OutputPerMillion: "0", Currency: "USD"}}
		}, "price"},
		"price missing": {
			func(c *llm.Config) { c.Prices = map[string]llm.Price{"m": {InputPerMillion: "1", Currency: "USD"}} }, "price"},
		"no currency": {func(c *llm.Config) {
			c.Prices = map[string]llm.Price{"m": {InputPerMillion: "1", OutputPerMillion: "1", Currency: "$"}}
		}, "currency"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := good
			tc.change(&c)
			_, err := llm.New(c)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), c.Key) && c.Key != "" {
				t.Errorf("err = %v, want %q in it", err, tc.want)
			}
		})
	}
}

// registry has the fake under two names, for two tenants.
func registry(t *testing.T, w *world) *llm.Registry {
	t.Helper()
	open, claude := w.configs()[llmtest.OpenAI], w.configs()[llmtest.Anthropic]
	open.Prices = map[string]llm.Price{"mini": {InputPerMillion: "0.15", OutputPerMillion: "0.60", Currency: "USD"}}
	claude.Tenants = []string{"acme"}
	r, err := llm.NewRegistry(map[string]llm.Config{"open": open, "claude": claude})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestLookup(t *testing.T) {
	t.Parallel()
	r := registry(t, newWorld(t, say("so")))
	for _, tc := range []struct {
		tenant, name string
		there        bool
	}{
		{"default", "open", true},
		{"acme", "claude", true},
		{"acme", "open", false},
		{"default", "claude", false},
		{"default", "none", false},
	} {
		_, err := r.Lookup(tc.tenant, tc.name)
		if (err == nil) != tc.there || err != nil && gatehouse.CodeOf(err) != gatehouse.CodeNotFound {
			t.Errorf("%s %s: %v", tc.tenant, tc.name, err)
		}
	}
	if diff := cmp.Diff([]string{"claude"}, r.Names("acme")); diff != "" {
		t.Error(diff)
	}
	if _, err := llm.NewRegistry(map[string]llm.Config{"a b": {}}); err == nil {
		t.Error("a bad name was accepted")
	}
}

func TestAsk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c llmtest.Call) llmtest.Reply {
		if strings.Contains(c.Last(), "slow down") {
			return llmtest.Reply{Status: 429, Header: after("5")}
		}
		return llmtest.Reply{Text: c.Last(), Input: 1000, Output: 100}
	})
	r := registry(t, w)

	answer, usage, failure := r.Ask(t.Context(), "default", "open",
		`{"json":true,"max_tokens":200,"model":"mini","prompt":"{\"confidence\": 0.90}","system":"Classify.",`+
			`"temperature":0.10}`)
	if failure != nil {
		t.Fatal(failure)
	}
	want := gatehouse.JSON(
		`{"input_tokens":1000,"json":{"confidence":0.90},"model":"mini","output_tokens":100,"request_id":"req_fake_1",` +
			`"stop_reason":"end","text":"{\"confidence\": 0.90}"}`)
	if diff := cmp.Diff(want, answer); diff != "" {
		t.Error(diff)
	}
	wantUsage := &gatehouse.ModelUsage{Provider: "open", Model: "mini", InputTokens: 1000, OutputTokens: 100,
		Cost: "0.00021", Currency: "USD"}
	if diff := cmp.Diff(wantUsage, usage); diff != "" {
		t.Error(diff)
	}
	if got := w.fake.Calls()[0]; got.Temperature != "0.10" || got.MaxTokens != 200 {
		t.Errorf("call = %+v", got)
	}

	// An unusable answer costs the same.
	_, usage, failure = r.Ask(t.Context(), "default", "open", `{"json":true,"model":"mini","prompt":"no JSON"}`)
	if diff := cmp.Diff(wantUsage, usage); diff != "" || failure == nil || failure.Code != llm.CodeNotJSON ||
		!failure.Retryable {
		t.Errorf("%+v, %s", failure, diff)
	}
	// A model without a price.
	_, usage, failure = r.Ask(t.Context(), "acme", "claude", `{"messages":[{"role":"user","text":"x"}],"model":"large"}`)
	if failure != nil || usage == nil || usage.Cost != "0" || usage.Currency != "" || usage.InputTokens != 1000 {
		t.Errorf("%+v, %+v", failure, usage)
	}

	for request, want := range map[gatehouse.JSON]gatehouse.StepFailure{
		`{"model":"mini","prompt":"slow down"}`: {Code: llm.CodeRateLimited, Retryable: true,
			RetryAfter: gatehouse.Duration(5e9)},
		`{"model":"mini","prompt":"x","tools":[]}`: {Code: llm.CodeInvalid, Detail: `"tools" is not a member`},
		`{"model":"mini","prompt":5}`: {
			Code: llm.CodeInvalid, Detail: `"prompt" has a value of the wrong kind: number`,
		},
		`{"model":"mini","prompt":"x","max_tokens":1.5}`: {
			Code: llm.CodeInvalid, Detail: `"max_tokens" has a value of the wrong kind`,
		},
		`{"model":"mini","prompt":"x","temperature":"hi"}`: {
			Code: llm.CodeInvalid, Detail: `"temperature" must be a number`,
		},
		`{"model":"mini","messages":[{"role":"user","texts":"x"}]}`: {
			Code: llm.CodeInvalid, Detail: `"messages" must be a list of objects of role and text`,
		},
		`[]`: {Code: llm.CodeInvalid, Detail: "the request must be an object of model"},
		"":   {Code: llm.CodeInvalid, Detail: "the request must be an object of model"},
	} {
		_, usage, got := r.Ask(t.Context(), "default", "open", request)
		if got == nil || usage != nil || got.Code != want.Code || got.Retryable != want.Retryable ||
			got.RetryAfter != want.RetryAfter || got.Detail == "" || !strings.HasPrefix(got.Detail, want.Detail) {
			t.Errorf("%s: %+v, usage %v", request, got, usage)
		}
	}
	if _, _, got := r.Ask(t.Context(), "acme", "open", `{"model":"mini","prompt":"x"}`); got == nil ||
		got.Code != "not_found" || got.Retryable {
		t.Errorf("another tenant's: %+v", got)
	}
}

// TestMostIsNeverBelowTheCost asks a fake that counts a token for each byte,
// and answers as much as it may.
func TestMostIsNeverBelowTheCost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c llmtest.Call) llmtest.Reply {
		in := len(c.System)
		for _, m := range c.Messages {
			in += len(m.Text)
		}
		return llmtest.Reply{Text: "so", Input: in, Output: c.MaxTokens}
	})
	r := registry(t, w)
	for _, request := range []gatehouse.JSON{
		`{"model":"mini","prompt":"x"}`,
		gatehouse.ObjectJSON(gatehouse.Member{Name: "json", Value: "true"}, gatehouse.Member{Name: "max_tokens", Value: "9"},
			gatehouse.Member{Name: "model", Value: `"mini"`},
			gatehouse.Member{Name: "prompt", Value: gatehouse.StringJSON(strings.Repeat("классификация", 50))}),
		`{"messages":[{"role":"user","text":"a"},{"role":"assistant","text":"b"},{"role":"user","text":"c"}],` +
			`"model":"mini","system":"s"}`,
	} {
		most, currency, ok := r.MaxCost("default", "open", request)
		_, usage, _ := r.Ask(t.Context(), "default", "open", request)
		if !ok || currency != "USD" || usage == nil || most.Cmp(usage.Cost) < 0 {
			t.Errorf("%s: at most %s %s, %v; it cost %+v", request, most, currency, ok, usage)
		}
	}
	for _, request := range []gatehouse.JSON{`{"model":"large","prompt":"x"}`, `{"model":"mini"}`, `[]`} {
		if _, _, ok := r.MaxCost("default", "open", request); ok {
			t.Errorf("%s has a bound", request)
		}
	}
	if _, _, ok := r.MaxCost("acme", "open", `{"model":"mini","prompt":"x"}`); ok {
		t.Error("another tenant's has a bound")
	}
}
