package card

import "unicode/utf8"

// Truncate returns the first n characters of a text, and the number of omitted
// characters. A byte that is not UTF-8 counts as a character. It never omits just
// one: saying so would take more room.
func Truncate(s string, n int) (shown string, hidden int) {
	if len(s) <= n+1 {
		return s, 0
	}
	total := utf8.RuneCountInString(s)
	if total <= n+1 {
		return s, 0
	}
	end := 0
	for range max(n, 0) {
		_, size := utf8.DecodeRuneInString(s[end:])
		end += size
	}
	return s[:end], total - max(n, 0)
}
