// Package demo runs an example shop with an agent against a running gate. Afterwards it checks
// that the shop's ledger holds exactly the approved changes.
//
// # The check
//
// The ledger is a SQLite database. Before the first proposal it is copied. During the run,
// everybody who causes a change writes it to one journal file: a reviewer writes the decision
// and the exact change that they saw, the agent writes what the policy allowed, and a clerk
// writes what bypassed the gate. At the end the journal is applied to the copy, with this
// package's own SQL, and the copy is compared with the ledger: every table, row and column. The
// comparison uses neither the gate's tables nor its connectors, so it detects changes that the
// gate lost, repeated, altered or invented.
//
// # The run
//
// See situations. Data, agent and reviewers are deterministic: unless a user decides, all runs are
// the same except for ids and times. The metadata of each proposal except the reversal is
// {"demo": true}.
package demo
