package webpush

import (
	"crypto/ecdsa"
	"encoding/base64"
	"net/url"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// tokenLife is how long a token is valid; push services accept at most 24 hours (RFC 8292, section
// 2).
const tokenLife = 12 * time.Hour

// authorization is the value of the header Authorization, which identifies the sender to a push
// service (RFC 8292).
func authorization(key *ecdsa.PrivateKey, endpoint, contact string, now time.Time) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", err
	}
	options := (&jose.SignerOptions{}).WithType("JWT")
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, options)
	if err != nil {
		return "", err
	}
	origin := u.Scheme + "://" + strings.TrimSuffix(u.Host, ":443") // endpoints have the scheme https
	token, err := jwt.Signed(signer).Claims(struct {
		Audience string `json:"aud"`
		Expiry   int64  `json:"exp"`
		Subject  string `json:"sub"`
	}{origin, now.Add(tokenLife).Unix(), contact}).Serialize()
	if err != nil {
		return "", err
	}
	public, err := key.PublicKey.Bytes()
	if err != nil {
		return "", err
	}
	return "vapid t=" + token + ", k=" + base64.RawURLEncoding.EncodeToString(public), nil
}
