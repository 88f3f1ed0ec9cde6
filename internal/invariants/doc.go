// Package invariants checks a store against the promises of
// docs/proof/README.md: each action with its proposal, approval, votes, push,
// receipts, claims and audit entries against the rules, and the audit logs
// against their own hashes.
//
// It reads the rows directly and not through the store's methods, which hide
// rows that should not exist. It changes nothing, takes no locks, and may run
// next to the servers, on both engines. Actions are read in pages, each in one
// snapshot, so that every concurrent transaction is seen completely or not at
// all. One page bounds the memory.
//
// What a store cannot know is not checked: what clients were told (2), and what
// the targets did (5, beyond the receipts).
package invariants
