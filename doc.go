// Package gatehouse is the domain of the gate between AI agents and the
// systems that they change. It holds the types, their validation, the state
// machines and the error codes, and imports only the standard library.
//
// In short: an agent proposes an [Action]. A policy judges the action ([Verdict]):
// it allows the action, denies it, or opens an [Approval]. People answer an
// approval with one [Vote] each. The transaction that approves an action also
// stores a [Push]. The dispatcher or an outside worker carries out the push, and
// the result is stored as a [Receipt]. Each transition appends a [Leaf] to the
// audit log.
//
// One [Digest] identifies the content that is shown, voted on, queued and sent.
package gatehouse
