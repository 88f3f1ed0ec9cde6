package shared

// MaxPageBytes bounds what the proposals of one page hold together. A page of
// large ones ends early, with a cursor; it has one at least. Without it, a
// page of 200 proposals of a megabyte each would be built in memory.
const MaxPageBytes = 4 << 20

// Fit returns how many of n rows, in their order, make a page of the size.
func Fit(n int, size func(i int) int64) int {
	total := int64(0)
	for i := range n {
		if total += size(i); total > MaxPageBytes && i > 0 {
			return i
		}
	}
	return n
}
