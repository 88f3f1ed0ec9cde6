// Package model proves the gate against models of it; it has no code but tests.
//
// # State machines
//
// TestModel plays random sequences — proposals, votes of several persons (one
// with two identities), withdrawals, revisions, reversals, time, policies,
// rights that come and go, calls with every outcome, workers that die, words of
// operators, replays, the archiver — against a model that knows no transaction, no SQL and no
// concurrency, and against the real gate and dispatcher on every engine at once.
// After every step the answers, and all that can be observed of every action,
// must be the same words from all of them. After every sequence the audit log
// is replayed, and the invariants of docs/proof/README.md that one store can
// show are checked.
//
// # Runs
//
// TestRuns does so with workflows of any shape: leases that end, results in
// time and too late, events, votes, cancellations, retries and time, against a
// model of runs and steps. Every run must come to its end, and the doctor's
// invariants hold of the stores that all sequences have left.
//
// # Linearizability
//
// TestLinearizable lets clients decide, withdraw, revise and read the same
// actions at once, through two gates, and asks porcupine whether what they were
// told could have come from one gate that does one thing at a time.
// TestCheckerBites shows that a store which loses a claim is found out.
//
// # Planted bugs
//
// The command planted plants bugs, one at a time, and sees each of them turn
// the test red that is named beside it.
//
// GATEHOUSE_STORM=long runs the long forms.
package model
