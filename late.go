package gatehouse

// RoleCheck reports work that waits too long for a role of gatehouse serve. The store does not
// record which processes have which roles, so the check examines the work.
type RoleCheck struct {
	// Late is empty when nothing waits longer than a role allows, by the store's
	// clock.
	Late []LateWork `json:"late"`
}

// LateWork is one kind of work that has waited too long.
type LateWork struct {
	// Role is sequencer, dispatcher, sweeper or runner; or worker for an outside
	// program that leases the steps of a tool that is not built in, or the pushes of a
	// connector of type worker or mcp.
	Role string `json:"role"`
	// Tool is the tool of a worker's steps, Connector the connector of its pushes; else "".
	Tool      string `json:"tool,omitempty"`
	Connector string `json:"connector,omitempty"`
	// What begins a sentence that ends with the waiting time: "a push has been
	// due".
	What string `json:"what"`
	// Waited is how long the oldest item has waited, in whole seconds.
	Waited Duration `json:"waited"`
	// Busy is true when other work of the same kind is in progress, so that the late work may be
	// waiting for it.
	Busy bool `json:"busy,omitempty"`
}
