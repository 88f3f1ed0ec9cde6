// Package dispatch carries out approved changes. It claims pushes, checks each
// one a last time, records the intent, calls the connector, and records the
// outcome.
//
// # The path of a push
//
// A worker claims due pushes. The claim raises the push's generation and sets a lease. Every later write is guarded
// by that generation and by the status in which the worker left the push. A worker whose lease was given away
// therefore changes nothing: its outcome is stored as a late receipt. The late report of an external worker is
// refused with lease_lost, and not stored.
//
//  1. A success under the same idempotency key settles the push without a call.
//  2. After earlier attempts, the connector reads back. Then it compares the target
//     with the pre-image, unless an earlier attempt may have had an effect (which
//     would look like drift).
//  3. One transaction checks generation, digest, fingerprint and authority, and
//     writes the intent: status sent, attempts + 1. Then follows the call, with a
//     deadline before the end of the lease. If steps 1 and 2 read nothing,
//     as before the first call to a target that cannot be checked, this is the only
//     transaction that reads.
//  4. One transaction writes receipt, push, action, ceilings and audit leaf.
//
// A push that fails a check is quarantined: it ends with a code and without another call, as
// failed, or as unknown if an earlier attempt may have had its effect.
//
// Some stores prefer to run concurrent Updates together. With such a store, the
// pushes of one claim that read nothing before their intent write their intents
// as one batch, and their outcomes as another: the store waits briefly for all of
// them. Each is still a transaction of its own, with its own guards and its own
// result. A worker makes its next call while the outcome of its last one is being
// stored.
//
// Claims are fair between tenants and keep each tenant below its bound on
// pushes in flight; see fair.
//
// # Failure rules
//
// An attempt is proven to be without effect by a receipt that says so: the
// target's own refusal, a request that never left, a read-back that rules out
// the effect, or an operator's statement. Anything else may have had its
// effect: an ambiguous answer, or an intent without a receipt.
//
// "failed" always means that every attempt is proven to be without effect, and only then are
// ceilings released. Without that proof, a push that cannot continue is unknown. See judge for the
// table.
//
// When a worker dies, its lease runs out. Then a push in picking goes back to
// the queue. For a push in sent, the operation's class decides: A and B go back
// to the queue, to be read back first, as long as attempts are left; C becomes
// unknown, and so do A and B after the last attempt. A push whose workers die
// before the call is quarantined after MaxClaims claims.
package dispatch
