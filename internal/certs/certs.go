// Package certs provides a server's certificate: from two files, which are read again when they
// change, or from an ACME server (RFC 8555).
package certs

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
)

// lookEvery is the minimum time between two checks of the files; handshakes make the checks.
const lookEvery = time.Second

// Files is a certificate with its key, from two PEM files. It is safe for concurrent use.
type Files struct {
	cert, key string
	log       *slog.Logger

	mu     sync.Mutex
	served *tls.Certificate
	stamp  string // state of the files when they were last read
	looked time.Time
}

// NewFiles reads the files. It fails if they are not a certificate with its key.
func NewFiles(cert, key string, log *slog.Logger) (*Files, error) {
	f := &Files{cert: cert, key: key, log: log}
	return f, f.Reload()
}

// Config returns the TLS configuration of a server with this certificate. It offers HTTP/2.
func (f *Files) Config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: f.get}
}

// Reload reads the files now. After an error, the previous certificate remains in use.
func (f *Files) Reload() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.read()
}

// NotAfter is the expiry of the current certificate.
func (f *Files) NotAfter() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.served.Leaf.NotAfter
}

func (f *Files) read() error {
	stamp := f.stampNow()
	f.looked = time.Now()
	c, err := tls.LoadX509KeyPair(f.cert, f.key)
	f.stamp = stamp
	if err != nil {
		return fmt.Errorf("certificate %s with key %s: %w", f.cert, f.key, err)
	}
	f.served = &c
	return nil
}

// stampNow returns a value that changes with the files.
func (f *Files) stampNow() string {
	stamp := ""
	for _, name := range []string{f.cert, f.key} {
		info, err := os.Stat(name)
		if err != nil {
			stamp += "-;"
			continue
		}
		stamp += fmt.Sprintf("%d %d;", info.ModTime().UnixNano(), info.Size())
	}
	return stamp
}

func (f *Files) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.looked) < lookEvery {
		return f.served, nil
	}
	f.looked = time.Now()
	if f.stampNow() == f.stamp {
		return f.served, nil
	}
	if err := f.read(); err != nil {
		f.log.Warn("a changed certificate cannot be read; the previous one stays in use", "error", err)
	} else {
		f.log.Info("the changed certificate is in use", "not_after", f.served.Leaf.NotAfter)
	}
	return f.served, nil
}

// ACME obtains certificates from an ACME server, by TLS-ALPN-01 (RFC 8737) on the server's own
// port. It renews them when a third of their lifetime is left, or 30 days if that is less.
type ACME struct {
	manager *autocert.Manager
	domains []string
}

// NewACME obtains certificates for these domains only. directory is the address of the ACME
// server, "" for Let's Encrypt. dir stores the account's key and the certificates. It accepts
// the terms of the ACME server.
func NewACME(domains []string, directory, dir string) *ACME {
	return &ACME{domains: domains, manager: &autocert.Manager{
		Prompt: autocert.AcceptTOS, HostPolicy: autocert.HostWhitelist(domains...), Cache: autocert.DirCache(dir),
		Client: &acme.Client{DirectoryURL: directory},
	}}
}

// Config returns the TLS configuration of a server with these certificates. It offers HTTP/2.
func (a *ACME) Config() *tls.Config {
	c := a.manager.TLSConfig()
	c.MinVersion = tls.VersionTLS12
	return c
}

// Obtain requests the missing certificates of all domains, so that the first visitor does not
// wait and errors appear early. The server must be listening. It returns the first error, and
// logs each.
func (a *ACME) Obtain(ctx context.Context, log *slog.Logger) (err error) {
	for _, domain := range a.domains {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c, failed := a.manager.GetCertificate(&tls.ClientHelloInfo{
			ServerName: domain, SignatureSchemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256},
			SupportedCurves: []tls.CurveID{tls.CurveP256}, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
		})
		if failed != nil {
			log.Error("no certificate from the ACME server", "domain", domain, "error", failed)
			if err == nil {
				err = failed
			}
			continue
		}
		log.Info("the certificate is in use", "domain", domain, "not_after", c.Leaf.NotAfter)
	}
	return err
}
