// Package invariants checks a store against the promises of
// docs/proof/README.md: each action with its proposal, approval, votes, push,
// receipts, claims and audit entries, each run with its steps, the archive, the
// search index and the tables of rights against the rules, and the audit logs
// against their own hashes.
//
// It reads the rows directly, because the store's methods hide rows that should
// not exist; only tenants and logs come from those methods. It changes nothing,
// takes no locks, and may run next to the servers, on both engines. Actions and
// runs are read in pages, each in one snapshot, so that every concurrent transaction is
// seen completely or not at all. The memory grows with the page size, and with the
// number of principals, of the other rows of rights, and of the claims on ceilings that are held.
//
// What a store cannot know is not checked: what clients were told (2), and what
// the targets did (5, beyond the receipts).
package invariants
