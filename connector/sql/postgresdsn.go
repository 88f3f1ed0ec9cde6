package sqlconn

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse/internal/pgurl"
)

// postgresConfig reads a DSN. The driver would fill what is missing from PGPASSWORD, ~/.pgpass and other settings of
// the environment, which belong to the gate's own database: a connector gets none of them.
func postgresConfig(dsn string) (*pgx.ConnConfig, error) {
	if os.Getenv("PGSERVICE") != "" {
		return nil, errors.New("postgres: PGSERVICE is set, and would apply to this connector too: unset it, and give " +
			"the gate's own database by its URL")
	}
	parts, err := pgurl.Split(dsn)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	query := parts.Parameters
	for _, name := range []string{"service", "servicefile", "passfile"} {
		if query.Has(name) {
			return nil, fmt.Errorf("postgres: %s is not supported", name)
		}
	}
	whole := closed(dsn, parts, "prefer")
	if err := pgurl.Check(whole); err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	if parts.User == "" && query.Get("user") == "" {
		return nil, errors.New("postgres: the address names no user")
	}
	if parts.Hosts == "" && query.Get("host") == "" {
		return nil, errors.New("postgres: the address names no host")
	}
	cfg, err := pgx.ParseConfig(whole)
	if err == nil && !query.Has("sslmode") && !allLocal(cfg) {
		cfg, err = pgx.ParseConfig(closed(dsn, parts, "require"))
	}
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	if sendsInClear(cfg) {
		return nil, fmt.Errorf("postgres: sslmode: %s is for a server on this host only", query.Get("sslmode"))
	}
	if cfg.RuntimeParams["options"] == "" {
		delete(cfg.RuntimeParams, "options")
	}
	return cfg, nil
}

// sendsInClear reports whether the driver's first attempt at a server on another host is without TLS, as with
// sslmode=disable and sslmode=allow. It permits sslmode=prefer, by which a second attempt can be without TLS.
func sendsInClear(cfg *pgx.ConnConfig) bool {
	if cfg.TLSConfig == nil && !isLocal(cfg.Host) {
		return true
	}
	tried := map[string]bool{cfg.Host: true}
	for _, f := range cfg.Fallbacks {
		if f.TLSConfig == nil && !tried[f.Host] && !isLocal(f.Host) {
			return true
		}
		tried[f.Host] = true
	}
	return false
}

// allLocal reports whether all hosts are this one.
func allLocal(cfg *pgx.ConnConfig) bool {
	for _, f := range cfg.Fallbacks {
		if !isLocal(f.Host) {
			return false
		}
	}
	return isLocal(cfg.Host)
}

// isLocal reports whether a host is this one. An absolute path is a Unix socket on this host.
func isLocal(host string) bool { return filepath.IsAbs(host) || isLoopback(host) }

// closed adds the parameters that a DSN lacks, so that the driver takes none of them from the environment. mode is the
// default of sslmode.
func closed(dsn string, parts *pgurl.Parts, mode string) string {
	query := parts.Parameters
	rest := url.Values{"passfile": {""}}
	set := func(name, value string, given bool) {
		if !given && !query.Has(name) {
			rest.Set(name, value)
		}
	}
	set("password", "", parts.HasPassword)
	set("dbname", "", parts.Database != "" || query.Has("database"))
	// An IPv6 address has its colons in brackets. If there are several hosts, a host without a port has the default port.
	set("port", "5432", strings.Contains(parts.Hosts[strings.LastIndex(parts.Hosts, "]")+1:], ":") ||
		strings.Contains(parts.Hosts, ","))
	for name, value := range map[string]string{
		"options": "", "sslmode": mode, "sslcert": "", "sslkey": "", "sslrootcert": "", "sslpassword": "",
		"sslcertmode": "allow", "sslsni": "1", "sslnegotiation": "postgres", "target_session_attrs": "any",
	} {
		set(name, value, false)
	}
	dsn = strings.TrimSuffix(dsn, "?")
	separator := "?"
	if len(query) > 0 {
		separator = "&"
	}
	return dsn + separator + rest.Encode()
}

// postgresAddress is the address in the fingerprint: the user, all hosts, the database, and the settings of the
// session, such as search_path.
func postgresAddress(cfg *pgx.ConnConfig) string {
	places := []string{fmt.Sprintf("%s:%d", cfg.Host, cfg.Port)}
	for _, f := range cfg.Fallbacks { // with sslmode=prefer, a host is here twice
		if place := fmt.Sprintf("%s:%d", f.Host, f.Port); place != places[len(places)-1] {
			places = append(places, place)
		}
	}
	settings := url.Values{}
	for name, value := range cfg.RuntimeParams {
		if name != "application_name" {
			settings.Set(name, value)
		}
	}
	address := fmt.Sprintf("postgres:%s@%s/%s", cfg.User, strings.Join(places, ","), cfg.Database)
	if len(settings) > 0 {
		address += "?" + settings.Encode()
	}
	return address
}
