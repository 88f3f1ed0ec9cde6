package term

import "strings"

// shownDigits is how many digits of an id a list on a terminal shows at least:
// its time in milliseconds, so that few other ids begin with them.
const shownDigits = 12

// shortIDs returns for each id of a list the beginning that names it: at least
// its type prefix and shownDigits, and as much more as no other id of the list
// shares. Every command and every path of the API takes them. Piped, ids are
// whole.
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
