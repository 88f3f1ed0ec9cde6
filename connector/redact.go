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
	"unicode/utf16"

	"github.com/gatehouse-dev/gatehouse"
)

const (
	// leastSecret is the shortest secret, in bytes, that is searched for: a shorter
	// one would damage ordinary text.
	leastSecret = 4
	// leastPiece is the shortest piece of Base64, in characters, that is searched
	// for.
	leastPiece = 8
	// leastLine is the shortest line of a longer secret, in bytes, that is searched
	// for separately.
	leastLine = 8
)

// Redacted replaces a secret.
const Redacted = "[redacted]"

// Ellipsis ends a target's text that a connector has cut off. Only there does the
// dispatcher also remove the beginning of a secret.
const Ellipsis = "…"

// Redactor removes secrets from texts. It finds a whole secret as written,
// and as targets echo it: escaped for JSON, for a page or for a URL, with every
// byte percent-encoded, in hexadecimal, and in Base64 (standard and URL-safe,
// padded or not), alone or within a longer text that was encoded as a whole. Only
// [Redactor.CutText] also finds the beginning of a secret. A Redactor does not
// search for secrets of fewer than four bytes, which would damage ordinary text. A
// nil Redactor finds nothing.
type Redactor struct {
	replacer *strings.Replacer
	spelled  []string
}

// NewRedactor makes a redactor of secrets. It also searches for the single lines,
// of eight bytes or more, of a multi-line secret.
func NewRedactor(secrets []string) *Redactor {
	var all []string
	for _, s := range secrets {
		if len(s) >= leastSecret {
			all = append(all, spellings(s)...)
		}
		for line := range strings.Lines(s) {
			if line = strings.TrimSpace(line); line != s && len(line) >= leastLine {
				all = append(all, spellings(line)...)
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.Sort(all)
	all = slices.Compact(all)
	// Longest first, so that no secret hides within another.
	slices.SortStableFunc(all, func(x, y string) int { return len(y) - len(x) })
	pairs := make([]string, 0, 2*len(all))
	for _, s := range all {
		pairs = append(pairs, s, Redacted)
	}
	return &Redactor{strings.NewReplacer(pairs...), all}
}

// Text returns a text without the secrets. Only whole secrets are removed: a caller
// who supplied the text learns nothing about a secret of which the caller guesses a
// part.
func (r *Redactor) Text(text string) string {
	if r == nil || text == "" {
		return text
	}
	return r.replacer.Replace(text)
}

// CutText is Text for a target's text that was cut off, with or without an ellipsis.
// It also removes the first characters of a secret, from four on, from the end. Use
// it for no text that a caller supplied: the caller could guess a secret character
// by character.
func (r *Redactor) CutText(text string) string {
	if r == nil || text == "" {
		return text
	}
	text = r.replacer.Replace(text)
	body, _ := strings.CutSuffix(text, Ellipsis)
	most := 0
	for _, s := range r.spelled {
		for n := min(len(s)-1, len(body)); n >= leastSecret && n > most; n-- {
			if strings.HasSuffix(body, s[:n]) {
				most = n
			}
		}
	}
	if most == 0 {
		return text
	}
	return body[:len(body)-most] + Redacted + text[len(body):]
}

// JSON is Text for each text of a value: strings, names and numbers, at any depth.
func (r *Redactor) JSON(j gatehouse.JSON) gatehouse.JSON {
	if r == nil || j == "" {
		return j
	}
	value, err := gatehouse.Canonicalize([]byte(j))
	if err != nil { // not JSON: treat it as text
		if text := r.Text(string(j)); text != string(j) {
			return gatehouse.StringJSON(text)
		}
		return j
	}
	return r.value(value)
}

// Finds reports whether one of the texts holds a secret.
func (r *Redactor) Finds(texts ...string) bool {
	return r != nil && slices.ContainsFunc(texts, func(s string) bool { return r.replacer.Replace(s) != s })
}

// FindsJSON is Finds for a value.
func (r *Redactor) FindsJSON(j gatehouse.JSON) bool {
	if r == nil || j == "" {
		return false
	}
	value, err := gatehouse.Canonicalize([]byte(j))
	if err != nil {
		return r.Finds(string(j))
	}
	return r.value(value) != value
}

// value is JSON for a canonical value.
func (r *Redactor) value(j gatehouse.JSON) gatehouse.JSON {
	if text, ok := j.Text(); ok {
		if clean := r.Text(text); clean != text {
			return gatehouse.StringJSON(clean)
		}
		return j
	}
	if members, err := j.Fields(); err == nil {
		taken := make(map[string]bool, len(members))
		for i, m := range members {
			name := r.Text(m.Name)
			for n := 2; taken[name]; n++ {
				name = fmt.Sprintf("%s (%d)", r.Text(m.Name), n)
			}
			taken[name] = true
			members[i] = gatehouse.Member{Name: name, Value: r.value(m.Value)}
		}
		return gatehouse.ObjectJSON(members...)
	}
	if elements, err := j.Elements(); err == nil {
		for i, e := range elements {
			elements[i] = r.value(e)
		}
		return gatehouse.ArrayJSON(elements...)
	}
	if text := string(j); r.Finds(text) { // a number
		return gatehouse.StringJSON(r.Text(text))
	}
	return j
}

func spellings(s string) []string {
	list := []string{s, url.QueryEscape(s), url.PathEscape(s), lowerEscapes(url.QueryEscape(s)),
		lowerEscapes(url.PathEscape(s))}
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
	for _, unit := range utf16.Encode([]rune(s)) {
		fmt.Fprintf(&unicode, `\u%04x`, unit)
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
	for _, s := range list { // each spelling, escaped once more: within a JSON text that is itself shown as text
		q := string(gatehouse.StringJSON(s))
		list = append(list, q[1:len(q)-1])
	}
	return list
}

// within returns the Base64 of a secret that begins shift bytes after a multiple of
// three within a longer text: only the characters that the secret's bytes
// determine.
func within(encoding *base64.Encoding, s string, shift int) string {
	text := encoding.EncodeToString(append(make([]byte, shift), s...))
	first := []int{0, 2, 3}[shift]
	end := (shift + len(s)) * 8 / 6
	if first >= end {
		return ""
	}
	return text[first:end]
}

// lowerEscapes converts the digits of percent-escapes to lower case.
func lowerEscapes(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:], strings.ToLower(s[i+1:i+3]))
		}
	}
	return string(b)
}
