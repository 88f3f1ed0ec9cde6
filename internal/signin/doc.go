// Package signin authenticates people in browsers: by OpenID Connect (authorization code with
// PKCE, RFC 7636 and RFC 9700) and by passkeys (WebAuthn Level 3). It implements
// gatehouse.SignInService. It uses no HTML, no cookies and no store of its own: it passes a proven
// identity to the [Directory], which begins the session, links the identity or records the step-up.
//
// # Ceremonies
//
// Each ceremony has a challenge and a response. The server's state between them (the PKCE
// verifier and nonce, the challenge, the purpose of the step-up) is a row in the store. Its key
// is the SHA-256 of a random secret that only the browser's cookie holds. A sealed cookie would
// not do, because it can be sent twice. A response first deletes the row, in its own
// transaction, so that only one of any number of responses counts, on any replica, and no key
// has to be shared or rotated. Anonymous clients can create such rows; their rate is limited,
// and rows expire after ten minutes and are deleted by later ceremonies.
//
// The parameter state of OIDC is a hash of the cookie's secret. The URL with this parameter, which
// providers and browser histories store, is therefore not enough to respond, and a response that was
// begun in another browser does not match the cookie (login CSRF).
//
// # Failure rules
//
// If the verification fails, the error is unauthenticated, without the reason, which is in the
// log. If a provider does not answer, the error is busy. Neither changes a person or a session:
// when a provider is down, nobody loses a role.
//
// # Step-up
//
// A passkey's challenge is the SHA-256 of a random value, the action's id and its digest,
// computed again from the stored values when the response arrives; with OIDC, the nonce is that
// hash. The signature is thus bound to the action as it was shown. The Directory binds the proof
// to the session, and the decision consumes it.
package signin
