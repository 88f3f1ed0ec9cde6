package gatehouse

import "time"

// IdempotencyRequest is a client's Idempotency-Key on one request.
type IdempotencyRequest struct {
	Key string
	// Route is the method and pattern, so that one key on two routes is two keys.
	Route string
	// BodyHash is SHA-256 over path and body, by which another body is told.
	BodyHash Hash
	// Encode makes the answer's body, to be stored with the effect. Where the
	// answer shows a secret, it seals what it makes, so that only the caller's
	// own key opens it: a secret is never stored so that it can be read.
	Encode func(result any) ([]byte, error)
}

// IdempotencyRecord is a stored answer, scoped by tenant, principal and route.
// It is kept 24 hours.
type IdempotencyRecord struct {
	Tenant      string
	PrincipalID string
	Route       string
	Key         string
	BodyHash    Hash
	Body        []byte
	CreatedAt   time.Time
}

// IdempotencyWindow is how long an answer is kept under its key.
const IdempotencyWindow = 24 * time.Hour

// Replay is the error by which a use case tells that the same request was
// answered before; Body is the first answer's.
type Replay struct{ Body []byte }

func (*Replay) Error() string { return "answered before under the same Idempotency-Key" }
