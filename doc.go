// Package gatehouse is the domain of the gate between AI agents and the
// systems that they change. It holds the words, the types, the validation, the
// state machines and the error codes, and imports only the standard library.
//
// The story in one paragraph: an agent proposes an [Action]; a policy judges
// it ([Verdict]) and allows it, denies it, or opens an [Approval]; people
// answer with a [Vote] each; the one terminal decision writes a [Push] in the
// same transaction; a worker carries the push out through a connector and
// leaves a [Receipt]; each transition appends a [Leaf] to the audit log.
//
// One [Digest] identifies what is shown, voted on, queued and sent.
package gatehouse
