// Package proof holds the black-box proofs of docs/proof/README.md. It has tests
// only: they build the gatehouse binary once, run it as a process of its own on
// real SQLite files, talk to it over HTTP, kill it, and compare what it says
// with what the targets' own ledgers and the clients' own journals say.
//
// # The pieces
//
// A gate is a server process on a data folder; it can be killed and started
// again. A target is an HTTP server inside the test process, so it outlives
// every kill; it logs each call and counts effects by idempotency key. A shop
// is an SQLite database that the sql connector writes. A journal is what the
// clients were told, kept outside the server. The checker takes all of them
// and walks the invariants of the reliability document: each must find nothing.
//
// # What a proof must not do
//
// Pass because nothing happened. A storm counts what it did, prints the counts
// with its seed, and fails when they are not reached. GATEHOUSE_STORM=long runs
// the longer forms, GATEHOUSE_SEED fixes the seed.
package proof
