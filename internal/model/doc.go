// Package model tests the gate against models of it. It has only tests.
//
// # State machines
//
// TestModel plays random sequences: proposals, votes of several persons (one
// with two identities), cancellations, revisions, reversals, time, policies,
// changing rights, calls with every outcome, dying workers, operators'
// resolutions, replays, the archiver, messages to people. It plays them against a model without
// transactions, SQL or concurrency, and at the same time against the real gate
// and dispatcher on every engine. After every step the answers, and everything
// observable of every action, must be equal. After every sequence the audit log
// is replayed, and the invariants of docs/proof/README.md that concern one
// store are checked.
//
// # Runs
//
// TestRuns does the same with workflows of any shape: ending leases, results in
// time and too late, events, votes, cancellations, retries and time, against a
// model of runs and steps. Every run must end, and after all sequences, the
// stores must satisfy the invariants that the command doctor checks.
//
// # Linearizability
//
// TestLinearizable lets clients decide, cancel, revise and read the same
// actions concurrently, through two gates, and asks porcupine whether a single
// gate that does one thing at a time could have given these answers.
// TestCheckerBites shows that a store which loses a claim is detected.
//
// # Planted bugs
//
// The command planted plants one bug at a time and checks that the named test
// fails.
//
// GATEHOUSE_STORM=long makes the tests of this package longer.
package model
