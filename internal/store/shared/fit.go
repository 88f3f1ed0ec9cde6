package shared

// MaxPageBytes bounds the total size of the proposals on one page. A page of
// large proposals ends early, with a cursor, but has at least one row. Without
// this bound, 200 proposals of a megabyte each would be held in memory.
const MaxPageBytes = 4 << 20

// Fit returns how many of n rows, in order, fit into a page.
func Fit(n int, size func(i int) int64) int {
	total := int64(0)
	for i := range n {
		if total += size(i); total > MaxPageBytes && i > 0 {
			return i
		}
	}
	return n
}
