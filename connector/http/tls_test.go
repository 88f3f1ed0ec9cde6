package httpconn_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	httpconn "github.com/gatehouse-dev/gatehouse/connector/http"
)

// clientPair makes a self-signed client certificate and its key, as PEM.
func clientPair(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	connectortest.Must(t, err)
	now := time.Now()
	of := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, of, of, private.Public(), private)
	connectortest.Must(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	connectortest.Must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}

// TestClientCertificate calls a server that requires the client's certificate.
func TestClientCertificate(t *testing.T) {
	t.Parallel()
	certificate, key := clientPair(t)
	_, otherKey := clientPair(t)
	var served atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		served.Add(1)
		fmt.Fprint(w, `{}`)
	}))
	known := x509.NewCertPool()
	known.AppendCertsFromPEM([]byte(certificate))
	s.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: known}
	s.StartTLS()
	t.Cleanup(s.Close)
	authority := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	connectortest.Must(t, os.WriteFile(authority, text, 0o600))

	pair := &httpconn.ClientCertificate{Cert: connector.Secret{Secret: "CERT"}, Key: connector.Secret{Secret: "KEY"}}
	cfg := httpconn.Config{
		BaseURL: s.URL, AllowPrivate: true, CAFile: authority, ClientCertificate: pair,
		Operations: map[string]httpconn.Operation{"update": {Method: "POST", Path: "/x"}},
	}
	secrets := map[string]string{"CERT": certificate, "KEY": key}
	of := func(name string) (string, error) { return secrets[name], nil }
	c, err := httpconn.New(t.Context(), cfg, of)
	connectortest.Must(t, err)
	if _, err := c.Execute(t.Context(), call(`{}`)); err != nil || served.Load() != 1 {
		t.Errorf("%v, and %d calls were served", err, served.Load())
	}

	without := cfg
	without.ClientCertificate = nil
	plain, err := httpconn.New(t.Context(), without, of)
	connectortest.Must(t, err)
	if _, err := plain.Execute(t.Context(), call(`{}`)); err == nil || served.Load() != 1 {
		t.Errorf("without a certificate: %v, and %d calls were served", err, served.Load())
	}
	if plain.Fingerprint() == c.Fingerprint() {
		t.Error("the certificate is not part of the fingerprint")
	}

	secrets["KEY"] = otherKey
	if _, err := httpconn.New(t.Context(), cfg, of); err == nil || strings.Contains(err.Error(), "PRIVATE") {
		t.Errorf("the key of another certificate: %v", err)
	}
	secrets["CERT"], secrets["KEY"] = clientPair(t)
	renewed, err := httpconn.New(t.Context(), cfg, of)
	if err != nil || renewed.Fingerprint() != c.Fingerprint() {
		t.Errorf("a renewed certificate changes the fingerprint: %v", err)
	}
	cfg.BaseURL = "http://127.0.0.1"
	if _, err := httpconn.New(t.Context(), cfg, of); err == nil || !strings.Contains(err.Error(), "https") {
		t.Errorf("over plain http: %v", err)
	}
}
