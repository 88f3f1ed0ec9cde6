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
coalesce(p.currency, ''), substr(p.rationale, 1, 8192), substr(p.entity_refs, 1, 8192), substr(p.proposed_change, 1, 8192)`

// Searchable is an action as a search sees it.
type Searchable struct {
	Seq    int64
	Tenant string
	Place
	// status is the stored one; expires is 0 for none.
	status  gatehouse.Status
	expires int64
	// texts are plain; lists are JSON whose values are texts.
	texts, lists []string
}

// Place is the position of an action in a list.
type Place struct {
	ID           string
	Bucket, Risk int
	// Large is as in Cursor.Seq.
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
	s.lists = []string{text(), text()}
	s.texts = append(s.texts, text())
	return s
}

// text returns all words in order. Each begins with a space; a | stands between
// two texts.
func (s *Searchable) text() string {
	var b strings.Builder
	for _, t := range s.texts {
		writeWords(&b, t)
	}
	for _, t := range s.lists {
		writeValues(&b, t)
	}
	return b.String()
}

func writeWords(b *strings.Builder, text string) {
	b.WriteString(" |")
	inside := false
	for _, r := range strings.ToLower(text) {
		alone := unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
		if !alone && !unicode.In(r, unicode.L, unicode.N, unicode.M) {
			inside = false
			continue
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
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	type level struct{ object, value bool }
	var levels []level
	for {
		token, err := d.Token()
		if err != nil {
			return // the end, or where the text was cut
		}
		switch v := token.(type) {
		case json.Delim:
			if v == '{' || v == '[' {
				levels = append(levels, level{object: v == '{'})
				continue
			}
			levels = levels[:len(levels)-1]
		case string:
			if n := len(levels); n > 0 && levels[n-1].object && !levels[n-1].value {
				levels[n-1].value = true
				continue
			}
			writeWords(b, v)
		case json.Number:
			writeWords(b, v.String())
		}
		if n := len(levels); n > 0 {
			levels[n-1].value = false
		}
	}
}

// Search is a parsed query.
type Search struct {
	// parts are the words of each part of the query, in the form of
	// Searchable.text.
	parts []string
}

// ParseSearch parses a query. A query without letters and digits finds nothing.
func ParseSearch(query string) (s Search) {
	for _, field := range strings.Fields(query) {
		var b strings.Builder
		writeWords(&b, field)
		if part := strings.TrimPrefix(b.String(), " |"); part != "" {
			s.parts = append(s.parts, part)
		}
	}
	return s
}

// Match reports whether a query finds an action.
func (s Search) Match(a *Searchable) bool {
	text := a.text()
	for _, part := range s.parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return len(s.parts) > 0
}

// maxWord bounds the bytes of a word in the index; of a longer one, the index has
// the beginning.
const maxWord = 48

func cutWord(w string) string {
	if len(w) <= maxWord {
		return w
	}
	return strings.ToValidUTF8(w[:maxWord], "")
}

// wordRange holds the words w of the index with from <= w < to.
type wordRange struct{ from, to string }

// ranges returns what every action that matches has a word of. The last word of a
// part may go on.
func (s Search) ranges() (list []wordRange) {
	for _, part := range s.parts {
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

// BucketEnds are the ends of the due buckets of the order by urgency, relative to
// the time of the first page. The last bucket has no end.
var BucketEnds = [Buckets]time.Duration{time.Hour, 4 * time.Hour, 24 * time.Hour, 1 << 62}

// bucket returns the due bucket of an expiry; both times are in microseconds.
func bucket(asOf, expires int64) int {
	b := 0
	for b < Buckets-1 && expires > asOf+BucketEnds[b].Microseconds() {
		b++
	}
	return b
}
