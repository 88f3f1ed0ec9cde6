package gatehouse

import "time"

// IdempotencyRequest is a client's Idempotency-Key on one request.
type IdempotencyRequest struct {
	// Key is the header's value.
	Key string
	// Route is the method and pattern, so that one key on two routes is two keys.
	Route string
	// BodyHash is the SHA-256 of path and body. It detects a reuse of the key with
	// another request.
	BodyHash Hash
	// Encode makes the answer's body, which is stored with the effect. An answer
	// with a secret is encrypted under a key that is derived from the caller's API
	// key: no secret is stored in plain text.
	Encode func(result any) ([]byte, error)
}

// IdempotencyRecord is a stored answer, scoped by tenant, principal and route. It
// is kept for [IdempotencyWindow].
type IdempotencyRecord struct {
	Tenant      string
	PrincipalID string
	Route       string
	Key         string
	// BodyHash is as in [IdempotencyRequest].
	BodyHash Hash
	// Body is the answer as Encode made it.
	Body []byte
	// CreatedAt begins the [IdempotencyWindow].
	CreatedAt time.Time
}

// IdempotencyWindow is how long an answer is kept under its key.
const IdempotencyWindow = 24 * time.Hour

// Replay is the error of a use case for a request that was already answered. Body
// holds the first answer.
type Replay struct{ Body []byte }

func (*Replay) Error() string { return "answered before under the same Idempotency-Key" }
