package netsuite

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

const tokenPath = "/services/rest/auth/oauth2/v1/token"

// assertionLife is the validity of an assertion; NetSuite accepts less than an hour.
const assertionLife = 5 * time.Minute

// oauth2 fetches access tokens by the client credentials flow (RFC 6749, section 4.4) with a signed
// assertion (RFC 7523).
type oauth2 struct {
	rest.Token
	tokenURL *url.URL
	clientID string
	signer   jose.Signer
	client   *http.Client
	now      func() time.Time
}

func newOAuth2(cfg *OAuth2, key string, tokenURL *url.URL, client *http.Client, now func() time.Time) (*oauth2, error) {
	if cfg.ClientID == "" || cfg.CertificateID == "" {
		return nil, errors.New("needs client_id and certificate_id")
	}
	private, algorithm, err := parseKey(key)
	if err != nil {
		return nil, fmt.Errorf("private_key: %w", err)
	}
	options := (&jose.SignerOptions{}).WithType("JWT").WithHeader("kid", cfg.CertificateID)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: private}, options)
	if err != nil {
		return nil, errors.New("private_key: cannot sign")
	}
	o := &oauth2{tokenURL: tokenURL, clientID: cfg.ClientID, signer: signer, client: client, now: now}
	o.Fetch = o.fetch
	return o, nil
}

// parseKey parses a private key of a kind that NetSuite accepts.
func parseKey(text string) (crypto.Signer, jose.SignatureAlgorithm, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, "", errors.New("is not PEM")
	}
	var key any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		err = errors.ErrUnsupported
	}
	if err != nil {
		return nil, "", errors.New("is not a private key in PKCS #8, PKCS #1 or SEC 1")
	}
	switch k := key.(type) {
	case *rsa.PrivateKey:
		if bits := k.N.BitLen(); bits != 3072 && bits != 4096 {
			return nil, "", fmt.Errorf("has %d bits; NetSuite takes RSA of 3072 or 4096", bits)
		}
		return k, jose.PS256, nil
	case *ecdsa.PrivateKey:
		switch k.Curve.Params().BitSize {
		case 256:
			return k, jose.ES256, nil
		case 384:
			return k, jose.ES384, nil
		case 521:
			return k, jose.ES512, nil
		}
	}
	return nil, "", errors.New("must be RSA, or of the curve P-256, P-384 or P-521")
}

// fetch fetches a new token. The request that needs it has not been sent, so a failure is of kind
// NotSent; this includes refusals, because an overloaded account also refuses valid credentials.
func (o *oauth2) fetch(ctx context.Context) (string, time.Time, *connector.Error) {
	assertion, err := o.assertion()
	if err != nil {
		return "", time.Time{}, rest.NotSent("token_refused", "the assertion could not be signed")
	}
	token, expires, failure := rest.FetchToken(ctx, o.client, o.tokenURL, "", url.Values{
		"grant_type":            {"client_credentials"},
		"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
		"client_assertion":      {assertion},
	})
	if failure != nil {
		failure.Kind = connector.NotSent
	}
	return token, expires, failure
}

// assertion is the signed JWT. The scope names both interfaces, separated by a comma as NetSuite
// requires.
func (o *oauth2) assertion() (string, error) {
	now := o.now()
	signed, err := o.signer.Sign([]byte(gatehouse.MustJSON(map[string]any{
		"iss": o.clientID, "scope": "restlets,rest_webservices", "aud": o.tokenURL.String(),
		"iat": now.Unix(), "exp": now.Add(assertionLife).Unix(),
	})))
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}
