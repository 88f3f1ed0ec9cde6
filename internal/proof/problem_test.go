package proof

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// must checks that an answer has the status, the word (code, or status of the
// short form), and the members. It returns the answer.
func must(t testing.TB, res answer, status int, word string, members ...string) answer {
	t.Helper()
	if res.err != nil || res.status != status || res.word() != word {
		t.Fatalf("expected %d %s, got %s", status, word, res)
	}
	for _, m := range members {
		if v, ok := res.body[m]; !ok || v == nil || v == "" {
			t.Fatalf("%d %s lacks the member %s: %s", status, word, m, res)
		}
	}
	if status >= 400 {
		if err := problem(res); err != nil {
			t.Fatal(err)
		}
	}
	return res
}

// internals are words that must not appear in an answer: they would reveal
// internals.
var internals = []string{"sqlite", "SQLITE", "no such table", "goroutine", ".go:", "panic", "gatehouse.db"}

// problem checks the form of an error: RFC 9457 with the contract's members,
// consistent with the HTTP status.
func problem(res answer) error {
	code := gatehouse.Code(res.str("code"))
	if got := res.header.Get("Content-Type"); !strings.HasPrefix(got, "application/problem+json") {
		return fmt.Errorf("an error of the type %s: %s", got, res)
	}
	for _, m := range []string{"type", "title", "detail", "instance", "code"} {
		if res.str(m) == "" {
			return fmt.Errorf("an error lacks %s: %s", m, res)
		}
	}
	if fmt.Sprint(res.body["status"]) != fmt.Sprint(res.status) || gatehouse.StatusOf(code) != res.status {
		return fmt.Errorf("HTTP status %d, body's %v, the table's %d: %s", res.status, res.body["status"],
			gatehouse.StatusOf(code), res)
	}
	if res.body["retryable"] != code.Retryable() {
		return fmt.Errorf("retryable is %v: %s", res.body["retryable"], res)
	}
	if res.header.Get("X-Request-Id") == "" {
		return fmt.Errorf("no X-Request-Id: %s", res)
	}
	if (res.status == 429 || res.status == 503 || code == gatehouse.CodeInProgress) &&
		res.header.Get("Retry-After") == "" {
		return fmt.Errorf("no Retry-After: %s", res)
	}
	for _, word := range internals {
		if strings.Contains(string(res.raw), word) {
			return fmt.Errorf("the answer reveals internals (%s): %s", word, res)
		}
	}
	return nil
}
