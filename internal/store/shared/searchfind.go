package shared

import (
	"cmp"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// The bounds of a search. It first reads searchFirst rows of the list itself, which
// finds common words at once. Then it asks the index for up to searchMost actions.
// If the words are so common that this does not fill the page, it continues to read
// the list, searchNext rows at a time.
const (
	searchFirst = 256
	searchNext  = 2048
	searchMost  = 10_000
)

// SearchRange describes a block of the tenant's index.
type SearchRange struct {
	Block int64
	TopID string
}

// Finder finds the actions of one page of a search. The functions apply the list's
// filter; Tail and Rows apply StoredStatus instead of the filter's status.
type Finder struct {
	Search Search
	// Urgent selects the order by urgency, of pending actions. Status is as in the
	// filter.
	Urgent bool
	Status gatehouse.Status
	// Walk reads up to limit actions of the list, after a place.
	Walk func(after Place, limit int) ([]*Searchable, error)
	// Times returns the transaction's time, and that of the first page; both in
	// microseconds. It is called after Walk.
	Times func() (now, asOf int64)
	// Tail reads up to limit actions that are not in the index, and returns the first block that
	// is not.
	Tail func(limit int) (block int64, list []*Searchable, err error)
	// Ranges lists the blocks below block with an action whose id is less than
	// before ("" for any), in descending order of TopID.
	Ranges func(block int64, before string) ([]SearchRange, error)
	// Word calls found with the rows of the index for the words from <= w < to of
	// some blocks.
	Word func(blocks []int64, from, to string, found func(block int64, rows []byte)) error
	// Rows reads actions by number.
	Rows func(seqs []int64) ([]*Searchable, error)

	now, asOf int64
	seen      map[int64]bool
	pool      []*Searchable
}

// StoredStatus returns the one status that the rows of Tail and Rows may have; ""
// for any.
func (f *Finder) StoredStatus() gatehouse.Status {
	switch {
	case f.Urgent:
		return gatehouse.StatusPending
	case f.Status == gatehouse.StatusExpired: // also pending, and overdue
		return ""
	}
	return f.Status
}

// Find returns the first limit actions after a place, in the list's order.
func (f *Finder) Find(after Place, limit int) ([]*Searchable, error) {
	if len(f.Search.parts) == 0 {
		return nil, nil
	}
	found, last, more, err := f.walk(after, limit, searchFirst)
	if err != nil || !more || len(found) >= limit {
		return found[:min(limit, len(found))], err
	}
	rest, complete, err := f.ask(last, limit-len(found))
	if err != nil || complete {
		return append(found, rest...), err
	}
	for more && len(found) < limit {
		rest, last, more, err = f.walk(last, limit, searchNext)
		if err != nil {
			return nil, err
		}
		found = append(found, rest...)
	}
	return found[:min(limit, len(found))], nil
}

// walk reads a stretch of the list. more is false at its end.
func (f *Finder) walk(after Place, limit, stretch int) (found []*Searchable, last Place, more bool, err error) {
	stretch = max(stretch, limit)
	list, err := f.Walk(after, stretch)
	if err != nil || len(list) == 0 {
		return nil, after, false, err
	}
	for _, a := range list {
		if f.Search.Match(a) {
			found = append(found, a)
		}
	}
	return found, list[len(list)-1].Place, len(list) == stretch, nil
}

// ask finds actions with the index. complete is false if more than searchMost
// actions would have to be examined.
func (f *Finder) ask(after Place, need int) (found []*Searchable, complete bool, err error) {
	f.now, f.asOf = f.Times()
	f.seen, f.pool = map[int64]bool{}, nil
	block, tail, err := f.Tail(searchMost + 1)
	if err != nil || len(tail) > searchMost {
		return nil, false, err
	}
	f.consider(tail, after)
	before := ""
	if !f.Urgent {
		before = after.ID
	}
	ranges, err := f.Ranges(block, before)
	if err != nil {
		return nil, false, err
	}
	looked := len(tail)
	for n := 4; len(ranges) > 0 && !f.enough(need, ranges[0].TopID); n *= 8 {
		n = min(n, len(ranges))
		seqs, err := f.candidates(ranges[:n])
		if looked += len(seqs); err != nil || looked > searchMost {
			return nil, false, err
		}
		rows, err := f.Rows(seqs)
		if err != nil {
			return nil, false, err
		}
		f.consider(rows, after)
		ranges = ranges[n:]
	}
	slices.SortFunc(f.pool, func(a, b *Searchable) int { return f.compare(a.Place, b.Place) })
	return f.pool[:min(need, len(f.pool))], true, nil
}

// enough reports whether actions with ids above top fill the page.
func (f *Finder) enough(need int, top string) bool {
	if f.Urgent {
		return false
	}
	n := 0
	for _, a := range f.pool {
		if a.ID > top {
			n++
		}
	}
	return n >= need
}

// candidates returns the actions of some blocks that have all words of the search.
func (f *Finder) candidates(ranges []SearchRange) (seqs []int64, err error) {
	blocks := make([]int64, len(ranges))
	for i, r := range ranges {
		blocks[i] = r.Block
	}
	words := f.Search.ranges()
	// Words with digits are rarer, and so are longer words.
	slices.SortStableFunc(words, func(a, b wordRange) int {
		return cmp.Compare(b.rarity(), a.rarity())
	})
	var have map[int64]*rowSet
	for i, w := range words {
		with := map[int64]*rowSet{}
		err := f.Word(blocks, w.from, w.to, func(block int64, rows []byte) {
			if with[block] == nil {
				with[block] = &rowSet{}
			}
			with[block].add(rows)
		})
		if err != nil {
			return nil, err
		}
		if i > 0 {
			for block, set := range with {
				for n := range set {
					set[n] &= have[block][n]
				}
			}
		}
		have = with
		blocks = slices.DeleteFunc(blocks, func(b int64) bool { return have[b] == nil })
	}
	for _, b := range blocks {
		seqs = have[b].seqs(seqs, b)
	}
	return seqs, nil
}

// consider adds the actions that the list shows after a place.
func (f *Finder) consider(list []*Searchable, after Place) {
	for _, a := range list {
		shown := a.status
		if shown == gatehouse.StatusPending && a.expires <= f.now {
			shown = gatehouse.StatusExpired
		}
		if f.Urgent {
			a.Bucket = bucket(f.asOf, a.expires)
		}
		wanted := f.Status == "" && !f.Urgent || f.Status == shown || f.Urgent && shown == gatehouse.StatusPending
		if wanted && !f.seen[a.Seq] && f.compare(after, a.Place) < 0 && f.Search.Match(a) {
			f.seen[a.Seq] = true
			f.pool = append(f.pool, a)
		}
	}
}

// compare is the order of the list.
func (f *Finder) compare(a, b Place) int {
	if f.Urgent {
		return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), cmp.Compare(b.Risk, a.Risk), cmp.Compare(a.ID, b.ID))
	}
	return cmp.Compare(b.ID, a.ID)
}
