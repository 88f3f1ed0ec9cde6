package cli

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// writeCertificate writes a self-signed certificate for 127.0.0.1, and its key.
func writeCertificate(t *testing.T, dir string, serial int64) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "gate"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{keyFile: {Type: "PRIVATE KEY", Bytes: der},
		certFile: {Type: "CERTIFICATE", Bytes: cert}} {
		must(t, os.WriteFile(name, pem.EncodeToMemory(block), 0o600))
	}
	return certFile, keyFile
}

// serveForTest serves until the test ends; lines are the messages of the log.
func serveForTest(t *testing.T, args ...string) (url string, lines <-chan string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	g, _, _ := testGlobals(t)
	g.Ctx, g.Stderr = ctx, w
	ended := make(chan int, 1)
	go func() {
		ended <- run(*g,
			append([]string{"serve", "--log-format", "json", "--data", filepath.Join(t.TempDir(), "data"), "--listen",
				"127.0.0.1:0"}, args...))
		_ = w.Close()
	}()
	messages, address := make(chan string, 100), make(chan string, 1)
	go func() {
		defer close(address)
		for s := bufio.NewScanner(r); s.Scan(); {
			var line struct{ Msg, URL string }
			if json.Unmarshal(s.Bytes(), &line) != nil {
				line.Msg = s.Text()
			}
			if line.Msg == "serving" {
				address <- line.URL
			}
			select {
			case messages <- line.Msg:
			default: // more than anybody reads
			}
		}
	}()
	t.Cleanup(func() {
		stop()
		if code := <-ended; code != term.ExitDone {
			t.Errorf("serve ended with %d", code)
		}
	})
	url, ok := <-address
	if !ok {
		t.Fatal("the server did not start")
	}
	return url, messages
}

// awaitLine waits for a message of the log with this beginning.
func awaitLine(t *testing.T, lines <-chan string, prefix string) {
	t.Helper()
	for deadline := time.After(20 * time.Second); ; {
		select {
		case line := <-lines:
			if strings.HasPrefix(line, prefix) {
				return
			}
		case <-deadline:
			t.Fatalf("the log never says %q", prefix)
		}
	}
}

// TestServeTLS serves with a certificate of files, which are read again when they change and on SIGHUP.
// A broken file is never used: the server keeps the previous certificate.
func TestServeTLS(t *testing.T) { // not parallel: the signal is the process's
	dir := t.TempDir()
	cert, key := writeCertificate(t, dir, 1)
	url, lines := serveForTest(t, "--tls-cert", cert, "--tls-key", key)
	if !strings.HasPrefix(url, "https://") {
		t.Fatalf("it serves on %s", url)
	}
	serial := func() int64 {
		t.Helper()
		c := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
			DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // the test compares serials
		}}
		resp, err := c.Get(url + "/readyz")
		must(t, err)
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("/readyz answers %s", resp.Status)
		}
		return resp.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	if got := serial(); got != 1 {
		t.Fatalf("serves certificate %d", got)
	}
	if resp, err := http.Get("http://" + strings.TrimPrefix(url, "https://") + "/readyz"); err == nil {
		resp.Body.Close()
		if resp.StatusCode < 400 {
			t.Errorf("plain HTTP answers %s", resp.Status)
		}
	}
	for address, want := range map[string]string{
		url: "SSL_CERT_FILE", "http://" + strings.TrimPrefix(url, "https://"): "its address begins with https://",
	} {
		g, _, errOut := testGlobals(t)
		if code := run(*g, []string{"list", "--url", address, "--key", "gth_x"}); code == term.ExitDone ||
			!strings.Contains(errOut.String(), want) {
			t.Errorf("a client at %s: exit code %d, %s", address, code, errOut)
		}
	}

	writeCertificate(t, dir, 2)
	must(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	awaitLine(t, lines, "the certificate was read again")
	if got := serial(); got != 2 {
		t.Errorf("after SIGHUP it serves certificate %d", got)
	}
	must(t, os.WriteFile(cert, []byte("half"), 0o600))
	time.Sleep(1100 * time.Millisecond) // how often handshakes check the files
	if got := serial(); got != 2 {
		t.Errorf("with a broken file it serves certificate %d", got)
	}
	awaitLine(t, lines, "a changed certificate cannot be read")
	writeCertificate(t, dir, 3)
	time.Sleep(1100 * time.Millisecond)
	if got := serial(); got != 3 {
		t.Errorf("after a change it serves certificate %d", got)
	}
}

// TestServeWarnsOfPlainHTTP: other machines' keys would travel in the clear.
func TestServeWarnsOfPlainHTTP(t *testing.T) {
	t.Parallel()
	const warning = "serving plain HTTP to other machines"
	_, lines := serveForTest(t, "--listen", "0.0.0.0:0")
	awaitLine(t, lines, warning)
}

func TestTLSFlags(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "none.pem")
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{term.ExitUsage, "must be given together", []string{"--tls-cert", "x"}},
		{term.ExitUsage, "exclude each other", []string{"--tls-cert", "x", "--tls-key", "y", "--acme-domain",
			"gate.example.com"}},
		{term.ExitUsage, "needs --acme-domain", []string{"--acme-directory", "https://acme.example/dir"}},
		{term.ExitUsage, "is not a domain", []string{"--acme-domain", "gate"}},
		{term.ExitUsage, "is not a domain", []string{"--acme-domain", "192.0.2.1"}},
		{term.ExitUsage, "must be an https address", []string{"--acme-domain", "gate.example.com", "--acme-directory",
			"http://acme.example/dir"}},
		{term.ExitError, "none.pem", []string{"--tls-cert", missing, "--tls-key", missing}},
	} {
		g, _, words := testGlobals(t)
		if code := run(*g,
			append([]string{"serve", "--data", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0"},
				c.args...)); code != c.code || !strings.Contains(words.String(), c.says) {
			t.Errorf("%q: exit code %d: %s", c.args, code, words)
		}
	}
}
