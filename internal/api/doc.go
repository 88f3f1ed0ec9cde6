// Package api serves the public contract over HTTP and JSON.
//
// One table of routes (Server.table) drives the mux, the checks and the
// OpenAPI document, so that they cannot disagree. Every request to a route of
// the table passes the same pipeline, in this order:
//
//  1. authentication (401), the caller's rate limit (429)
//  2. existence of the object that the path names, in the caller's tenant (404)
//  3. a role (403), the person's edit token (403)
//  4. limit of bulk decisions (429), query, headers and body (400, 413, 422)
//  5. the checks of the object's state, by the use case
//
// The look-up of step 2 is made only after a check of step 3 or 4 has failed, to answer 404 instead. If all checks
// of steps 3 and 4 pass, the use case itself looks the object up. A short id is looked up before step 3.
//
// # Idempotency
//
// While a request with an Idempotency-Key runs, this process holds the key; a second request gets 409 in_progress.
// The use case stores the answer under the key, in the transaction of the effect or, if the parts of a request have
// their own transactions, after the last part. A repeat comes back as a [gatehouse.Replay] and gets the first body,
// byte for byte. Answers that show secrets are sealed before they are stored: see seal.go.
//
// # Failure rules
//
// An error that is not a [gatehouse.Error] is logged and answered as internal, as busy ([gatehouse.ErrBusy], or an
// ended context), or as not_found ([gatehouse.ErrNotFound]); its text never leaves the server. The same holds for a
// panic.
package api
