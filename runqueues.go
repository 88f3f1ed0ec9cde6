package gatehouse

import "time"

// OpenLease is a step, or a push of an outside worker's lane, that somebody holds.
type OpenLease struct {
	// Worker is the holder's name.
	Worker string
	// Tool is the step's tool, "" for built-in steps; Lane the push's connector.
	Tool, Lane string
	// Until is the end of the lease.
	Until time.Time
}

// RunQueues has the tools whose steps wait, the workers that hold work, and the
// schedules. The store does not know workers that only poll.
type RunQueues struct {
	// At is the time of the snapshot.
	At time.Time `json:"at"`
	// Queues are the tools with ready steps; the empty tool stands for built-in steps.
	Queues []ToolQueue `json:"queues"`
	// Workers are the workers with a lease, sorted by name.
	Workers []WorkerState `json:"workers"`
	// Schedules are sorted by workflow.
	Schedules []ScheduleState `json:"schedules"`
}

// ToolQueue is a tool with ready steps.
type ToolQueue struct {
	// Tool is "" for built-in steps.
	Tool string `json:"tool"`
	// OldestAt is when the step that has waited longest became ready.
	OldestAt time.Time `json:"oldest_at"`
	// Leased is true when somebody holds a step of the tool.
	Leased bool `json:"leased"`
}

// WorkerState has the leases of a worker. A lease whose end has passed without a heartbeat is
// about to be lost.
type WorkerState struct {
	// Worker is the owner of the leases: a principal's id, with "/" and the worker's own name if it gave one, or a
	// server.
	Worker string `json:"worker"`
	// Steps counts the steps that it holds.
	Steps int `json:"steps"`
	// Pushes counts the pushes that it holds.
	Pushes int `json:"pushes"`
	// Tools are the tools of its steps, and the connectors of its pushes.
	Tools []string `json:"tools"`
	// LeaseUntil is the latest end of its leases. A heartbeat extends one lease.
	LeaseUntil time.Time `json:"lease_until"`
}

// ScheduleState says when the next scheduled run of a workflow begins.
type ScheduleState struct {
	Workflow string `json:"workflow"`
	// Version is the workflow version that set the time.
	Version int `json:"version"`
	// NextAt is when the next run begins.
	NextAt time.Time `json:"next_at"`
}

// MaxOpenLeases bounds the leased steps, and also the leased pushes, that RunQueues reads. MaxSchedules
// bounds its schedules.
const (
	MaxOpenLeases = 2000
	MaxSchedules  = 1000
)
