package httpconn_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	httpconn "github.com/gatehouse-dev/gatehouse/connector/http"
)

// TestSecretsAreRedactedHoweverTheyAreEscaped has a server that echoes a
// secret in the spellings that targets write it in.
func TestSecretsAreRedactedHoweverTheyAreEscaped(t *testing.T) {
	t.Parallel()
	const secret = `HEAD"c/d+e<f>&g\h'TAIL`
	quoted, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	echoes := map[string]string{
		"JSON":              fmt.Sprintf(`{"id":"x","you":%s}`, gatehouse.StringJSON(secret)),
		"JSON, as Go":       fmt.Sprintf(`{"id":"x","you":%s}`, quoted),
		"JSON, as PHP":      fmt.Sprintf(`{"id":"x","you":%s}`, strings.ReplaceAll(string(gatehouse.StringJSON(secret)), "/", `\/`)),
		"a member's name":   fmt.Sprintf(`{"id":"x",%s:1}`, gatehouse.StringJSON(secret)),
		"JSON that ends":    fmt.Sprintf(`{"id":"x","you":%s`, gatehouse.StringJSON(secret)),
		"Go's, that ends":   fmt.Sprintf(`{"id":"x","you":%s`, quoted),
		"PHP's, that ends":  fmt.Sprintf(`{"id":"x","you":%s`, strings.ReplaceAll(string(gatehouse.StringJSON(secret)), "/", `\/`)),
		"a page":            "<p>" + html.EscapeString(secret) + "</p>",
		"a query":           "you=" + url.QueryEscape(secret),
		"a path":            "/" + url.PathEscape(secret),
		"text":              secret,
		"Base64":            base64.StdEncoding.EncodeToString([]byte(secret)),
		"Base64 of a line":  base64.RawURLEncoding.EncodeToString([]byte("X-Key: " + secret)),
		"hexadecimal":       hex.EncodeToString([]byte(secret)),
		"at the end of 4 K": strings.Repeat("x", 4<<10-5) + secret,
	}
	for name, body := range echoes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCRM(t)
			s.breakWith(false, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", strings.Repeat("x", 512-8)+secret)
				fmt.Fprint(w, body)
			})
			cfg := s.config()
			res, _ := withOddSecret(t, cfg, secret).Execute(t.Context(), call(`{"status":"won"}`))
			got := string(res.ResponseMetadata)
			// These letters are the same however the secret is escaped.
			if strings.Contains(got, "HE") || strings.Contains(got, "TAIL") ||
				strings.Contains(got, base64.StdEncoding.EncodeToString([]byte(secret))[:12]) || strings.Contains(got, hex.EncodeToString([]byte("HEAD"))) {
				t.Errorf("the receipt shows %s", got)
			}
			if !strings.Contains(got, "[redact") {
				t.Errorf("the receipt does not say that something was taken out: %s", got)
			}
		})
	}
}

// What a check finds goes into the audit log, which forgets nothing.
func TestSecretsAreRedactedInWhatACheckFinds(t *testing.T) {
	t.Parallel()
	const secret = `ab"c/d`
	s := newCRM(t)
	s.fields["42"]["status"] = json.RawMessage(gatehouse.StringJSON("held by " + secret))
	c := withOddSecret(t, s.config(), secret)
	do := call(`{"status":"won"}`)
	do.Target.Version, do.CurrentState = "", `{"status":"open"}`
	state, err := c.Check(t.Context(), do)
	if err != nil || state.Matches {
		t.Fatalf("%+v, %v", state, err)
	}
	if want := gatehouse.JSON(`{"status":"held by [redacted]"}`); state.Actual != want {
		t.Errorf("found %s, want %s", state.Actual, want)
	}
}

// withOddSecret is a connector that sends a second secret, of any text.
func withOddSecret(t *testing.T, cfg httpconn.Config, secret string) *httpconn.Connector {
	t.Helper()
	cfg.Headers = map[string]httpconn.Value{"X-Key": {Secret: "ODD"}}
	c, err := httpconn.New(t.Context(), cfg, func(name string) (string, error) {
		if name == "ODD" {
			return secret, nil
		}
		return secrets(name)
	})
	if err != nil {
		t.Fatal(err)
	}
	return c.(*httpconn.Connector)
}
