// Package gate holds the use cases: propose, decide, cancel, revise, reverse,
// expire, replay, resolve, and the management of principals and policies. Each is
// one transaction; a batch may have one for each item. Every surface (API, CLI, console,
// Slack, links) ends here with a caller in the context.
//
// # The path of a decision
//
// Slow and external work is done before the transaction: the policy's veto is
// evaluated, the target's state is read. The transaction then locks the approval,
// reads the clock, and checks in this order: exists in this tenant; may this person
// decide; replay of an earlier decision; already decided; expired; delay of a new
// approver; own earlier vote; no other vote by the same right, own or delegated; digest; confirmation;
// reason; step-up; target changed; the policy's veto; rights of all voters;
// ceiling. The winner writes vote, decision, push, reservation, audit leaf
// and the answer under the client's Idempotency-Key, or nothing.
//
// # Failure rules
//
// A closure may run more than once, and each run sets all of its results anew. Values
// read before the transaction (the policy's version) are compared inside it, and
// the whole use case starts again when they have changed. Hints are sent only after
// the commit; a lost hint costs one poll interval.
package gate
