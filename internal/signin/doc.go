// Package signin proves who sits in front of a browser: by OpenID Connect
// (authorization code with PKCE, RFC 7636 and RFC 9700) and by passkeys
// (WebAuthn Level 3). It implements gatehouse.SignInService. It knows no HTML,
// no cookies and no store: what it has proven it tells the [Directory], which
// begins the session, links the identity or records the step-up.
//
// # Ceremonies
//
// Each ceremony has a question and an answer. What the server must remember
// between them (the PKCE verifier and nonce, the challenge, what the step-up is
// for) lies in the store, found by the SHA-256 of a random secret that only the
// browser's cookie holds. It is not in a sealed cookie, because a sealed cookie
// can be sent twice: an answer takes the row out in its own transaction before
// anything is looked at, so that of any number of answers one is heard, on any
// replica, and no key has to be shared or rotated. Strangers can make such rows;
// they are limited in rate, end after ten minutes, and are deleted by those who
// come later.
//
// The parameter state of OIDC is a hash of the cookie's secret: the address,
// which providers and histories keep, is not enough to answer, and an answer
// that was begun in another browser does not fit the cookie (login CSRF).
//
// # Failure rules
//
// What does not verify is unauthenticated, and the answer does not say why; the
// log does. A provider that does not answer is busy. Neither changes anything:
// a provider that is down takes nobody's role away.
//
// # Step-up
//
// A passkey's challenge is SHA-256 of a random value, the action's id and its
// digest, computed anew from the stored values when the answer comes; with OIDC
// the nonce is that hash. A signature is so bound to the action as it was shown,
// and the Directory binds the proof to the session and uses it up with the
// decision.
package signin
