package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/config"
)

// TestSecretValues has a secret in each place that a file may hold one in.
func TestSecretValues(t *testing.T) {
	t.Setenv("CRM_TOKEN", "from-a-variable")
	t.Setenv("SHOP_HOST", "db.internal")
	dir := t.TempDir()
	for name, text := range map[string]string{"crm": "from-a-file\n", "api-token": "from-another-file\n",
		"region": "eu-central\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := config.Parse(filepath.Join(dir, "gatehouse.yaml"), []byte(`
secrets: {crm: "file:crm", literal: written-down}
connectors:
  shop: {type: sql, dsn: "postgres://gate:p%40ssword@${SHOP_HOST}/shop?sslpassword=of-the-key",
    entities: {item: {table: items, key: sku}}}
  stock: {type: sql, dsn: 'postgres://gate:what?#^[]"<é@db.internal/shop', entities: {item: {table: items, key: sku}}}
  ledger: {type: sql, dsn: 'mysql://gate:no#url@db.internal/shop', entities: {item: {table: items, key: sku}}}
  crm: {type: http, base_url: "https://crm.example", headers: {X-Token: "Token ${CRM_TOKEN}",
    X-More: "file:api-token", X-Region: "file:region"}}
nats: {url: "nats://gate:of-the-bus@nats.internal:4222,nats://gate:of-another%21@db.internal:4222"}
sign_in:
  public_url: https://gate.example
  oidc: [{name: acme, issuer: "https://id.example", client_id: gate, client_secret: of-the-provider}]
`))
	if err != nil {
		t.Fatal(err)
	}
	got := c.SecretValues()
	for _, want := range []string{
		"from-a-file", "written-down", "from-a-variable", "from-another-file", "p@ssword", "of-the-key", "of-the-bus",
		"of-another!", "of-the-provider", `what?#^[]"<é`, "no#url",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not among %q", want, got)
		}
	}
	for _, plain := range []string{"db.internal", "eu-central", "gate"} {
		if slices.Contains(got, plain) {
			t.Errorf("%s is no secret", plain)
		}
	}
}
