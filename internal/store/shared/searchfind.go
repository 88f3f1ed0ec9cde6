package shared

import (
	"cmp"
	"slices"

	"github.com/gatehouse-dev/gatehouse"
)

// The bounds of a search. A search first reads searchFirstRows rows of the list itself, which finds common
// words at once. Then it examines the actions that the index returns, up to searchMaxActions. If the index
// returns more, the words are common, and the search continues to read the list, searchNextRows at a time.
const (
	searchFirstRows  = 256
	searchNextRows   = 2048
	searchMaxActions = 10_000
)

// SearchRange describes a block of the tenant's index. TopID is the highest id of its actions.
type SearchRange struct {
	Block int64
	TopID string
}

// Finder finds the actions of one page of a search. The engine sets the functions. They apply the filter of
// the list, but Unindexed and ReadRows apply StoredStatus instead of the filter's status.
type Finder struct {
	Search Search
	// Urgent selects the order by urgency, which lists only pending actions. Status is the status of the
	// filter.
	Urgent bool
	Status gatehouse.Status
	// ReadList reads up to limit actions of the list, after a place.
	ReadList func(after Place, limit int) ([]*Searchable, error)
	// Times returns the time of the transaction and the time of the first page, in microseconds. It is
	// called after ReadList.
	Times func() (now, asOf int64)
	// Unindexed reads up to limit actions that are not in the index yet, and returns the number of the
	// first block that is not in the index.
	Unindexed func(limit int) (block int64, list []*Searchable, err error)
	// Ranges lists the blocks with a number below block that have an action with an id below before ("" for
	// any id), in descending order of TopID.
	Ranges func(block int64, before string) ([]SearchRange, error)
	// Postings calls found with the encoded row numbers of each word w with from <= w < to in some blocks.
	Postings func(blocks []int64, from, to string, found func(block int64, rows []byte)) error
	// ReadRows reads actions by row number.
	ReadRows func(seqs []int64) ([]*Searchable, error)

	now, asOf int64
	// matches are the actions for the page that searchIndex has found so far. matched has their row numbers.
	matches []*Searchable
	matched map[int64]bool
}

// StoredStatus returns the only stored status that a matching action can have; "" if several are possible.
func (f *Finder) StoredStatus() gatehouse.Status {
	switch {
	case f.Urgent:
		return gatehouse.StatusPending
	case f.Status == gatehouse.StatusExpired: // stored as expired, or still as pending
		return ""
	}
	return f.Status
}

// Find returns the first limit matching actions after a place, in the list's order.
func (f *Finder) Find(after Place, limit int) ([]*Searchable, error) {
	if len(f.Search) == 0 {
		return nil, nil
	}
	found, last, more, err := f.scanList(after, limit, searchFirstRows)
	if err != nil || !more || len(found) >= limit {
		return found[:min(limit, len(found))], err
	}
	rest, complete, err := f.searchIndex(last, limit-len(found))
	if err != nil || complete {
		return append(found, rest...), err
	}
	for more && len(found) < limit {
		rest, last, more, err = f.scanList(last, limit, searchNextRows)
		if err != nil {
			return nil, err
		}
		found = append(found, rest...)
	}
	return found[:min(limit, len(found))], nil
}

// scanList reads rows of the list and returns the actions that match. last is the place of the last row read.
// more is false at the end of the list.
func (f *Finder) scanList(after Place, limit, rows int) (found []*Searchable, last Place, more bool, err error) {
	rows = max(rows, limit)
	list, err := f.ReadList(after, rows)
	if err != nil || len(list) == 0 {
		return nil, after, false, err
	}
	for _, a := range list {
		if f.Search.Match(a) {
			found = append(found, a)
		}
	}
	return found, list[len(list)-1].Place, len(list) == rows, nil
}

// searchIndex finds up to need actions after a place with the index. complete is false if the index returns
// more than searchMaxActions actions.
func (f *Finder) searchIndex(after Place, need int) (found []*Searchable, complete bool, err error) {
	f.now, f.asOf = f.Times()
	f.matched, f.matches = map[int64]bool{}, nil
	block, unindexed, err := f.Unindexed(searchMaxActions + 1)
	if err != nil || len(unindexed) > searchMaxActions {
		return nil, false, err
	}
	f.addMatches(unindexed, after)

	before := ""
	if !f.Urgent {
		before = after.ID
	}
	ranges, err := f.Ranges(block, before)
	if err != nil {
		return nil, false, err
	}
	examined := len(unindexed)
	for n := 4; len(ranges) > 0 && !f.isFull(need, ranges[0].TopID); n *= 8 {
		n = min(n, len(ranges))
		seqs, err := f.candidates(ranges[:n])
		examined += len(seqs)
		if err != nil || examined > searchMaxActions {
			return nil, false, err
		}
		rows, err := f.ReadRows(seqs)
		if err != nil {
			return nil, false, err
		}
		f.addMatches(rows, after)
		ranges = ranges[n:]
	}
	slices.SortFunc(f.matches, func(a, b *Searchable) int { return f.compare(a.Place, b.Place) })
	return f.matches[:min(need, len(f.matches))], true, nil
}

// isFull reports whether the matches with ids above top fill the page, so that blocks whose highest id is top
// need not be read. The order by urgency does not follow ids, so isFull is then false.
func (f *Finder) isFull(need int, top string) bool {
	if f.Urgent {
		return false
	}
	n := 0
	for _, a := range f.matches {
		if a.ID > top {
			n++
		}
	}
	return n >= need
}

// candidates returns the row numbers of the actions in some blocks that have all words of the search.
func (f *Finder) candidates(ranges []SearchRange) (seqs []int64, err error) {
	blocks := make([]int64, len(ranges))
	for i, r := range ranges {
		blocks[i] = r.Block
	}
	words := f.Search.ranges()
	// Begin with the rarest words. Words with digits are rarer than others, and long words rarer than short.
	slices.SortStableFunc(words, func(a, b wordRange) int {
		return cmp.Compare(b.rarity(), a.rarity())
	})
	// common holds, by block, the actions that have all words so far.
	var common map[int64]*rowSet
	for i, w := range words {
		withWord := map[int64]*rowSet{}
		err := f.Postings(blocks, w.from, w.to, func(block int64, rows []byte) {
			if withWord[block] == nil {
				withWord[block] = &rowSet{}
			}
			withWord[block].add(rows)
		})
		if err != nil {
			return nil, err
		}
		if i > 0 {
			for block, set := range withWord {
				for n := range set {
					set[n] &= common[block][n]
				}
			}
		}
		common = withWord
		blocks = slices.DeleteFunc(blocks, func(b int64) bool { return common[b] == nil })
	}
	for _, b := range blocks {
		seqs = common[b].seqs(seqs, b)
	}
	return seqs, nil
}

// addMatches adds the actions that match the search, have a status of the list, and come after a place.
func (f *Finder) addMatches(list []*Searchable, after Place) {
	for _, a := range list {
		status := a.status
		if status == gatehouse.StatusPending && a.expires <= f.now {
			status = gatehouse.StatusExpired
		}
		listed := f.Status == "" || f.Status == status
		if f.Urgent {
			a.Bucket = bucket(f.asOf, a.expires)
			listed = f.Status == status || status == gatehouse.StatusPending
		}
		if listed && !f.matched[a.Seq] && f.compare(after, a.Place) < 0 && f.Search.Match(a) {
			f.matched[a.Seq] = true
			f.matches = append(f.matches, a)
		}
	}
}

// compare orders two places as the list does.
func (f *Finder) compare(a, b Place) int {
	if f.Urgent {
		return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), cmp.Compare(b.Risk, a.Risk), cmp.Compare(a.ID, b.ID))
	}
	return cmp.Compare(b.ID, a.ID)
}
