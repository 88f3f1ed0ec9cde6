package card

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gatehouse-dev/gatehouse"
)

// Part is a piece of a [Phrase]: the package's own words, or a value of the
// payload. A view isolates values from the surrounding text, since they may run
// from right to left, and makes them visible.
type Part struct {
	Text  string
	Value bool
	// Note marks the package's own words about a value's source.
	Note bool
}

// Phrase is a sentence in parts.
type Phrase []Part

// String returns the phrase as one text, raw: see [Visible].
func (p Phrase) String() string {
	var b strings.Builder
	for _, part := range p {
		b.WriteString(part.Text)
	}
	return b.String()
}

// Within reports whether the part at an index belongs to the preceding note: the
// value after "(the agent says ".
func (p Phrase) Within(i int) bool {
	return i > 0 && p[i].Value && p[i-1].Note && !strings.HasSuffix(p[i-1].Text, ")")
}

func (p *Phrase) say(words ...string) {
	for _, w := range words {
		*p = append(*p, Part{Text: w})
	}
}

func (p *Phrase) note(text string) { *p = append(*p, Part{Text: text, Note: true}) }

func (p *Phrase) value(text string) { *p = append(*p, Part{Text: text, Value: true}) }

// The lengths, in characters, at which a value is cut within a phrase.
const (
	longInSentence = 60
	longInButton   = 24
)

// inline returns a value in its form within a sentence. A text that is not one plain
// word is quoted, so that it cannot pass for words of the sentence.
func inline(v Value, longest int) string {
	switch v.Type {
	case Absent:
		return "nothing"
	case Array:
		elements, _ := v.JSON.Elements()
		return counted(len(elements), "entry")
	case Object:
		members, _ := v.JSON.Fields()
		return counted(len(members), "field")
	case String:
		return token(v.Text, longest)
	}
	return cut(v.Text, longest)
}

// token returns a text in its form within a sentence.
func token(s string, longest int) string {
	if plainWord(s) {
		return cut(s, longest)
	}
	lines := strings.Count(strings.TrimSuffix(s, "\n"), "\n")
	if lines > 0 {
		s, _, _ = strings.Cut(s, "\n")
	}
	shown, hidden := Truncate(s, longest)
	quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(shown) + `"`
	switch {
	case lines > 0:
		quoted += "… (" + counted(lines, "more line") + ")"
	case hidden > 0:
		quoted += more(hidden)
	}
	return quoted
}

func cut(s string, longest int) string {
	shown, hidden := Truncate(s, longest)
	if hidden == 0 {
		return s
	}
	return shown + more(hidden)
}

func more(n int) string { return "… (" + counted(n, "more character") + ")" }

// ordinary are the words of sentences: a value equal to one of them is quoted.
var ordinary = map[string]bool{
	"and": true, "from": true, "to": true, "of": true, "with": true, "nothing": true, "reversible": true, "null": true,
	"true": true, "false": true,
	"in": true, "for": true, "more": true, "through": true, "as": true, "not": true,
}

// plainWord reports whether a text reads as one name or number: letters, digits,
// and inner punctuation as in names.
func plainWord(s string) bool {
	if s == "" || ordinary[strings.ToLower(s)] || !utf8.ValidString(s) {
		return false
	}
	last := rune(0)
	for i, r := range s {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r):
		case r == '-' && i == 0:
		case i > 0 && strings.ContainsRune("-_.:/@+#", r):
		default:
			return false
		}
		last = r
	}
	return unicode.IsLetter(last) || unicode.IsDigit(last)
}

// counted returns a number with its noun: "1 item", "412 items".
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(n) + " " + plural(noun)
}

// thousands writes a count with commas.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func plural(noun string) string {
	n := len(noun)
	switch {
	case strings.HasSuffix(noun, "s") && !strings.HasSuffix(noun, "ss") && !strings.HasSuffix(noun, "us"):
		return noun // already plural, like many table names
	case n > 1 && noun[n-1] == 'y' && !strings.ContainsRune("aeiou", rune(noun[n-2])):
		return noun[:n-1] + "ies"
	case strings.HasSuffix(noun, "s") || strings.HasSuffix(noun, "x") || strings.HasSuffix(noun, "ch") ||
		strings.HasSuffix(noun, "sh"):
		return noun + "es"
	}
	return noun + "s"
}

// words returns a name as words: sales_order becomes "sales order".
func words(name string) string {
	if !plainWord(name) {
		return token(name, longInSentence)
	}
	w := wordsOf(name)
	for i := range w {
		if strings.ToUpper(w[i]) != w[i] {
			w[i] = strings.ToLower(w[i])
		}
	}
	if len(w) == 0 {
		return token(name, longInSentence)
	}
	return cut(strings.Join(w, " "), longInSentence)
}

// capital makes the first letter of a phrase upper case; small does the reverse.
func capital(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	if size == 0 {
		return s
	}
	return string(unicode.ToUpper(r)) + s[size:]
}

func small(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	if size == 0 {
		return s
	}
	return string(unicode.ToLower(r)) + s[size:]
}

// countedRecords returns a number of records with their type: "412 items". The plural of a type that is quoted or
// cut is inside the quotes, or before the cut.
func countedRecords(n int, entityType string) string {
	noun := words(entityType)
	if n == 1 || !strings.HasSuffix(noun, `"`) && !strings.HasSuffix(noun, ")") {
		return counted(n, noun)
	}
	return thousands(n) + " " + words(plural(entityType))
}

// TargetName names a target in a few words: "SKU-1042", "order 1042", "412 items".
func TargetName(t gatehouse.Target) Phrase { return object(t, false) }

// object names the target: "SKU-1042", "order 1042", "412 items".
func object(t gatehouse.Target, withType bool) Phrase {
	var p Phrase
	if n := len(t.EntityRefs); n > 0 {
		p.value(countedRecords(n, t.EntityType))
		return p
	}
	if withType || !strings.ContainsFunc(t.EntityRef, unicode.IsLetter) {
		p.value(words(t.EntityType))
		p.say(" ")
	}
	p.value(token(t.EntityRef, longInSentence))
	return p
}
