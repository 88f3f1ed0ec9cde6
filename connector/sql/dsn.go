package sqlconn

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
)

// serverURL reads scheme://user:password@host:port/database with the given parameters, each once at
// most. Its errors hold no part of the address, which can hold a password.
func serverURL(scheme, dsn string, parameters ...string) (*url.URL, url.Values, error) {
	unreadable := fmt.Errorf("%s: the address cannot be read: in %[1]s://user:password@host:port/database every "+
		"character of the user and the password but letters, digits and - . _ ~ must be percent-encoded, "+
		"such as @ as %%40, / as %%2F and %% as %%25", scheme)
	u, err := url.Parse(dsn)
	if err != nil || u.Opaque != "" || u.User.Username() == "" || strings.ContainsAny(u.Path, "@") ||
		strings.Contains(dsn, "#") {
		return nil, nil, unreadable
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, nil, unreadable
	}
	for name, values := range query {
		if !slices.Contains(parameters, name) || len(values) != 1 || values[0] == "" {
			last := len(parameters) - 1
			return nil, nil, fmt.Errorf("%s: the parameters are %s and %s, each once at most and not empty",
				scheme, strings.Join(parameters[:last], ", "), parameters[last])
		}
	}
	return u, query, nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// verifyTLS verifies the server by its name and the certificates of a file, or of the system.
func verifyTLS(host, ca string) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host}
	if ca == "" {
		return cfg, nil
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, fmt.Errorf("ca: %w", err)
	}
	cfg.RootCAs = x509.NewCertPool()
	if !cfg.RootCAs.AppendCertsFromPEM(pem) {
		return nil, errors.New("ca: the file has no certificate")
	}
	return cfg, nil
}
