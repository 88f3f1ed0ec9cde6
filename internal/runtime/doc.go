// Package runtime is what moves runs while nobody looks: it leases ready steps
// of what is built in and carries them out, wakes steps whose action, child run
// or time has come, frees those whose worker is gone, admits queued runs, fires
// schedules, and makes the evidence of runs that have ended.
//
// Everything it does is a use case of internal/app in a transaction of its own,
// so any number of processes may do it on one store, and each may be killed at
// any time. A parked run costs it nothing: no loop looks at what only waits.
package runtime
