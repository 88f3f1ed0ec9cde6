package gatehouse

import "context"

// Announcer is a store for which several concurrent Updates cost less than the same
// Updates one after another.
type Announcer interface {
	Store
	// Announce announces n Updates that begin now, concurrently. Each needs its own
	// context from the returned function. The first ones wait briefly for the
	// others, so all n must begin. They are otherwise independent: each succeeds or
	// fails by itself.
	Announce(n int) func(context.Context) context.Context
}
