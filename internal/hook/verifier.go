package hook

import (
	"net/http"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Verifier verifies webhooks against secrets that workflows name.
type Verifier struct {
	secret func(name string) (string, error)
}

// NewVerifier makes a verifier; secret returns the value of a configured secret by its name.
func NewVerifier(secret func(name string) (string, error)) *Verifier { return &Verifier{secret} }

// Verify verifies a webhook with the function [Verify] and the named secret, and makes the input of a
// run with [Input]. If the secret has no value, the error has code internal.
func (v *Verifier) Verify(
	kind, secret string, h http.Header, body []byte, now time.Time,
) (delivery string, input gatehouse.JSON, err error) {
	value, err := v.secret(secret)
	if err != nil {
		return "", "", gatehouse.E(gatehouse.CodeInternal, "the secret of this webhook is not configured").Because(err)
	}
	d, err := Verify(kind, []byte(value), h, body, now)
	if err != nil {
		return "", "", err
	}
	input, err = Input(h, d, body)
	return d.ID, input, err
}
