// Package mariatest gives tests databases on a real MariaDB server.
//
// The server is a private one on a unix socket in a temporary folder. Each test process starts
// it once, on first use, with the programs of Debian's mariadb-server-core and mariadb-client-core, which need no
// service. Without these programs the test fails: none is skipped in silence.
//
// A package that uses mariatest calls [Close] at the end of its TestMain.
package mariatest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"database/sql"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"os"
	osexec "os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/gatehouse-dev/gatehouse/internal/testserver"
)

const (
	// User owns the databases, and has rights on nothing else.
	User = "gatehouse_test"
	// Password is the user's, of characters that a URL must encode.
	Password = "p@ss/w?rd#%"
	// ServerName is the host name in the server's certificate.
	ServerName = "localhost"
)

// fastOptions has the server options for small, fast databases. They give up protection from power failures, and keep
// protection from crashes of the server.
var fastOptions = []string{
	"--innodb-flush-method=nosync", "--innodb-doublewrite=0", "--innodb-log-file-size=16M",
	"--innodb-buffer-pool-size=32M", "--skip-log-bin", "--skip-name-resolve",
	"--character-set-server=utf8mb4", "--collation-server=utf8mb4_general_ci",
}

// Server is a private server. Tests that stop the server have their own; all others share one
// through [Database].
type Server struct {
	*testserver.Host
	process *testserver.Process
}

var shared struct {
	once   sync.Once
	server *Server
	err    error
	count  atomic.Int64
}

// Close stops the shared server, if a test has started it.
func Close() error {
	if shared.server == nil {
		return nil
	}
	return shared.server.Close()
}

// Shared returns the server that the tests of a process share.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.once.Do(func() { shared.server, shared.err = New() })
	if shared.err != nil {
		t.Fatalf("mariatest: %v", shared.err)
	}
	return shared.server
}

// Database creates an empty database on the shared server for one test and returns its name.
func Database(t testing.TB) string {
	t.Helper()
	s := Shared(t)
	name := fmt.Sprintf("gatehouse_test_%d", shared.count.Add(1))
	if err := s.Create(name); err != nil {
		t.Fatalf("mariatest: %v", err)
	}
	return name
}

// New creates and starts a server.
func New() (_ *Server, err error) {
	install, err1 := osexec.LookPath("mariadb-install-db")
	if _, err2 := program(); err1 != nil || err2 != nil {
		return nil, fmt.Errorf("no MariaDB to test with: %w", errors.Join(err1, err2))
	}
	host, err := testserver.NewHost("gatehouse-maria-", "mysql", "nobody")
	if err != nil {
		return nil, err
	}
	s := &Server{Host: host}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	args := append([]string{
		"--no-defaults", "--datadir=" + s.data(), "--auth-root-authentication-method=normal", "--skip-test-db",
	}, fastOptions...)
	if out, err := s.Command(install, args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("mariadb-install-db: %w\n%s", err, out)
	}
	if err := s.certificate(); err != nil {
		return nil, err
	}
	if err := s.Up(); err != nil {
		return nil, err
	}
	return s, s.exec("CREATE USER " + User + " IDENTIFIED BY '" + Password + "'")
}

// program finds the server, which is not in every user's PATH.
func program() (string, error) {
	if _, err := os.Stat("/usr/sbin/mariadbd"); err == nil {
		return "/usr/sbin/mariadbd", nil
	}
	return osexec.LookPath("mariadbd")
}

func (s *Server) data() string { return filepath.Join(s.Dir, "data") }

// Socket is the server's unix socket.
func (s *Server) Socket() string { return filepath.Join(s.Dir, "socket") }

// CA is the file of the server's self-signed certificate.
func (s *Server) CA() string { return filepath.Join(s.Dir, "cert.pem") }

// Up starts the server and waits until it accepts connections.
func (s *Server) Up() error {
	binary, err := program()
	if err != nil {
		return err
	}
	temporary := filepath.Join(s.Dir, "tmp")
	if err := errors.Join(os.MkdirAll(temporary, 0o700), s.Own(temporary)); err != nil {
		return err
	}
	args := append([]string{
		"--no-defaults", "--datadir=" + s.data(), "--socket=" + s.Socket(), "--pid-file=" + filepath.Join(s.Dir, "pid"),
		"--skip-networking", "--max-connections=400",
		// A starting server deletes all temporary tables in this folder, also those of other servers.
		"--tmpdir=" + temporary,
		// Careless defaults on purpose: a program that relies on careful ones fails its tests.
		"--sql-mode=", "--default-time-zone=+05:00", "--transaction-isolation=READ-UNCOMMITTED",
		"--innodb-lock-wait-timeout=3000",
		"--ssl-cert=" + s.CA(), "--ssl-key=" + filepath.Join(s.Dir, "key.pem"),
	}, fastOptions...)
	if s.process, err = s.Start(s.Command(binary, args...)); err != nil {
		return err
	}
	return s.process.WaitReady(func(ctx context.Context) error {
		db, err := s.Root("")
		if err != nil {
			return err
		}
		defer db.Close()
		return db.PingContext(ctx)
	})
}

// Down kills the server, as in a crash.
func (s *Server) Down() error {
	if s.process == nil {
		return nil
	}
	err := s.process.Stop(syscall.SIGKILL)
	s.process = nil
	return err
}

// Close stops the server and removes its files.
func (s *Server) Close() error { return errors.Join(s.Down(), s.Remove()) }

// Create creates an empty database, and gives User all rights on it.
func (s *Server) Create(name string) error {
	return errors.Join(s.exec("CREATE DATABASE "+name), s.exec("GRANT ALL ON "+name+".* TO "+User))
}

// DSN returns the user's address of a database, for Gatehouse.
func (s *Server) DSN(database string) string {
	u := url.URL{Scheme: "mysql", User: url.UserPassword(User, Password), Path: "/" + database}
	u.RawQuery = url.Values{"socket": {s.Socket()}}.Encode()
	return u.String()
}

// Root opens a database as the superuser, who may see other sessions. One query may have several
// statements, || joins texts, and times are UTC.
func (s *Server) Root(database string) (*sql.DB, error) {
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr, cfg.DBName, cfg.MultiStatements = "root", "unix", s.Socket(), database, true
	cfg.Logger = &mysql.NopLogger{} // the server does not answer while it starts
	cfg.Params = map[string]string{"sql_mode": "'STRICT_ALL_TABLES,PIPES_AS_CONCAT'", "time_zone": "'+00:00'"}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

func (s *Server) exec(statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	db, err := s.Root("")
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, statement)
	return err
}

// certificate writes a self-signed certificate and its key.
func (s *Server) certificate() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: ServerName}, DNSNames: []string{ServerName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	for name, block := range map[string]*pem.Block{
		s.CA():                          {Type: "CERTIFICATE", Bytes: cert},
		filepath.Join(s.Dir, "key.pem"): {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := errors.Join(os.WriteFile(name, pem.EncodeToMemory(block), 0o600), s.Own(name)); err != nil {
			return err
		}
	}
	return nil
}
