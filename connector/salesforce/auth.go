package salesforce

import (
	"cmp"
	"context"
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

// Salesforce does not return the validity of a token: the org's session settings define it, and it
// is 15 minutes at least. Salesforce accepts an assertion for three minutes.
const (
	tokenLife     = 10 * time.Minute
	assertionLife = 2 * time.Minute
)

// signIn fetches access tokens of the org.
type signIn struct {
	client *http.Client
	site   *url.URL
	auth   Auth
	secret string
	signer jose.Signer
}

func newSignIn(cfg Config, site *url.URL, client *http.Client, secrets func(string) (string, error)) (*signIn, error) {
	s := &signIn{client: client, site: site, auth: cfg.Auth}
	named, at := cfg.Auth.ClientSecret, "auth.client_secret"
	if named == nil {
		named, at = cfg.Auth.PrivateKey, "auth.private_key"
	}
	value, err := named.Value(at, secrets)
	if err != nil {
		return nil, err
	}
	if s.secret = strings.TrimSpace(value); s.secret == "" {
		return nil, fmt.Errorf("%s: is empty", at)
	}
	if cfg.Auth.PrivateKey == nil {
		return s, nil
	}
	key, err := parseKey(s.secret)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	s.secret = ""
	s.signer, err = jose.NewSigner(
		jose.SigningKey{Algorithm: jose.RS256, Key: key},
		(&jose.SignerOptions{}).WithType("JWT"),
	)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot sign", at)
	}
	return s, nil
}

func parseKey(text string) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("is not PEM")
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	private, ok := key.(*rsa.PrivateKey)
	if err != nil || !ok {
		return nil, errors.New("is not an RSA key")
	}
	return private, nil
}

// form is the form that requests a token: RFC 6749, section 4.4, or RFC 7523, section 2.1.
func (s *signIn) form() (url.Values, error) {
	if s.signer == nil {
		return url.Values{
			"grant_type": {"client_credentials"}, "client_id": {s.auth.ClientID}, "client_secret": {s.secret},
		}, nil
	}
	signed, err := s.signer.Sign([]byte(gatehouse.MustJSON(map[string]any{
		"iss": s.auth.ClientID, "sub": s.auth.Username, "aud": cmp.Or(s.auth.Audience, defaultAudience),
		"exp": time.Now().Add(assertionLife).Unix(),
	})))
	if err != nil {
		return nil, err
	}
	assertion, err := signed.CompactSerialize()
	if err != nil {
		return nil, err
	}
	return url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {assertion}}, nil
}

// fetch fetches a token. The request that needs it has not been sent, so every failure is of kind
// NotSent, or Transient for a clock_skew, which [rest.Token.Get] returns as NotSent. This includes
// refusals, because Salesforce also refuses valid credentials after too many sign-ins.
func (s *signIn) fetch(ctx context.Context) (string, time.Time, *connector.Error) {
	form, err := s.form()
	if err != nil {
		return "", time.Time{}, rest.NotSent("token_refused", "the assertion could not be signed")
	}
	u := *s.site
	u.Path += "/services/oauth2/token"
	r := rest.NewRequest(http.MethodPost, &u)
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Body, r.HasBody = []byte(form.Encode()), true
	a, err := rest.Send(ctx, s.client, r)
	if err != nil {
		failed := rest.Unanswered(ctx, err)
		failed.Kind = connector.NotSent
		return "", time.Time{}, failed
	}
	var got struct {
		AccessToken string `json:"access_token"`
		InstanceURL string `json:"instance_url"`
		Error       string `json:"error"`
	}
	decoded := json.Unmarshal(a.Body, &got)
	switch {
	case a.Status != http.StatusOK:
		detail := "no access token: " + a.Describe()
		if decoded == nil && codeForm.MatchString(got.Error) {
			detail += ", " + got.Error
		}
		failed := &connector.Error{
			Kind: connector.NotSent, Code: "token_refused", Detail: detail, RetryAfter: rest.RetryAfter(a.Header),
		}
		if s.signer != nil && a.Status < 500 {
			a.ClockSkew(failed)
		}
		return "", time.Time{}, failed
	case decoded != nil || got.AccessToken == "":
		return "", time.Time{}, rest.NotSent("token_refused", "the answer contains no access token")
	case !s.isSite(got.InstanceURL):
		// Without this check, the token would be sent to another org than the configured one.
		return "", time.Time{}, rest.NotSent(
			"token_refused",
			"the access token is for "+gatehouse.Quote(got.InstanceURL)+", which is not the configured site",
		)
	}
	return got.AccessToken, time.Now().Add(tokenLife), nil
}

func (s *signIn) isSite(instance string) bool {
	u, err := url.Parse(instance)
	return err == nil && strings.EqualFold(u.Host, s.site.Host) && u.Scheme == s.site.Scheme
}
