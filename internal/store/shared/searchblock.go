package shared

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
)

// SearchBlockRows is the number of row numbers of a block: block n has the actions
// with seq from n × SearchBlockRows up to, not including, (n+1) × SearchBlockRows.
const SearchBlockRows = 1024

// BuildSearchBlock collects the words of a block's actions.
func BuildSearchBlock(number int64, actions []*Searchable) *gatehouse.SearchBlock {
	type tenant struct {
		low, top string
		words    map[string][]byte
	}
	tenants := map[string]*tenant{}
	slices.SortFunc(actions, func(a, b *Searchable) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, a := range actions {
		t := tenants[a.Tenant]
		if t == nil {
			t = &tenant{low: a.ID, top: a.ID, words: map[string][]byte{}}
			tenants[a.Tenant] = t
		}
		t.low, t.top = min(t.low, a.ID), max(t.top, a.ID)
		for _, w := range a.Words() {
			t.words[w] = binary.BigEndian.AppendUint16(t.words[w], uint16(a.Seq-number*SearchBlockRows))
		}
	}
	b := &gatehouse.SearchBlock{Number: number, Actions: int64(len(actions))}
	if n := len(actions); n > 0 {
		b.LastID = actions[n-1].ID
	}
	for _, name := range slices.Sorted(maps.Keys(tenants)) {
		t := tenants[name]
		s := gatehouse.SearchTenant{Tenant: name, LowID: t.low, TopID: t.top}
		for _, w := range slices.Sorted(maps.Keys(t.words)) {
			s.Words = append(s.Words, gatehouse.SearchWord{Word: w, Rows: t.words[w]})
		}
		b.Tenants = append(b.Tenants, s)
	}
	return b
}

// Words returns the words under which the index has an action, sorted.
func (s *Searchable) Words() []string {
	words := slices.DeleteFunc(strings.Fields(s.text()), func(w string) bool { return w == "|" })
	for i, w := range words {
		words[i] = cutWord(w)
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// WordOfBlock names a row of one tenant's index.
type WordOfBlock struct {
	Block int64
	Word  string
}

// WordsToRemove returns the index rows that contain the actions, in order, and the
// seqs to remove from each.
func WordsToRemove(actions []*Searchable) (keys []WordOfBlock, seqs map[WordOfBlock][]int64) {
	seqs = map[WordOfBlock][]int64{}
	for _, a := range actions {
		for _, w := range a.Words() {
			k := WordOfBlock{a.Seq / SearchBlockRows, w}
			seqs[k] = append(seqs[k], a.Seq)
		}
	}
	keys = slices.SortedFunc(maps.Keys(seqs), func(a, b WordOfBlock) int {
		return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.Word, b.Word))
	})
	return keys, seqs
}

// WithoutSeqs returns the rows of a word without those of some actions; nil if none are left.
func WithoutSeqs(rows []byte, seqs []int64) (left []byte) {
	for ; len(rows) >= 2; rows = rows[2:] {
		if !slices.ContainsFunc(seqs, func(seq int64) bool {
			return uint16(seq%SearchBlockRows) == binary.BigEndian.Uint16(rows)
		}) {
			left = append(left, rows[:2]...)
		}
	}
	return left
}

// rowSet is a set of a block's actions.
type rowSet [SearchBlockRows / 64]uint64

// add adds the rows of a word.
func (s *rowSet) add(rows []byte) {
	for ; len(rows) >= 2; rows = rows[2:] {
		if n := binary.BigEndian.Uint16(rows); n < SearchBlockRows {
			s[n/64] |= 1 << (n % 64)
		}
	}
}

// seqs appends the actions' row numbers.
func (s *rowSet) seqs(list []int64, block int64) []int64 {
	for n := range int64(SearchBlockRows) {
		if s[n/64]&(1<<(n%64)) != 0 {
			list = append(list, block*SearchBlockRows+n)
		}
	}
	return list
}
