// Package api serves the outside contract over HTTP and JSON.
//
// One table of routes ([Server.Routes]) drives the mux, the checks and the
// OpenAPI document, so that they cannot disagree. Every request under /api/v1
// passes one pipeline, in this order:
//
//  1. who asks (401)
//  2. whether what the path names exists in the caller's tenant (404)
//  3. a role (403), the person's edit token (403)
//  4. rate limit (429), query, headers and body (400, 413, 422)
//  5. the state, by the use case
//
// The look-up of step 2 is made only when a check of step 3 or 4 has failed,
// to answer 404 in its place: a request that passes them is looked up by the
// use case itself, once, inside its own transaction.
//
// # Idempotency
//
// A request with an Idempotency-Key holds that key in this process while it
// runs; a second one meets 409 in_progress. The answer is stored by the use
// case, in the transaction of the effect, under the key; a repeat comes back
// as a [gatehouse.Replay] and is answered with the first body, byte for byte.
// Answers that show secrets are sealed before they are stored: see seal.go.
//
// # Failure rules
//
// Whatever a use case returns that is not a [gatehouse.Error] is logged and
// answered as internal; its text never leaves. A panic is such an error too.
package api
