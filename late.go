package gatehouse

// RoleCheck is what a look at the store tells about the roles of serve: which
// processes there are, and with which roles, no store knows.
type RoleCheck struct {
	// Late is empty when nothing waits for longer than a role lets it, by the
	// store's clock.
	Late []LateWork `json:"late"`
}

// LateWork is what has waited for a role, and should not have.
type LateWork struct {
	// Role is sequencer, dispatcher, sweeper or runner; or worker, which is no role
	// of serve: the program that leases the steps of a tool that is not built in.
	Role string `json:"role"`
	// Tool is that tool.
	Tool string `json:"tool,omitempty"`
	// What says what has waited, as the head of a sentence that ends with for how
	// long: "a push has been due".
	What string `json:"what"`
	// Waited is for how long the oldest has, in whole seconds.
	Waited Duration `json:"waited"`
	// Busy is true where others of the kind are under way, for which it may have
	// to wait.
	Busy bool `json:"busy,omitempty"`
}
