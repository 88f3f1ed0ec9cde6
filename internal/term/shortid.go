package term

import "strings"

// shownDigits is the minimum number of digits of an id in a list on a terminal: its time in
// milliseconds, which few other ids share.
const shownDigits = 12

// shortIDs returns a unique prefix of each id in a list: at least the type prefix and
// shownDigits, longer if another id of the list has the same one. Commands and paths of the API
// accept prefixes of the kinds that [gatehouse.ShortID] lists. In a pipe, ids are complete.
func (g *IO) shortIDs(ids []string) []string {
	short := make([]string, len(ids))
	for i, id := range ids {
		short[i] = id
		if !g.TTY {
			continue
		}
		n := strings.IndexByte(id, '_') + 1 + shownDigits
		for _, other := range ids {
			for other != id && n < len(id) && strings.HasPrefix(other, id[:n]) {
				n++
			}
		}
		short[i] = id[:min(n, len(id))]
	}
	return short
}

// IDsOf returns the short ids of a list's items.
func IDsOf[T any](g *IO, items []T, id func(T) string) []string {
	ids := make([]string, len(items))
	for i, item := range items {
		ids[i] = id(item)
	}
	return g.shortIDs(ids)
}
