// Package audit numbers the entries of the audit log, keeps their Merkle tree, makes proofs and signed
// checkpoints, and verifies the log.
//
// # The log
//
// A use case appends a leaf in the transaction of the event that the leaf records,
// without a number. A leaf therefore exists exactly when its event does, and
// writers never wait for each other. A [Sequencer] numbers the waiting leaves
// shortly after, for each tenant 0, 1, 2, … without gaps, in the order in which the
// store returns them. Readers follow the numbers, so a reader that has seen entry n
// never misses an entry below n.
//
// # The tree
//
// The entries of a tenant are the leaves of a Merkle tree as in RFC 6962, section
// 2.1: a leaf's hash is SHA-256(0x00 || body), where body is the canonical JSON of
// the leaf; a node's is SHA-256(0x01 || left || right). The hash of every complete
// subtree is stored under the index that [tlog.StoredHashIndex] gives it. Head,
// inclusion and consistency proofs of any size therefore take a logarithmic number
// of reads, and a verification can name the first entry that was changed.
//
// # What happens when
//
//   - A sequencer dies: the leaves wait, unnumbered, for the next one.
//   - Two sequencers run: each batch names the size of the log on which it was
//     computed. The store accepts one of the two and answers the other with
//     [gatehouse.ErrConflict]; nothing is numbered twice.
//   - The outcome of a commit is unclear: the sequencer reads the waiting leaves
//     again. Those that were numbered are no longer among them.
//   - Somebody changes, drops, moves or adds an entry behind the program's
//     back: [Check] detects it by the stored hashes. If they change the hashes
//     too, a checkpoint that is kept elsewhere detects it.
package audit
