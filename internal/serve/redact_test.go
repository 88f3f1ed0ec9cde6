package serve

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/servetest"
)

// TestServerRedactsTheSecretsOfItsConfiguration: the secrets of each place in the file are redacted
// in what a target echoes, and config check does not print them.
func TestServerRedactsTheSecretsOfItsConfiguration(t *testing.T) {
	t.Parallel()
	cfg := servetest.Config(t, `
secrets: {crm: s3cr3t-token}
connectors:
  shop: {type: sql, dsn: "postgres://gate:s3cr3t-pass@127.0.0.1:1/shop", entities: {item: {table: items, key: sku}}}
  crm:
    type: http
    base_url: https://crm.example
    auth: {bearer: {secret: crm}}
    operations: {update: {method: POST, path: /s3cr3t-token, class: D}}
`)
	l := &ConfigChecker{Offline: true}
	l.All(t.Context(), cfg)
	delete(cfg.Connectors, "crm")
	n := openNode(t, cfg)
	defer n.Close()
	for _, secret := range []string{"s3cr3t-token", "s3cr3t-pass"} {
		for _, echo := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret))} {
			if got := n.Registry.RedactText("default", "you sent "+echo); got != "you sent [redacted]" {
				t.Errorf("%s: %q", echo, got)
			}
		}
		for _, c := range l.Checks {
			if strings.Contains(c.Detail, secret) {
				t.Errorf("config check prints %q", c.Detail)
			}
		}
	}
}
