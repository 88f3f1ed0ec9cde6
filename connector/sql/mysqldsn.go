package sqlconn

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// parseMySQL reads mysql://user:password@host:port/database. The parameters are socket (a path
// instead of a host), tls (verify, or none on this host) and ca, cert and key (files). Without
// tls, a connection to another host is encrypted and verified; one to this host is not encrypted.
func parseMySQL(dsn, password string) (*mysql.Config, error) {
	u, query, err := serverURL("mysql", dsn, "socket", "tls", "ca", "cert", "key")
	if err != nil {
		return nil, err
	}
	cfg := mysql.NewConfig()
	cfg.User, cfg.Passwd = u.User.Username(), password
	if password == "" {
		cfg.Passwd, _ = u.User.Password()
	}
	if cfg.DBName = strings.TrimPrefix(u.Path, "/"); cfg.DBName == "" {
		return nil, errors.New("mysql: the address names no database")
	}
	local := true
	socket, host := query.Get("socket"), u.Hostname()
	switch {
	case (socket == "") == (host == ""):
		return nil, errors.New("mysql: the address needs a host, or a socket in its place")
	case socket != "":
		cfg.Net, cfg.Addr = "unix", socket
	default:
		port := u.Port()
		if port == "" {
			port = "3306"
		}
		cfg.Net, cfg.Addr = "tcp", net.JoinHostPort(host, port)
		local = isLoopback(host)
	}
	if cfg.TLS, err = mysqlTLS(host, local, query); err != nil {
		return nil, fmt.Errorf("mysql: %w", err)
	}
	cfg.Timeout = 10 * time.Second
	// Count the rows that an UPDATE finds, even if it sets the values that they already have.
	cfg.ClientFoundRows = true
	cfg.Collation = "utf8mb4_bin"
	cfg.ConnectionAttributes = "program_name:gatehouse"
	cfg.Logger = &mysql.NopLogger{} // each error is returned as well
	return cfg, nil
}

func mysqlTLS(host string, local bool, query url.Values) (*tls.Config, error) {
	switch mode := query.Get("tls"); {
	case mode != "" && mode != "verify" && mode != "none":
		return nil, errors.New("tls: must be verify or none")
	case mode == "none" && !local:
		return nil, errors.New("tls: none is for a server on this host only")
	case mode == "none" || mode == "" && local:
		for _, name := range slices.Sorted(maps.Keys(query)) {
			if name != "tls" && name != "socket" {
				return nil, fmt.Errorf("%s: needs tls=verify", name)
			}
		}
		return nil, nil
	case host == "":
		return nil, errors.New("tls: a socket has no host name to verify")
	}
	cfg, err := verifyTLS(host, query.Get("ca"))
	if err != nil {
		return nil, err
	}
	if cert, key := query.Get("cert"), query.Get("key"); cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("cert and key: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}
