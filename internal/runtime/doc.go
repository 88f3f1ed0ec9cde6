// Package runtime moves runs in the background. It leases ready built-in steps
// and executes them, wakes steps whose action, child run or time has come,
// frees steps whose worker is gone, admits queued runs, fires schedules, and
// builds the evidence of ended runs.
//
// Each of these is a use case of internal/gate in its own transaction. Any
// number of processes may run on one store, and each may be killed at any time.
// A parked run costs nothing: no loop looks at a run that only waits.
// any time. A parked run costs it nothing: no loop looks at what only waits.
package runtime
