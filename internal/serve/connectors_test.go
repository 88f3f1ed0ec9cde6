package serve

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/internal/config"
)

// TestConnectorPages makes the connectors of the configurations that the pages of
// docs/connectors show.
func TestConnectorPages(t *testing.T) {
	pages, err := filepath.Glob("../../docs/connectors/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%v, %v", pages, err)
	}
	key, err := rsa.GenerateKey(rand.Reader, 3072)
	must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	private := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	secret := func(name string) (string, error) {
		if strings.HasSuffix(name, "_PRIVATE_KEY") {
			return private, nil
		}
		return "value-of-" + name, nil
	}
	authority := filepath.Join(t.TempDir(), "ca.pem")
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	if der, err = x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key); err != nil {
		t.Fatal(err)
	}
	must(t, os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	files := regexp.MustCompile(`ca_file: \S+`)
	references := regexp.MustCompile(`\$\{[A-Z_]+\}|file:[^\s}]+`)
	for _, page := range pages {
		src, err := os.ReadFile(page)
		must(t, err)
		made := 0
		for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(src, -1) {
			// The secrets that a page refers to do not exist here.
			c, err := config.Parse(page,
				files.ReplaceAll(references.ReplaceAll(block[1], []byte("x")), []byte("ca_file: "+authority)))
			if err != nil {
				t.Errorf("%v in\n%s", err, block[1])
				continue
			}
			for name, entry := range c.Connectors {
				if _, err := NewConnector(t.Context(), entry, secret); err != nil {
					t.Errorf("%s: %v in\n%s", name, err, block[1])
				}
				made++
			}
		}
		if made == 0 {
			t.Errorf("%s shows no connector", page)
		}
	}
}
