package shared

import (
	"encoding/json"
	"strings"
	"time"
	"unicode"

	"github.com/gatehouse-dev/gatehouse"
)

// SearchColumns are the columns of a Searchable, of an action a and its proposal
// p; the title, from p.extra, comes after them. Long texts are cut.
const SearchColumns = `a.seq, a.tenant, a.id, a.status, coalesce(a.expires_at, 0), a.risk, a.action_type,
coalesce(a.idempotency_key, ''), p.entity_type, p.entity_ref, p.proposed_by, p.on_behalf_of, coalesce(p.amount, ''),
coalesce(p.currency, ''), substr(p.rationale, 1, 8192), substr(p.entity_refs, 1, 8192),
substr(p.proposed_change, 1, 8192)`

// Searchable is an action as a search sees it.
type Searchable struct {
	Seq    int64
	Tenant string
	Place
	// status is the stored status. expires is the time of expiry in microseconds since 1970, 0 for none.
	status  gatehouse.Status
	expires int64
	// texts are plain. documents are JSON, whose texts and numbers are searched.
	texts, documents []string
}

// Place is the position of an action in a list.
type Place struct {
	ID           string
	Bucket, Risk int
	// Large says that so many rows have the same bucket and risk that the next page begins with a scan by age;
	// see walkCells of the package postgres.
	Large bool
}

// ScanSearchable reads SearchColumns and the title from a row.
func ScanSearchable(text func() string, number func() int64) *Searchable {
	s := &Searchable{Seq: number(), Tenant: text(), Place: Place{ID: text()}}
	s.status, s.expires, s.Risk = gatehouse.Status(text()), number(), int(number())
	s.texts = append(make([]string, 0, 11), s.ID)
	for range 9 {
		s.texts = append(s.texts, text())
	}
	s.documents = []string{text(), text()}
	s.texts = append(s.texts, text())
	return s
}

// text returns all words in order. Each begins with a space; a | separates two texts.
func (s *Searchable) text() string {
	var b strings.Builder
	for _, t := range s.texts {
		writeWords(&b, t)
	}
	for _, t := range s.documents {
		writeValues(&b, t)
	}
	return b.String()
}

func writeWords(b *strings.Builder, text string) {
	b.WriteString(" |")
	inside := false
	for _, r := range text {
		var alone bool
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
		case r >= 'A' && r <= 'Z':
			r += 'a' - 'A'
		case r < unicode.MaxASCII || !unicode.In(r, unicode.L, unicode.N, unicode.M):
			inside = false
			continue
		default:
			r = unicode.ToLower(r)
			alone = unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
		}
		if !inside || alone {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
		inside = !alone
	}
}

// writeValues writes the strings and numbers of a JSON text, which may be cut,
// without the names of its members.
func writeValues(b *strings.Builder, text string) {
	for text != "" {
		n := strings.IndexAny(text, `"-0123456789`)
		if n < 0 {
			return
		}
		text = text[n:]
		if text[0] != '"' {
			n = len(text) - len(strings.TrimLeft(text, "+-.0123456789eE"))
			writeWords(b, text[:n])
			text = text[n:]
			continue
		}
		for n = 1; n < len(text) && text[n] != '"'; n++ {
			if text[n] == '\\' {
				n++
			}
		}
		if n >= len(text) {
			return // the text was cut here
		}
		literal := text[:n+1]
		if text = strings.TrimLeft(text[n+1:], " \t\r\n"); strings.HasPrefix(text, ":") {
			continue
		}
		plain := literal[1:n]
		if strings.Contains(plain, `\`) && json.Unmarshal([]byte(literal), &plain) != nil {
			return
		}
		writeWords(b, plain)
	}
}

// Search is a parsed query: the words of each part of the query, in the form of Searchable.text.
type Search []string

// ParseSearch parses a query. A query without letters and digits finds nothing.
func ParseSearch(query string) (s Search) {
	for _, field := range strings.Fields(query) {
		var b strings.Builder
		writeWords(&b, field)
		if part := strings.TrimPrefix(b.String(), " |"); part != "" {
			s = append(s, part)
		}
	}
	return s
}

// Match reports whether a query finds an action.
func (s Search) Match(a *Searchable) bool {
	text := a.text()
	for _, part := range s {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return len(s) > 0
}

// maxWord bounds the bytes of a word in the index; a longer word is cut.
const maxWord = 48

func cutWord(w string) string {
	if len(w) <= maxWord {
		return w
	}
	return strings.ToValidUTF8(w[:maxWord], "")
}

// wordRange holds the words w of the index with from <= w < to.
type wordRange struct{ from, to string }

// rarity is greater for a word that fewer actions are likely to have.
func (r wordRange) rarity() int {
	if strings.ContainsAny(r.from, "0123456789") {
		return maxWord + len(r.from)
	}
	return len(r.from)
}

// ranges returns ranges of words: a matching action has a word in each. The last
// word of a part is a prefix.
func (s Search) ranges() (list []wordRange) {
	for _, part := range s {
		words := strings.Fields(part)
		for i, w := range words {
			end := "\x01"
			if i == len(words)-1 || len(w) > maxWord {
				end = "\U0010FFFF"
			}
			w = cutWord(w)
			list = append(list, wordRange{w, w + end})
		}
	}
	return list
}

// BucketEnds are the ends of the buckets into which the order by urgency puts actions by their time of
// expiry. They are relative to the time of the first page. The last bucket has no end.
var BucketEnds = [...]time.Duration{time.Hour, 4 * time.Hour, 24 * time.Hour, 1 << 62}

// bucket returns the due bucket of an expiry; both times are in microseconds.
func bucket(asOf, expires int64) int {
	b := 0
	for b < len(BucketEnds)-1 && expires > asOf+BucketEnds[b].Microseconds() {
		b++
	}
	return b
}
