// Package audit numbers, chains, proves and verifies the audit log.
//
// # The log
//
// A use case appends a leaf in the transaction of what the leaf records, with
// no number: so a leaf exists exactly when what it records does, and writers
// never wait for each other. A [Sequencer] gives the waiting leaves their
// numbers shortly after, for each tenant 0, 1, 2, … without gaps, in the order
// in which the store hands them out. Readers follow the numbers, so a reader
// that has seen entry n never misses an entry below n.
//
// # The tree
//
// The entries of a tenant are the leaves of a Merkle tree as in RFC 6962,
// section 2.1: a leaf's hash is SHA-256(0x00 || body), where body is the
// canonical JSON of the leaf; a node's is SHA-256(0x01 || left || right). The
// hash of every complete subtree is stored under the index that
// [tlog.StoredHashIndex] gives it, so that head, inclusion and consistency
// proofs of any size take a logarithmic number of reads, and so that a
// verification can name the first entry that was touched.
//
// # What happens when
//
//   - A sequencer dies: the leaves wait, unnumbered, for the next one.
//   - Two sequencers run: each batch names the size of the log on which it was
//     computed. The store takes one of the two and answers the other with
//     [gatehouse.ErrConflict]; nothing is numbered twice.
//   - A commit's fate is unclear: the batch is read anew. What was numbered is
//     no longer waiting.
//   - Somebody changes, drops, moves or adds an entry behind the program's
//     back: [Check] finds it against the stored hashes. Somebody who changes
//     those too is found out by a checkpoint that is kept elsewhere.
package audit
