package proof

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/connector"
)

// skews are the credentials that name a time, and how a target refuses one whose time is wrong. change
// replaces the credentials of the mixture.
var skews = map[string]struct {
	of     string
	change []string
	status int
	body   string
	wait   connector.Kind
}{
	"SigV4": {"stepfunctions", nil, 400, `{"__type":"com.amazon#InvalidSignatureException"}`, connector.NotSent},
	"OAuth 1.0 of NetSuite": {"netsuite", nil, 401, `{"o:errorDetails":[{"o:errorCode":"INVALID_LOGIN"}]}`,
		connector.Transient},
	"OAuth 2.0 of NetSuite": {"netsuite", []string{
		"{tba: {consumer_key: {secret: fake}, consumer_secret: {secret: fake}, token: {secret: fake}, " +
			"token_secret: {secret: fake}}}",
		"{oauth2: {client_id: c, certificate_id: k, private_key: {secret: ec}}}",
	}, 400, `{"error":"invalid_grant"}`, connector.NotSent},
	"app of GitHub": {"github", []string{
		"{token: {secret: fake}}", "{app: {client_id: Iv1, installation_id: 7, private_key: {secret: rsa}}}",
	}, 401, `{"message":"'Expiration time' claim ('exp') is too far in the future"}`, connector.NotSent},
	"JWT of Salesforce": {"salesforce", []string{
		"client_secret: {secret: fake}", "username: gate@acme.example, private_key: {secret: rsa}",
	}, 400, `{"error":"invalid_grant","error_description":"expired"}`, connector.NotSent},
	"OAuth 1.0 of http": {"http", []string{
		"{bearer: {secret: fake}}",
		"{oauth1: {consumer_key: {secret: fake}, consumer_secret: {secret: fake}, token: {secret: fake}, " +
			"token_secret: {secret: fake}}}",
	}, 401, `{}`, connector.Transient},
}

// TestClockSkew: a target refuses a credential because this machine's clock is wrong. The failure says
// so, proves that nothing was changed, and permits another attempt. With the right clock, the same
// answer is an ordinary refusal.
func TestClockSkew(t *testing.T) {
	t.Parallel()
	keyRSA, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	keyEC, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	secrets := "secrets: {"
	for name, key := range map[string]any{"rsa": keyRSA, "ec": keyEC} {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		secrets += fmt.Sprintf("%s: %q, ", name, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	}
	for name, skew := range skews {
		for _, off := range []time.Duration{-time.Hour, 0, time.Hour} {
			t.Run(fmt.Sprint(name, " ", off), func(t *testing.T) {
				t.Parallel()
				s := newSubject(t, skew.of)
				configuration := "connectors:\n" + s.served()
				if skew.change != nil {
					changed := strings.Replace(configuration, skew.change[0], skew.change[1], 1)
					if changed == configuration {
						t.Fatal("the mixture has other credentials")
					}
					configuration = changed
				}
				c := connectTo(t, s.withSecret(configuration+secrets+"}\n"), skew.of, "")
				s.answers(func(w http.ResponseWriter, _ *http.Request) bool {
					w.Header().Set("Date", time.Now().Add(off).UTC().Format(http.TimeFormat))
					w.WriteHeader(skew.status)
					_, _ = w.Write([]byte(skew.body))
					return true
				})
				_, err := c.Execute(t.Context(), s.call)
				var failure *connector.Error
				switch {
				case !errors.As(err, &failure) || failure.Kind == connector.Ambiguous || s.total() != 0:
					t.Errorf("%v, %d effects", err, s.total())
				case (failure.Code == "clock_skew") != (off != 0):
					t.Errorf("%+v", failure)
				case off != 0 && (failure.Kind != skew.wait || !strings.Contains(failure.Detail, "clock")):
					t.Errorf("%+v", failure)
				}
			})
		}
	}
}
