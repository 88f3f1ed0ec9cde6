// Package acmetest lets the built program fetch its certificate from Pebble, the ACME server that
// Let's Encrypt provides for testing clients. It is a separate module, so that the product does not
// depend on Pebble.
package acmetest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const domain = "gate.example.com"

// TestACME: the server gets a certificate after Pebble has verified by TLS-ALPN-01 that the domain
// leads to it. It keeps the certificate over a restart, and serves no other domain.
func TestACME(t *testing.T) {
	dir := t.TempDir()
	gatehouse := gatehouse(t, dir)
	pebble := build(t, dir, ".", "github.com/letsencrypt/pebble/v2/cmd/pebble")
	dns := build(t, dir, ".", "github.com/letsencrypt/pebble/v2/cmd/pebble-challtestsrv")

	cert, key := certificate(t, dir)
	acme, management, gate, names := free(t), free(t), free(t), free(t)
	_, gatePort, _ := net.SplitHostPort(gate)
	config := filepath.Join(dir, "pebble.json")
	write(t, config,
		fmt.Sprintf(`{"pebble": {"listenAddress": %q, "managementListenAddress": %q, "certificate": %q, "privateKey": %q,
		"httpPort": 1, "tlsPort": %s, "ocspResponderURL": "", "externalAccountBindingRequired": false}}`, acme, management,
			cert, key, gatePort))
	start(t, nil, dns, "-dnsserver", names, "-defaultIPv4", "127.0.0.1", "-defaultIPv6", "", "-http01", "", "-https01", "",
		"-tlsalpn01", "", "-doh", "", "-management", free(t))
	start(t, []string{"PEBBLE_VA_NOSLEEP=1"}, pebble, "-config", config, "-dnsserver", names)

	// The test trusts Pebble's own certificate for its API, and asks the API for its root.
	api := &http.Client{Timeout: 5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool(t, read(t, cert))}}}
	var root []byte
	await(t, "Pebble", func() error {
		resp, err := api.Get("https://" + management + "/roots/0")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		root, err = io.ReadAll(resp.Body)
		return err
	})

	data := filepath.Join(dir, "data")
	serve := func() *process {
		return start(t, []string{"SSL_CERT_FILE=" + cert}, gatehouse, "serve", "--data", data, "--listen", gate,
			"--acme-domain", domain, "--acme-directory", "https://"+acme+"/dir")
	}
	look := func(name string) (*x509.Certificate, error) {
		conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 5 * time.Second}, "tcp", gate,
			&tls.Config{ServerName: name, RootCAs: pool(t, root)})
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0], nil
	}
	server := serve()
	var first *x509.Certificate
	await(t, "a certificate", func() (err error) {
		first, err = look(domain)
		return err
	})
	if _, err := look("other.example.com"); err == nil {
		t.Error("a domain that was not named is served")
	}
	browser := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{ServerName: domain, RootCAs: pool(t, root)},
	}}
	resp, err := browser.Get("https://" + gate + "/signin")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.ProtoMajor != 2 {
		t.Errorf("/signin answers %s by %s", resp.Status, resp.Proto)
	}
	server.stop(t)
	if !strings.Contains(server.log.String(), "the certificate is in use") {
		t.Errorf("the log does not say so:\n%s", server.log)
	}

	// The certificate and its key are in the data folder, readable by the owner only.
	files, err := filepath.Glob(filepath.Join(data, "acme", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("nothing is kept: %v", err)
	}
	for _, name := range files {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	serve()
	await(t, "the certificate after a restart", func() error {
		again, err := look(domain)
		if err == nil && !again.Equal(first) {
			t.Errorf("a new certificate was asked for: %v, not %v", again.SerialNumber, first.SerialNumber)
		}
		return err
	})
}

// TestRefused: if the ACME server issues no certificate, the log says so, and nothing is served
// unencrypted meanwhile.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	gatehouse := gatehouse(t, dir)
	gate := free(t)
	server := start(t, nil, gatehouse, "serve", "--data", filepath.Join(dir, "data"), "--listen", gate,
		"--acme-domain", domain, "--acme-directory", "https://"+free(t)+"/dir", "--log-format", "json")
	await(t, "a word of it", func() error {
		for line := range strings.Lines(server.log.String()) {
			var said struct{ Level, Msg, Domain string }
			if json.Unmarshal([]byte(line), &said) == nil && said.Level == "ERROR" && said.Domain == domain {
				return nil
			}
		}
		return fmt.Errorf("not said in:\n%s", server.log)
	})
	if resp, err := http.Get("http://" + gate + "/readyz"); err == nil {
		resp.Body.Close()
		if resp.StatusCode < 400 {
			t.Errorf("plain HTTP answers %s", resp.Status)
		}
	}
}

// gatehouse is the program, built into a folder unless scripts/test has built it.
func gatehouse(t *testing.T, dir string) string {
	t.Helper()
	if built := os.Getenv("GATEHOUSE_BINARY"); built != "" {
		return built
	}
	return build(t, dir, "../..", "./cmd/gatehouse")
}

// build builds a command of the module in a folder.
func build(t *testing.T, dir, module, command string) string {
	t.Helper()
	out := filepath.Join(dir, filepath.Base(command))
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", out, command)
	cmd.Dir = module
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", command, err, text)
	}
	return out
}

// process is a program that runs until the test ends.
type process struct {
	cmd *exec.Cmd
	log *text
}

// text is the output of a program.
type text struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (x *text) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.all.Write(p)
}

func (x *text) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.all.String()
}

func start(t *testing.T, env []string, name string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(name, args...), log: &text{}}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.stop(t)
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(name), p.log)
		}
	})
	return p
}

func (p *process) stop(t *testing.T) {
	t.Helper()
	if p.cmd.ProcessState != nil {
		return
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	_ = p.cmd.Wait() // Pebble ends with the signal's error
}

func await(t *testing.T, what string, look func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if err = look(); err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, err)
}

// free is an address with an unused port, below those that the system gives to others meanwhile.
func free(t *testing.T) string {
	t.Helper()
	for range 1000 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+mathrand.IntN(10_000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// certificate makes the certificate of Pebble's own API.
func certificate(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "pebble"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter:    time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "pebble.pem"), filepath.Join(dir, "pebble-key.pem")
	write(t, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})))
	return cert, key
}

func pool(t *testing.T, roots []byte) *x509.CertPool {
	t.Helper()
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(roots) {
		t.Fatalf("no certificate in %q", roots)
	}
	return p
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
