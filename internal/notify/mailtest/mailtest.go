// Package mailtest is a mail server for tests: a real SMTP server with TLS that stores the received
// mails.
package mailtest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// Mail is one received message.
type Mail struct {
	From, To string
	Raw      []byte
	Header   mail.Header
	// Text and HTML are the decoded parts.
	Text, HTML string
}

// Subject is the decoded subject.
func (m *Mail) Subject() string {
	s, _ := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	return s
}

// Server stores mails.
type Server struct {
	Addr string
	// CA is the server's certificate, in PEM.
	CA string

	mu       sync.Mutex
	mails    []*Mail
	user     string
	password string
	rcpt     func(to string) error
	data     func() error
	news     chan struct{}
}

// Start serves until the test ends, with STARTTLS.
func Start(t testing.TB) *Server {
	t.Helper()
	return start(t, false)
}

// StartImplicit serves until the test ends, with TLS from the first byte.
func StartImplicit(t testing.TB) *Server {
	t.Helper()
	return start(t, true)
}

func start(t testing.TB, implicit bool) *Server {
	t.Helper()
	cert, ca := certificate(t)
	s := &Server{CA: ca, news: make(chan struct{}, 1)}
	server := smtp.NewServer(s)
	server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	server.Domain, server.ReadTimeout, server.WriteTimeout = "localhost", 10*time.Second, 10*time.Second
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Addr = listener.Addr().String()
	if implicit {
		listener = tls.NewListener(listener, server.TLSConfig)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return s
}

func certificate(t testing.TB) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "mailtest"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, string(ca)
}

// Recipients sets the answer to each recipient; nil accepts all.
func (s *Server) Recipients(answer func(to string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rcpt = answer
}

// AfterData sets the answer after a mail was stored; nil is success.
func (s *Server) AfterData(answer func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data = answer
}

// ErrHangup makes AfterData close the connection instead of answering.
var ErrHangup = errors.New("the connection is broken off")

// ErrLeave makes AfterData accept the mail, and then close the connection.
var ErrLeave = errors.New("the connection is closed after the answer")

// Require accepts mail only from this user from now on.
func (s *Server) Require(user, password string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.user, s.password = user, password
}

// Mails returns the stored mails.
func (s *Server) Mails() []*Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*Mail(nil), s.mails...)
}

// Await returns the mails once there are n, and fails the test after a time limit.
func (s *Server) Await(t testing.TB, n int) []*Mail {
	t.Helper()
	for end := time.After(30 * time.Second); ; {
		if mails := s.Mails(); len(mails) >= n {
			return mails
		}
		select {
		case <-s.news:
		case <-end:
			t.Fatalf("%d mails came, want %d", len(s.Mails()), n)
		}
	}
}

// NewSession implements smtp.Backend.
func (s *Server) NewSession(c *smtp.Conn) (smtp.Session, error) { return &session{s: s, c: c}, nil }

type session struct {
	s             *Server
	c             *smtp.Conn
	from, to      string
	authenticated bool
	leaves        bool
}

// AuthMechanisms implements smtp.AuthSession.
func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

// Auth implements smtp.AuthSession.
func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		s.s.mu.Lock()
		defer s.s.mu.Unlock()
		if s.authenticated = user == s.s.user && password == s.s.password; !s.authenticated {
			return smtp.ErrAuthFailed
		}
		return nil
	}), nil
}

// Reset implements smtp.Session. The server also calls it after its answer to a mail.
func (s *session) Reset() {
	if s.from, s.to = "", ""; s.leaves {
		_ = s.c.Conn().Close()
	}
}

func (s *session) Logout() error { return nil }

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if _, secure := s.c.TLSConnectionState(); !secure {
		return &smtp.SMTPError{Code: 530, EnhancedCode: smtp.EnhancedCode{5, 7, 0}, Message: "use STARTTLS first"}
	}
	s.s.mu.Lock()
	defer s.s.mu.Unlock()
	if s.s.user != "" && !s.authenticated {
		return smtp.ErrAuthRequired
	}
	s.from = from
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.s.mu.Lock()
	answer := s.s.rcpt
	s.s.mu.Unlock()
	if answer != nil {
		if err := answer(to); err != nil {
			return err
		}
	}
	s.to = to
	return nil
}

func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	m := &Mail{From: s.from, To: s.to, Raw: raw}
	if err := m.parse(); err != nil {
		return err
	}
	s.s.mu.Lock()
	s.s.mails = append(s.s.mails, m)
	answer := s.s.data
	s.s.mu.Unlock()
	select {
	case s.s.news <- struct{}{}:
	default:
	}
	if answer == nil {
		return nil
	}
	switch err = answer(); {
	case errors.Is(err, ErrLeave):
		s.leaves = true
		return nil
	case errors.Is(err, ErrHangup):
		_ = s.c.Conn().Close()
	}
	return err
}

func (m *Mail) parse() error {
	msg, err := mail.ReadMessage(bytes.NewReader(m.Raw))
	if err != nil {
		return err
	}
	m.Header = msg.Header
	kind, params, err := mime.ParseMediaType(msg.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		return err
	}
	for parts := multipart.NewReader(msg.Body, params["boundary"]); ; {
		p, err := parts.NextRawPart()
		if err == io.EOF { //nolint:errorlint // the package returns it unwrapped
			return nil
		}
		if err != nil {
			return err
		}
		text, err := io.ReadAll(quotedprintable.NewReader(p))
		if err != nil {
			return err
		}
		kind, _, _ := mime.ParseMediaType(p.Header.Get("Content-Type"))
		if kind == "text/html" {
			m.HTML = string(text)
		} else {
			m.Text = string(text)
		}
	}
}
