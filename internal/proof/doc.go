// Package proof contains the black-box proofs of docs/proof/README.md. It has
// only tests. They build the gatehouse binary once, run it as a separate
// process on real stores, talk to it over HTTP, kill it, and compare its
// answers with the targets' own ledgers and the clients' own journals.
//
// # The pieces
//
// A gate is one or more server processes on a store; they can be killed and
// restarted. A target is an HTTP server in the test process, so it survives
// every kill; it logs each call and counts effects by idempotency key. A shop
// is an SQLite database that the sql connector writes. A journal records,
// outside the server, what clients were told. The checker uses all of these to
// check the invariants of docs/proof/README.md: no violation may be found.
//
// # What a proof must not do
//
// A proof must not pass because nothing happened. A storm counts what it did,
// prints the counts with its seed, and fails when they are too low.
// GATEHOUSE_STORM=long runs the longer forms, GATEHOUSE_SEED fixes the seed.
package proof
