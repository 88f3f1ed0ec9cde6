package email

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	netmail "net/mail"
	"regexp"
	"strconv"
	"strings"

	"github.com/wneessen/go-mail"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// Config defines a connector of type email.
type Config struct {
	// Type is "email" or empty.
	Type string `yaml:"type"`
	// Tenants lists the tenants that may use the connector. The server enforces it, not the
	// connector.
	Tenants []string `yaml:"tenants"`
	// SMTP is the server, as HOST:PORT.
	SMTP string `yaml:"smtp" form:"first"`
	// TLS is starttls (the default), implicit, or none. None requires AllowPrivate
	// and no Username.
	TLS string `yaml:"tls"`
	// CA holds additional PEM certificates to trust.
	CA string `yaml:"ca"`
	// AllowPrivate permits a server at an internal address.
	AllowPrivate bool `yaml:"allow_private"`
	// Username signs in at the server.
	Username string `yaml:"username" form:"first"`
	// Password is the secret that holds the password, required with a Username.
	Password connector.Secret `yaml:"password" form:"first"`
	// From is the sender, such as Gatehouse <gate@acme.example>.
	From string `yaml:"from" form:"first"`
	// Recipients are addresses, domains such as "@acme.example", or "*" for anybody.
	Recipients []string `yaml:"recipients" form:"first"`
	// Floor is the minimum risk level of the operation send, 1 to 5; 3 by default.
	Floor gatehouse.RiskLevel `yaml:"floor"`
	// Timeout limits the whole SMTP dialogue, 30s by default.
	Timeout gatehouse.Span `yaml:"timeout"`
}

// addressForm is a bare ASCII address, without comments and quotes.
var addressForm = regexp.MustCompile(
	"^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\\.[A-Za-z0-9-]+)+$")

// validAddress reports whether s is a bare, unambiguous address.
func validAddress(s string) bool {
	a, err := netmail.ParseAddress(s)
	return len(s) <= 254 && addressForm.MatchString(s) && err == nil && a.Address == s && a.Name == ""
}

// server is the address of the mail server, with its TLS settings.
type server struct {
	host     string
	port     int
	implicit bool
	tls      *tls.Config
	policy   mail.TLSPolicy
}

func (c *Config) server() (server, error) {
	host, portText, err := net.SplitHostPort(c.SMTP)
	port, errPort := strconv.Atoi(portText)
	if err != nil || errPort != nil || host == "" || port < 1 || port > 65535 {
		return server{}, errors.New("smtp: must be HOST:PORT")
	}
	s := server{host: host, port: port, policy: mail.TLSMandatory}
	s.tls = &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		if s.tls.RootCAs, err = x509.SystemCertPool(); err != nil {
			return server{}, fmt.Errorf("ca: %w", err)
		}
		if !s.tls.RootCAs.AppendCertsFromPEM([]byte(c.CA)) {
			return server{}, errors.New("ca: holds no certificate in PEM")
		}
	}
	switch c.TLS {
	case "", "starttls":
	case "implicit":
		s.implicit = true
	case "none":
		if !c.AllowPrivate || c.Username != "" {
			return server{}, errors.New(
				"tls: none requires allow_private, and a server without authentication (no username)",
			)
		}
		s.policy = mail.NoTLS
	default:
		return server{}, errors.New("tls: must be starttls, implicit or none")
	}
	return s, nil
}

func (c *Config) validate() error {
	if c.Type != "" && c.Type != "email" {
		return fmt.Errorf("type: is %s, not email", gatehouse.Quote(c.Type))
	}
	if from, err := netmail.ParseAddress(c.From); err != nil || !validAddress(from.Address) {
		return errors.New("from: must be an address, such as Gatehouse <gate@acme.example>")
	}
	if len(c.Recipients) == 0 {
		return errors.New(`recipients: at least one is needed, such as "@acme.example"`)
	}
	for _, r := range c.Recipients {
		domain := strings.HasPrefix(r, "@") && validAddress("a"+r)
		if r != "*" && !domain && !validAddress(r) {
			return fmt.Errorf(
				"recipients: %s is neither an address nor a domain such as @acme.example", gatehouse.Quote(r),
			)
		}
	}
	if c.Floor != 0 && !c.Floor.Valid() {
		return errors.New("floor: must be 1 to 5")
	}
	if (c.Username == "") != (c.Password.Secret == "") {
		return errors.New("username and password must be set together")
	}
	return nil
}
