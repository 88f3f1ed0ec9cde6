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
	parts, query, err := postgresParts(dsn)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	for _, name := range []string{"service", "servicefile", "passfile"} {
		if query.Has(name) {
			return nil, fmt.Errorf("postgres: %s is not supported", name)
		}
	}
	whole := closed(dsn, parts, query, "prefer")
	if err := pgurl.Check(whole); err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	if parts.user == "" && query.Get("user") == "" {
		return nil, errors.New("postgres: the address names no user")
	}
	if parts.hosts == "" && query.Get("host") == "" {
		return nil, errors.New("postgres: the address names no host")
	}
	cfg, err := pgx.ParseConfig(whole)
	if err == nil && !query.Has("sslmode") && !allLocal(cfg) {
		cfg, err = pgx.ParseConfig(closed(dsn, parts, query, "require"))
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

// dsnParts are parts of postgres://user:password@host:port,host:port/database.
type dsnParts struct {
	user, hosts, database string
	hasPassword           bool
}

// postgresParts splits a DSN as the driver does: user and password end at the first @ before a slash. net/url refuses
// several hosts.
func postgresParts(dsn string) (p dsnParts, query url.Values, err error) {
	_, rest, _ := strings.Cut(dsn, "://")
	if i := strings.IndexAny(rest, "@/"); i >= 0 && rest[i] == '@' {
		p.user, _, p.hasPassword = strings.Cut(rest[:i], ":")
		rest = rest[i+1:]
	}
	rest, parameters, _ := strings.Cut(rest, "?")
	p.hosts, p.database, _ = strings.Cut(rest, "/")
	if query, err = url.ParseQuery(parameters); err != nil {
		err = errors.New("the parameters after the ? cannot be read")
	}
	return p, query, err
}

// closed adds the parameters that a DSN lacks, so that the driver takes none of them from the environment. mode is the
// default of sslmode.
func closed(dsn string, parts dsnParts, query url.Values, mode string) string {
	rest := url.Values{"passfile": {""}}
	set := func(name, value string, given bool) {
		if !given && !query.Has(name) {
			rest.Set(name, value)
		}
	}
	set("password", "", parts.hasPassword)
	set("dbname", "", parts.database != "" || query.Has("database"))
	// An IPv6 address has its colons in brackets. If there are several hosts, a host without a port has the default port.
	set("port", "5432", strings.Contains(parts.hosts[strings.LastIndex(parts.hosts, "]")+1:], ":") ||
		strings.Contains(parts.hosts, ","))
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
