package github

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// useApp authenticates with installation tokens, which are valid for an hour.
func (c *Connector) useApp(cfg Config, key string) error {
	signer, err := appSigner(key)
	if err != nil {
		return err
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(cfg.Repositories)) {
		_, repository, _ := strings.Cut(name, "/")
		names = append(names, repository)
	}
	installation := rest.API{
		Client: c.api.Client, Base: c.api.Base, Header: c.api.Header,
		Credential: func(context.Context) (string, *connector.Error) {
			return assertion(signer, cfg.Auth.App.ClientID)
		},
	}
	path := "/app/installations/" + strconv.FormatInt(cfg.Auth.App.InstallationID, 10) + "/access_tokens"
	body := gatehouse.MustJSON(map[string]any{"repositories": names})
	c.api.UseToken(&rest.Token{Fetch: func(ctx context.Context) (string, time.Time, *connector.Error) {
		return fetch(ctx, &installation, path, body)
	}})
	return nil
}

func appSigner(key string) (jose.Signer, error) {
	invalid := errors.New("auth.app.private_key: is not an RSA key in PEM, as GitHub issues it")
	block, _ := pem.Decode([]byte(key))
	if block == nil {
		return nil, invalid
	}
	private, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		pkcs8, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		var ok bool
		if private, ok = pkcs8.(*rsa.PrivateKey); err != nil || !ok {
			return nil, invalid
		}
	}
	return jose.NewSigner(
		jose.SigningKey{Algorithm: jose.RS256, Key: private},
		(&jose.SignerOptions{}).WithType("JWT"),
	)
}

// assertion returns the Authorization header with the app's JWT. The JWT is dated a minute back,
// because clocks differ, and is valid for less than the 10 minutes that GitHub permits.
func assertion(signer jose.Signer, clientID string) (string, *connector.Error) {
	now := time.Now()
	signed, err := signer.Sign([]byte(gatehouse.MustJSON(map[string]any{
		"iat": now.Add(-time.Minute).Unix(), "exp": now.Add(8 * time.Minute).Unix(), "iss": clientID,
	})))
	if err == nil {
		var compact string
		if compact, err = signed.CompactSerialize(); err == nil {
			return "Bearer " + compact, nil
		}
	}
	return "", &connector.Error{
		Kind: connector.Terminal, Code: "token_refused", Detail: "the app's assertion could not be signed", Err: err,
	}
}

// fetch requests an installation token.
func fetch(
	ctx context.Context, api *rest.API, path string, body gatehouse.JSON,
) (string, time.Time, *connector.Error) {
	_, a, failed := api.Do(ctx, http.MethodPost, path, nil, nil, body)
	if failed != nil {
		return "", time.Time{}, failed
	}
	if a.Status != http.StatusCreated {
		failed = outcome(a)
		failed.Code, failed.Detail, failed.Says = "token_refused", "no installation token: "+a.Describe(), ""
		if a.Status == http.StatusUnauthorized {
			a.ClockSkew(failed)
		}
		return "", time.Time{}, failed
	}
	var got struct {
		Token     string    `json:"token"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	if err := json.Unmarshal(a.Body, &got); err != nil || got.Token == "" {
		return "", time.Time{}, &connector.Error{
			Kind:   connector.NotSent,
			Code:   "token_refused",
			Detail: "GitHub's answer contains no installation token",
		}
	}
	return got.Token, got.ExpiresAt, nil
}
