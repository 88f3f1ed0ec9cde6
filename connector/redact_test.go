package connector_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// TestRedactor places a secret in every encoding that targets use, at every
// alignment, and checks that little remains beside the mark.
func TestRedactor(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t/Token+With~Odd?Bytes"
	r := connector.NewRedactor([]string{secret, "abc"})
	var every, unicode strings.Builder
	for i := range len(secret) {
		fmt.Fprintf(&every, "%%%02x", secret[i])
		fmt.Fprintf(&unicode, `\u%04X`, secret[i])
	}
	echoes, beside := map[string]string{
		"hex": hex.EncodeToString([]byte(secret)), "upper hex": strings.ToUpper(hex.EncodeToString([]byte(secret))),
		"hex within": hex.EncodeToString([]byte("Bearer " + secret + "!")),
		"percent":    every.String(), "query": url.QueryEscape(secret),
		"lower query": strings.ToLower(url.QueryEscape(secret[:0])) + strings.NewReplacer("%2F", "%2f", "%2B", "%2b",
			"%3F", "%3f").Replace(url.QueryEscape(secret)),
		"unicode escapes": unicode.String(),
	}, map[string]int{"hex within": len(hex.EncodeToString([]byte("Bearer !")))} // characters that belong to neighbours
	encodings := map[string]*base64.Encoding{
		"std": base64.StdEncoding, "raw std": base64.RawStdEncoding, "url": base64.URLEncoding,
		"raw url": base64.RawURLEncoding,
	}
	for name, e := range encodings {
		for before := range 4 {
			for after := range 4 {
				echo := fmt.Sprintf("%s, %d before, %d after", name, before, after)
				echoes[echo] = e.EncodeToString([]byte(strings.Repeat("x", before) + secret + strings.Repeat("y", after)))
				beside[echo] = len(echoes[echo]) - ((before+len(secret))*4/3 - (before*4+2)/3)
			}
		}
	}
	for name, text := range echoes {
		got := r.Text("<" + text + ">")
		if !strings.Contains(got, "[redacted]") {
			t.Errorf("%s: %s", name, got)
		}
		// At most the characters that share bits with a neighbour may remain.
		if left := len(strings.ReplaceAll(got, "[redacted]", "")); left > len("<>")+beside[name] {
			t.Errorf("%s leaves %s", name, got)
		}
	}
	if got := r.Text("abc is short"); got != "abc is short" {
		t.Errorf("ordinary text: %s", got)
	}
}

// TestRedactorFindsSurrogates: JSON escapes a character beyond U+FFFF as two units.
func TestRedactorFindsSurrogates(t *testing.T) {
	t.Parallel()
	r := connector.NewRedactor([]string{"key🔑value"})
	got := r.Text(`<\u006b\u0065\u0079\ud83d\udd11\u0076\u0061\u006c\u0075\u0065>`)
	if got != "<[redacted]>" {
		t.Errorf("%s", got)
	}
}

// TestRedactorFindsTheBeginningOfASecretWhereATextWasCut cuts a secret and its
// encodings off after each character from the fourth on.
func TestRedactorFindsTheBeginningOfASecretWhereATextWasCut(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-token-of-the-target"
	r := connector.NewRedactor([]string{secret})
	long := strings.Repeat("x ", 128)
	for _, form := range []string{secret, hex.EncodeToString([]byte(secret)),
		base64.StdEncoding.EncodeToString([]byte(secret))} {
		for n := 4; n < len(form); n++ {
			for text, want := range map[string]string{
				long + form[:n]: long + "[redacted]", "no: " + form[:n] + "…": "no: [redacted]…",
			} {
				if got := r.CutText(text); got != want {
					t.Errorf("%q becomes %q, want %q", text, got, want)
				}
			}
		}
	}
	for text, want := range map[string]string{
		"a s3c": "a s3c", long + "s3c": long + "s3c", "a " + secret + ", b": "a [redacted], b", "": "",
	} {
		if got := r.CutText(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// TestRedactorRevealsNoBeginningOfASecret: whether a text ends with the beginning of a secret, or of one of its
// encodings, cannot be read from what Text and JSON return.
func TestRedactorRevealsNoBeginningOfASecret(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-token-of-the-target"
	r := connector.NewRedactor([]string{secret})
	var percent strings.Builder
	for i := range len(secret) {
		fmt.Fprintf(&percent, "%%%02x", secret[i])
	}
	for _, form := range []string{secret, percent.String(), hex.EncodeToString([]byte(secret))} {
		for n := range len(form) - 1 {
			for _, text := range []string{form[:n], form[:n] + "…", strings.Repeat("x ", 128) + form[:n]} {
				j := gatehouse.ObjectJSON(gatehouse.Member{Name: text, Value: gatehouse.StringJSON(text)})
				if got := r.Text(text); got != text {
					t.Errorf("%q becomes %q", text, got)
				}
				if got := r.JSON(j); got != j {
					t.Errorf("%s becomes %s", j, got)
				}
			}
		}
	}
}

// TestRedactorOfValues puts a secret in each place of a JSON value.
func TestRedactorOfValues(t *testing.T) {
	t.Parallel()
	r := connector.NewRedactor([]string{"hunter22", "48151623", "first line 1\nsecond line 2\nabc", "abc"})
	for text, want := range map[gatehouse.JSON]gatehouse.JSON{
		`"hunter22"`:                          `"[redacted]"`,
		`"h\u0075nter22"`:                     `"[redacted]"`,
		`{"a":[{"b":"my hunter22"},1.50]}`:    `{"a":[{"b":"my [redacted]"},1.50]}`,
		`{"hunter22":1,"x":2}`:                `{"[redacted]":1,"x":2}`,
		`{"hunter22":1,"68756e7465723232":2}`: `{"[redacted]":2,"[redacted] (2)":1}`,
		`[148151623.5,4815162]`:               `["1[redacted].5",4815162]`,
		`"only second line 2 of it"`:          `"only [redacted] of it"`,
		`"abc"`:                               `"abc"`,
		`{"broken":"hunter22`:                 `"{\"broken\":\"[redacted]"`,
		`{"broken":`:                          `{"broken":`,
		``:                                    ``,
	} {
		if got := r.JSON(text); got != want {
			t.Errorf("%s becomes %s, want %s", text, got, want)
		}
		if got := r.FindsJSON(text); got != (want != text) {
			t.Errorf("a secret in %s: %v", text, got)
		}
	}
	if connector.NewRedactor([]string{"", "abc"}) != nil {
		t.Error("a redactor of nothing that is looked for")
	}
}
