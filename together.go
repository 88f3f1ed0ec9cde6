package gatehouse

import "context"

// Gathering is a store that carries out several Updates at once for less than
// one after another.
type Gathering interface {
	Store
	// Together announces n Updates that begin now, side by side, each with a
	// context that the returned function has made of its own. Those that come
	// first wait a moment for the others, so all of them have to come. They stay
	// apart in all else: each succeeds or fails by itself.
	Together(n int) func(context.Context) context.Context
}
