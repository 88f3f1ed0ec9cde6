package rest

import (
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// TestReach: Reach connects and sends nothing.
func TestReach(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	trusting := NewClient(true)
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	trusting.Transport.(*http.Transport).TLSClientConfig.RootCAs = roots
	gone := httptest.NewServer(handler)
	gone.Close()
	for _, c := range []struct {
		name, address, says string
		client              *http.Client
	}{
		{"plain", plain.URL, "", NewClient(true)},
		{"TLS", secure.URL, "", trusting},
		{"a certificate that nobody trusts", secure.URL, "no TLS with", NewClient(true)},
		{"nobody listens", gone.URL, "no connection to", NewClient(true)},
		{"an internal address", plain.URL, "no connection to", NewClient(false)},
	} {
		u, err := url.Parse(c.address)
		if err != nil {
			t.Fatal(err)
		}
		err = Reach(t.Context(), c.client, u)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}
