package gatehouse

import "context"

type companionsKey struct{}

// WithCompanions says that n calls of [Store.Update] begin at about the same time, each with this context or
// one derived from it. A store that commits concurrent calls in groups waits briefly for them, so that one
// group takes them all. The calls stay independent: each succeeds or fails by itself. If one of them never
// begins, the others lose nothing but the wait.
func WithCompanions(ctx context.Context, n int) context.Context {
	return context.WithValue(ctx, companionsKey{}, n)
}

// Companions returns the number given to [WithCompanions], or 0.
func Companions(ctx context.Context) int {
	n, _ := ctx.Value(companionsKey{}).(int)
	return n
}
