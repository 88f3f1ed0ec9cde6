package netsuite

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

const tokenPath = "/services/rest/auth/oauth2/v1/token"

const (
	// assertionLife is how long an assertion is good for; NetSuite takes less than
	// an hour.
	assertionLife = 5 * time.Minute
	// tokenSlack is how long before its end a token is not used any more.
	tokenSlack = 2 * time.Minute
	// tokenWait is the least time between two requests for a token after one was
	// refused.
	tokenWait = 10 * time.Second
)

// oauth2 gets access tokens by the client credentials flow (RFC 6749, section 4.4)
// with a signed assertion (RFC 7523). One request at a time gets a token for all.
type oauth2 struct {
	tokenURL *url.URL
	clientID string
	signer   jose.Signer
	client   *http.Client
	now      func() time.Time
	// turn is held while token is used or renewed.
	turn    chan struct{}
	token   string
	until   time.Time
	refused *connector.Error
	again   time.Time
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
	return &oauth2{
		tokenURL: tokenURL, clientID: cfg.ClientID, signer: signer, client: client, now: now,
		turn: make(chan struct{}, 1),
	}, nil
}

// parseKey reads a private key of a kind that NetSuite takes.
func parseKey(text string) (crypto.Signer, jose.SignatureAlgorithm, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, "", errors.New("is no PEM")
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
		err = errors.New("another kind")
	}
	if err != nil {
		return nil, "", errors.New("is no private key of PKCS #8, PKCS #1 or SEC 1")
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

// bearer returns a token that is good now. Errors are *connector.Error of kind
// NotSent: what wanted the token has not been sent.
func (o *oauth2) bearer(ctx context.Context) (string, error) {
	select {
	case o.turn <- struct{}{}:
	case <-ctx.Done():
		return "", rest.NotSent("timeout", "the time was over before there was an access token")
	}
	defer func() { <-o.turn }()
	switch now := o.now(); {
	case o.token != "" && now.Before(o.until):
		return o.token, nil
	case o.refused != nil && now.Before(o.again):
		return "", o.refused
	}
	token, life, failure := o.fetch(ctx)
	if failure != nil {
		if failure.Code == "token_refused" {
			o.refused, o.again = failure, o.now().Add(tokenWait)
		}
		return "", failure
	}
	o.token, o.until, o.refused = token, o.now().Add(max(0, life-tokenSlack)), nil
	return token, nil
}

// forget drops a token that was refused, unless there is another by now.
func (o *oauth2) forget(ctx context.Context, token string) {
	select {
	case o.turn <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-o.turn }()
	if o.token == token {
		o.token = ""
	}
}

func (o *oauth2) fetch(ctx context.Context) (token string, life time.Duration, failure *connector.Error) {
	assertion, err := o.assertion()
	if err != nil {
		return "", 0, rest.NotSent("token_refused", "the assertion could not be signed")
	}
	r := rest.NewRequest(http.MethodPost, o.tokenURL)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	r.Body, r.HasBody = []byte(url.Values{
		"grant_type":            {"client_credentials"},
		"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
		"client_assertion":      {assertion},
	}.Encode()), true
	a, err := rest.Send(ctx, o.client, r)
	if err != nil {
		failure = rest.Unanswered(ctx, err)
		if failure.Kind == connector.Ambiguous {
			failure.Kind = connector.NotSent
		}
		failure.Detail = "no access token: " + failure.Detail
		return "", 0, failure
	}
	var answer struct {
		AccessToken string      `json:"access_token"`
		TokenType   string      `json:"token_type"`
		ExpiresIn   json.Number `json:"expires_in"`
		Error       string      `json:"error"`
	}
	err = json.NewDecoder(bytes.NewReader(a.Body)).Decode(&answer)
	seconds, errLife := answer.ExpiresIn.Int64()
	switch {
	case a.Status >= 500 || a.Status == http.StatusTooManyRequests:
		failure = rest.NotSent("token_unavailable", "no access token: "+a.Describe())
		failure.RetryAfter = rest.RetryAfter(a.Header)
	case a.Status != http.StatusOK:
		why := a.Describe()
		if answer.Error != "" {
			why += ", " + gatehouse.Quote(answer.Error)
		}
		failure = rest.NotSent("token_refused", "no access token: "+why)
	case err != nil || a.Cut != "" || answer.AccessToken == "" || !strings.EqualFold(answer.TokenType, "Bearer") ||
		strings.ContainsFunc(answer.AccessToken, func(r rune) bool { return r <= ' ' || r > '~' }):
		failure = rest.NotSent("token_unavailable", "no access token: the answer has none that can be read")
	case errLife != nil || seconds <= 0:
		seconds = 0 // good for this one request
	}
	return answer.AccessToken, time.Duration(min(seconds, 24*3600)) * time.Second, failure
}

// assertion is the signed JWT. The scope names both ways in, as NetSuite wants it:
// with a comma.
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
