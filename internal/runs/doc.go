// Package runs holds the use cases of workflows, runs and workers, and the runtime
// that moves runs in the background. The runtime leases ready built-in steps and
// executes them, wakes steps whose action or child run has ended or whose time has
// come, frees steps whose lease has expired, stops runs past their deadline, admits
// queued runs, fires schedules, and builds the evidence of ended runs.
//
// Each of these is a use case in its own transaction. Any number of processes may
// run on one store, and each may be killed at any time. A parked run costs nothing:
// no loop reads a run that only waits.
//
// A built-in step changes no target itself: it proposes an action to internal/gate, and waits until the action
// settles.
package runs
