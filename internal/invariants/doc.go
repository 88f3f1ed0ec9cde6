// Package invariants checks a store against the promises of
// docs/proof/README.md: each action with its proposal, approval, votes, push,
// receipts, claims and audit entries against the rules that they keep, and the
// audit logs against their own hashes.
//
// It reads the rows themselves, not by way of the store's methods, since these
// hide what should not be there. It changes nothing and takes no lock; it may
// run beside the servers, on both engines. Actions are read in pages, each in
// one snapshot, so that what moves meanwhile is seen before or after its
// transaction, never between. Memory is bounded by a page.
//
// What a store cannot know is not checked: what clients were told (2) and what
// the targets did (5, beyond what the receipts say).
package invariants
