package serve

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"sync"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
)

// StoredSecret finds a secret of the store by tenant and name. The error says why
// there is no value, such as "is not set".
type StoredSecret func(tenant, name string) (string, error)

// NoStoredSecret is the StoredSecret of a program with a configuration but no store.
func NoStoredSecret(string, string) (string, error) {
	return "", errors.New("is in the store: run gatehouse doctor without --config and --data, which asks the server")
}

// Built is a connector made from an entry of the configuration.
type Built struct {
	// Connector is nil if it cannot be made without its secrets.
	Connector connector.Connector
	// Names are the names of the secrets that the connector requested.
	Names []string
	// Stored names the secrets of Tenant in the store that the connector uses.
	Stored []string
	Tenant string
	// Unready, if not nil, says why the target must not be called, such as a missing
	// secret. The connector can still describe its operations.
	Unready error
}

// Close closes the connector if it is an io.Closer.
func (b *Built) Close() error {
	if closer, ok := b.Connector.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}

// BuildConnector makes a connector from an entry, without calling its target. Once the connector has requested a
// secret of the store, a failure such as a bad or missing secret is not an error but makes the connector unready: it
// must not keep a server from starting. A connector that uses secrets of the store serves one tenant, and uses this
// tenant's secrets.
func BuildConnector(
	ctx context.Context, cfg *config.Config, entry config.Connector, stored StoredSecret,
) (*Built, error) {
	b := &Built{Tenant: ownTenant(entry)}
	used := map[string]bool{}
	create := func(value func(name string) (string, error)) (connector.Connector, error) {
		return NewConnector(ctx, entry, func(name string) (string, error) {
			if !slices.Contains(b.Names, name) {
				b.Names = append(b.Names, name)
			}
			in, ok := cfg.StoredSecrets[name]
			if entry.InStore() {
				in, ok = name, true
			}
			if !ok {
				return cfg.Secret(name)
			}
			used[in] = true
			return value(in)
		})
	}
	var missing error
	var values []string
	made, err := create(func(name string) (string, error) {
		value, err := stored(b.Tenant, name)
		if err != nil {
			missing = fmt.Errorf("secret %s %w", name, err)
			return "", missing
		}
		values = append(values, value)
		return value, nil
	})
	b.Connector = made
	if len(used) == 0 {
		return b, err
	}
	if len(entry.Tenants) > 1 || b.Tenant == dispatch.AllTenants {
		return b, errors.Join(fmt.Errorf("%s: secrets of the store belong to one tenant: list one under tenants, and make "+
			"a connector for each", entry.At()), b.Close())
	}
	switch {
	case missing != nil:
		b.Unready = missing
	case err != nil:
		b.Unready = errors.New(connector.NewRedactor(values).Text(err.Error()))
	}
	for _, placeholder := range placeholders {
		if b.Connector != nil {
			break
		}
		text := placeholder()
		if made, err := create(func(string) (string, error) { return text, nil }); err == nil {
			b.Connector = made
		}
	}
	b.Stored = slices.Sorted(maps.Keys(used))
	return b, nil
}

// targetOf is the target of a connector of the configuration or of the store.
func targetOf(name string, entry config.Connector, b *Built) dispatch.Target {
	return dispatch.Target{
		Name: name, Connector: b.Connector, Tenants: entry.Tenants, Unready: b.Unready, Stored: entry.InStore(),
		Concurrency: entry.CallLimit(),
	}
}

// connectors makes the connectors of the configuration.
func (n *Node) connectors(ctx context.Context) ([]dispatch.Target, error) {
	var targets []dispatch.Target
	for name, entry := range n.config.Connectors {
		b, err := n.secrets.add(ctx, name, entry)
		if err != nil {
			return nil, fmt.Errorf("connector %s: %w", name, err)
		}
		n.closers = append(n.closers, b)
		targets = append(targets, targetOf(name, entry, b))
	}
	return targets, nil
}

// ownTenant is the tenant whose stored secrets a connector can use.
func ownTenant(entry config.Connector) string {
	if len(entry.Tenants) > 0 {
		return entry.Tenants[0]
	}
	return gatehouse.DefaultTenant
}

// placeholders are secrets in the forms that connectors accept. A connector
// made with one describes its operations, and is never called.
var placeholders = []func() string{
	func() string { return "not-set" },
	func() string { return "sk_test_notset0000000000" },
	func() string { return "sk_live_notset0000000000" },
	sync.OnceValue(func() string {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		return pemOf(key, err)
	}),
	sync.OnceValue(func() string {
		key, err := rsa.GenerateKey(rand.Reader, 3072)
		return pemOf(key, err)
	}),
}

// pemOf returns a key with a self-signed certificate, "" after an error.
func pemOf(key crypto.Signer, err error) string {
	if err != nil {
		return ""
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return ""
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return ""
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})) +
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
}
