// Package pgurl checks the address of a PostgreSQL database before it is used. Unescaped
// characters of a password can be parsed as a host, a port or a database, which occur in errors
// and logs.
package pgurl

import (
	"errors"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

var (
	errURL = errors.New(
		"the database's address cannot be read: in postgres://user:password@host:port/database every character of user " +
			"and password except letters, digits and - . _ ~ must be percent-encoded, such as @ as %40, / as %2F and % as %25")
	errKeywordValue = errors.New(
		"the database's address cannot be read: it is postgres://user:password@host:port/database, or words such as " +
			"host=db password='…', in which a value with a space has single quotes")
)

var (
	name = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)
	port = regexp.MustCompile(`^(.*\])?[^:\]]*(:[0-9]*)?$`)
	// mayContainAt lists the parameters in whose values an @ is common.
	mayContainAt = map[string]bool{"user": true, "password": true, "options": true, "application_name": true}
)

// Check refuses an address that cannot be parsed, a URL in which a part of the password may be
// parsed as something else, and an address with a runtime parameter whose name is not valid. Its errors contain
// no part of the address except values of parameters.
func Check(address string) error {
	rest, isURL := cutScheme(address)
	if isURL && !plain(rest) {
		return errURL
	}
	config, err := pgxpool.ParseConfig(address)
	var parse *pgconn.ParseConfigError
	switch {
	case err == nil:
		for n := range config.ConnConfig.RuntimeParams {
			if !name.MatchString(n) {
				return errKeywordValue
			}
		}
		return nil
	case !errors.As(err, &parse):
		return err
	}
	// The driver's message quotes the address and tries to remove the password. Use only the
	// text after the address.
	text := err.Error()
	text = text[strings.LastIndex(text, "`: ")+len("`: "):]
	switch {
	case !strings.HasPrefix(text, "failed to parse as "):
		return errors.New("the database's address cannot be used: " + text)
	case isURL:
		return errURL
	}
	return errKeywordValue
}

func cutScheme(address string) (rest string, isURL bool) {
	for _, scheme := range []string{"postgres://", "postgresql://"} {
		if rest, isURL = strings.CutPrefix(address, scheme); isURL {
			break
		}
	}
	return rest, isURL
}

// plain reports whether the part after the scheme can be parsed in only one way. As in libpq,
// the user and the password end at the first @ before a slash.
func plain(rest string) bool {
	if i := strings.IndexAny(rest, "@/"); i >= 0 && rest[i] == '@' {
		rest = rest[i+1:]
	}
	rest, query, _ := strings.Cut(rest, "?")
	if strings.ContainsAny(rest, "@#") {
		return false
	}
	hosts, _, _ := strings.Cut(rest, "/")
	for host := range strings.SplitSeq(hosts, ",") {
		if !port.MatchString(host) {
			return false
		}
	}
	for pair := range strings.SplitSeq(query, "&") {
		n, _, _ := strings.Cut(pair, "=")
		if strings.Contains(pair, "@") && !mayContainAt[n] {
			return false
		}
	}
	return true
}
