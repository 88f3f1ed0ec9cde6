// Package engine carries out approved changes: it claims pushes, checks each
// one last time, records the intent, calls the connector, and records what
// came of it.
//
// # The path of a push
//
// A worker claims due pushes; the claim raises the push's generation and sets
// a lease. Every later write is guarded by that generation and by the status
// that the worker left the push in, so a worker whose lease was given away
// changes nothing: what it still learns is stored as a late receipt.
//
//  1. A success under the same idempotency key settles the push with no call.
//  2. If earlier attempts were made, the connector reads back. Then, unless an
//     earlier attempt may have had an effect (which would look like drift), it
//     compares the target with the pre-image.
//  3. One transaction checks generation, digest, fingerprint and authority
//     and writes the intent: status sent, attempts + 1. Then comes the call,
//     with a deadline before the end of the lease.
//     Where 1 and 2 have nothing to ask, as before the first call of a target
//     that cannot be looked at, this is the one transaction that reads.
//  4. One transaction writes receipt, push, action, ceilings and audit leaf.
//
// A push whose check fails is quarantined: failed, with a code, and no call.
//
// Over a store that would rather have several Updates at once, those pushes of a
// claim that have nothing to look at write their intents as a wave, and their
// outcomes as another: whoever comes first waits a millisecond for the others.
// Each is a transaction of its own all the same, with its own guards and its own
// end. And a worker calls again while the outcome of its last call is stored.
//
// Claims are fair between tenants, and keep each below its bound on pushes in
// flight; see fair.
//
// # Failure rules
//
// An attempt is proven to be without effect by a receipt that says so: the
// target's own refusal, a request that never left, a read-back that rules the
// effect out, or an operator's word. Everything else may have had its effect:
// an ambiguous answer, and an intent with no receipt at all.
//
// "failed" always means that every attempt is proven to be without effect, and
// only then are ceilings given back. Where that proof is missing, a push that
// cannot go on is unknown. See judge for the table.
//
// A worker that dies holds its lease until it ends; then a push in picking
// goes back to the queue, and one in sent goes by its connector's class: A and
// B back to the queue, to be read back first, C to unknown. A payload that
// kills its workers before it comes to a call is quarantined after MaxClaims.
package engine
