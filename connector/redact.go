package connector

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

const (
	// leastSecret is the length of the shortest secret that is looked for, in
	// bytes: a shorter one would take ordinary text apart.
	leastSecret = 4
	// leastPiece is the length of the shortest piece of Base64 that is looked for,
	// in characters.
	leastPiece = 8
)

// redacted stands in the place of a secret.
const redacted = "[redacted]"

// Redactor takes secrets out of what a target says. It finds a secret as it
// stands, and as targets echo one: escaped for JSON, for a page or for a URL, with
// every byte percent-encoded, in hexadecimal, and in Base64 (standard and
// URL-safe, padded or not), alone or within a longer text that was encoded as a
// whole. Secrets of fewer than four bytes are not looked for.
type Redactor struct{ replacer *strings.Replacer }

// NewRedactor makes a redactor of secrets.
func NewRedactor(secrets []string) *Redactor {
	var all []string
	for _, s := range secrets {
		if len(s) >= leastSecret {
			all = append(all, spellings(s)...)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	// Longest first, so that none hides in another.
	slices.SortStableFunc(all, func(x, y string) int { return len(y) - len(x) })
	pairs := make([]string, 0, 2*len(all))
	for _, s := range all {
		pairs = append(pairs, s, redacted)
	}
	return &Redactor{strings.NewReplacer(pairs...)}
}

// Replace returns a text without the secrets.
func (r *Redactor) Replace(text string) string { return r.replacer.Replace(text) }

// Marked reports whether something was taken out of a text.
func (r *Redactor) Marked(text string) bool { return strings.Contains(text, redacted) }

// JSON is Replace for a value, as JSON again.
func (r *Redactor) JSON(j gatehouse.JSON) gatehouse.JSON {
	text := r.Replace(string(j))
	if text == string(j) {
		return j
	}
	value, err := gatehouse.Canonicalize([]byte(text))
	if err != nil { // a secret that stood as a bare number
		return gatehouse.StringJSON(text)
	}
	return value
}

func spellings(s string) []string {
	list := []string{s, url.QueryEscape(s), url.PathEscape(s), lowerEscapes(url.QueryEscape(s)), lowerEscapes(url.PathEscape(s))}
	quoted := []string{string(gatehouse.StringJSON(s))}
	if b, err := json.Marshal(s); err == nil { // <, > and & as \u003c, …
		quoted = append(quoted, string(b))
	}
	for _, q := range quoted {
		q = q[1 : len(q)-1]
		list = append(list, q, strings.ReplaceAll(q, "/", `\/`))
	}
	page := html.EscapeString(s)
	list = append(list, page, strings.NewReplacer("&#34;", "&quot;", "&#39;", "&#039;").Replace(page))

	lower := hex.EncodeToString([]byte(s))
	var percent, unicode strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&percent, "%%%02x", s[i])
	}
	for _, r := range s {
		fmt.Fprintf(&unicode, `\u%04x`, r)
	}
	for _, hexadecimal := range []string{lower, percent.String()} {
		list = append(list, hexadecimal, strings.ToUpper(hexadecimal))
	}
	list = append(list, unicode.String(), `\u`+strings.ReplaceAll(strings.ToUpper(unicode.String()[2:]), `\U`, `\u`))
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		whole := encoding.EncodeToString([]byte(s))
		list = append(list, whole)
		if rest := len(whole) % 4; rest > 0 {
			list = append(list, whole+strings.Repeat("=", 4-rest))
		}
		for shift := range 3 {
			if piece := within(encoding, s, shift); len(piece) >= leastPiece {
				list = append(list, piece)
			}
		}
	}
	return list
}

// within is what Base64 makes of a secret that stands shift bytes after a multiple
// of three within a longer text: the characters that its bytes alone decide.
func within(encoding *base64.Encoding, s string, shift int) string {
	text := encoding.EncodeToString(append(make([]byte, shift), s...))
	first := []int{0, 2, 3}[shift]
	end := (shift + len(s)) * 8 / 6
	if first >= end {
		return ""
	}
	return text[first:end]
}

// lowerEscapes writes the digits of percent-escapes in lower case.
func lowerEscapes(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:], strings.ToLower(s[i+1:i+3]))
		}
	}
	return string(b)
}
