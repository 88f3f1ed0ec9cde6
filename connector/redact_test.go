package connector_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/connector"
)

// TestRedactor has a secret in the encodings that targets echo it in, at every
// alignment, and decodes what is left of it.
func TestRedactor(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t/Token+With~Odd?Bytes"
	r := connector.NewRedactor([]string{secret, "abc"})
	var every, unicode strings.Builder
	for i := range len(secret) {
		fmt.Fprintf(&every, "%%%02x", secret[i])
		fmt.Fprintf(&unicode, `\u%04X`, secret[i])
	}
	echoes := map[string]string{
		"hex": hex.EncodeToString([]byte(secret)), "upper hex": strings.ToUpper(hex.EncodeToString([]byte(secret))),
		"hex within": hex.EncodeToString([]byte("Bearer " + secret + "!")),
		"percent":    every.String(), "query": url.QueryEscape(secret), "lower query": strings.ToLower(url.QueryEscape(secret[:0])) + strings.NewReplacer("%2F", "%2f", "%2B", "%2b", "%3F", "%3f").Replace(url.QueryEscape(secret)),
		"unicode escapes": unicode.String(),
	}
	encodings := map[string]*base64.Encoding{
		"std": base64.StdEncoding, "raw std": base64.RawStdEncoding, "url": base64.URLEncoding, "raw url": base64.RawURLEncoding,
	}
	for name, e := range encodings {
		for before := range 4 {
			for after := range 4 {
				echoes[fmt.Sprintf("%s, %d before, %d after", name, before, after)] = e.EncodeToString([]byte(strings.Repeat("x", before) + secret + strings.Repeat("y", after)))
			}
		}
	}
	for name, text := range echoes {
		got := r.Replace("<" + text + ">")
		if !strings.Contains(got, "[redacted]") {
			t.Errorf("%s: %s", name, got)
		}
		// At most the characters that share bits with a neighbour may be left.
		if left := len(strings.ReplaceAll(got, "[redacted]", "")); left > len("<>")+2*len("Bearer ")+len("==xxxyyy") {
			t.Errorf("%s leaves %s", name, got)
		}
	}
	if got := r.Replace("abc is short"); got != "abc is short" {
		t.Errorf("ordinary text: %s", got)
	}
}
