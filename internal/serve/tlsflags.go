package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/certs"
)

// tlsFlags name the source of a server's certificate. Without any of them, the
// server uses plain HTTP.
type tlsFlags struct {
	TLSCert       string   `name:"tls-cert" help:"Serve HTTPS with this certificate, PEM with its chain; read again when it changes, and on SIGHUP." env:"GATEHOUSE_TLS_CERT" placeholder:"FILE"`
	TLSKey        string   `name:"tls-key" help:"The certificate's key, PEM." env:"GATEHOUSE_TLS_KEY" placeholder:"FILE"`
	ACMEDomain    []string `name:"acme-domain" help:"Serve HTTPS with an ACME certificate for this domain, whose port 443 reaches this server. Accepts the ACME server's terms. Repeatable." env:"GATEHOUSE_ACME_DOMAIN" placeholder:"DOMAIN"`
	ACMEDirectory string   `name:"acme-directory" help:"The ACME server; Let's Encrypt by default." env:"GATEHOUSE_ACME_DIRECTORY" placeholder:"URL"`
}

// Validate is called by the parser.
func (f *tlsFlags) Validate() error {
	switch {
	case (f.TLSCert == "") != (f.TLSKey == ""):
		return errors.New("--tls-cert and --tls-key must be given together")
	case f.TLSCert != "" && len(f.ACMEDomain) > 0:
		return errors.New("--tls-cert and --acme-domain exclude each other")
	case f.ACMEDirectory != "" && len(f.ACMEDomain) == 0:
		return errors.New("--acme-directory needs --acme-domain")
	}
	for _, d := range f.ACMEDomain {
		if !strings.Contains(strings.Trim(d, "."), ".") || net.ParseIP(d) != nil || strings.ContainsAny(d, "*/: ") {
			return errors.New("--acme-domain: " + gatehouse.Quote(d) + " is not a domain such as gate.example.com")
		}
	}
	if u, err := url.Parse(f.ACMEDirectory); f.ACMEDirectory != "" && (err != nil || u.Scheme != "https" || u.Host == "") {
		return errors.New("--acme-directory must be an https address")
	}
	return nil
}

// certSource is the source of a server's certificate.
type certSource struct {
	files *certs.Files
	acme  *certs.ACME
}

// certificate returns the source that the flags name, nil for plain HTTP.
func (f *tlsFlags) certificate(data string, log *slog.Logger) (*certSource, error) {
	switch {
	case f.TLSCert != "":
		files, err := certs.NewFiles(f.TLSCert, f.TLSKey, log)
		return &certSource{files: files}, err
	case len(f.ACMEDomain) > 0:
		return &certSource{acme: certs.NewACME(f.ACMEDomain, f.ACMEDirectory, filepath.Join(data, "acme"))}, nil
	}
	return nil, nil
}

func (s *certSource) config() *tls.Config {
	if s.files != nil {
		return s.files.Config()
	}
	return s.acme.Config()
}

// keeper returns a function that obtains a certificate by ACME once, or reads the files again
// after each SIGHUP until ctx ends. It also handles a SIGHUP that came before the function's start.
func (s *certSource) keeper(ctx context.Context, log *slog.Logger) func() {
	if s.acme != nil {
		return func() { _ = s.acme.Obtain(ctx, log) } // logged; the next handshake tries again
	}
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	return func() {
		defer signal.Stop(hup)
		for {
			select {
			case <-ctx.Done():
				return
			case <-hup:
				if err := s.files.Reload(); err != nil {
					log.Warn("the certificate cannot be reloaded; the previous one stays in use", "error", err)
					continue
				}
				log.Info("the certificate was read again", "not_after", s.files.NotAfter())
			}
		}
	}
}

// reachable reports whether machines other than this one can reach an address.
func reachable(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return true
	}
	ip := net.ParseIP(host)
	return host != "localhost" && (ip == nil || !ip.IsLoopback())
}
