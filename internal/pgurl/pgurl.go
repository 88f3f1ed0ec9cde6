// Package pgurl checks the address of a PostgreSQL database before it is used. Unescaped
// characters of a password can be parsed as a host, a port or a database, which occur in errors
// and logs.
package pgurl

import (
	"errors"
	"net/url"
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
	// hostAndPort has no other characters in brackets than an IPv6 address: the driver would take a ? or a / there as
	// a part of the host.
	hostAndPort = regexp.MustCompile(`^(\[[^\[\]]*\]|[^:\[\]]*)(:[0-9]*)?$`)
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

// Parts are the parts of postgres://user:password@host:port,host:port/database?name=value as the driver reads them,
// without its defaults.
type Parts struct {
	User, Password  string
	HasPassword     bool
	Hosts, Database string
	// Parameters has all values of each parameter; the driver uses the last.
	Parameters url.Values
}

// Split returns the parts of a URL. A URL that can be parsed in more than one way, and an address that is no URL, are
// errors, which contain no part of the address.
func Split(address string) (*Parts, error) {
	rest, isURL := cutScheme(address)
	if !isURL || !plain(rest) {
		return nil, errURL
	}
	var p Parts
	var errs [3]error
	credentials, place, query := split(rest)
	user, password, hasPassword := strings.Cut(credentials, ":")
	hosts, database, _ := strings.Cut(place, "/")
	p.User, errs[0] = decode(user)
	p.Password, errs[1] = decode(password)
	p.Database, errs[2] = decode(database)
	if errors.Join(errs[:]...) != nil {
		return nil, errURL
	}
	p.HasPassword, p.Hosts, p.Parameters = hasPassword, hosts, url.Values{}
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		rawName, rawValue, _ := strings.Cut(pair, "=")
		n, nameErr := decode(rawName)
		value, valueErr := decode(rawValue)
		if nameErr != nil || valueErr != nil || strings.Count(pair, "=") != 1 {
			return nil, errURL
		}
		p.Parameters.Add(n, value)
	}
	return &p, nil
}

// decode decodes a part of a URL as libpq does: a plus sign is no space, and spaces at both ends are ignored.
func decode(raw string) (string, error) { return url.PathUnescape(strings.Trim(raw, " ")) }

// split splits the part after the scheme. As in libpq, the user and the password end at the first @ before a slash.
func split(rest string) (user, place, query string) {
	if i := strings.IndexAny(rest, "@/"); i >= 0 && rest[i] == '@' {
		user, rest = rest[:i], rest[i+1:]
	}
	place, query, _ = strings.Cut(rest, "?")
	return user, place, query
}

// plain reports whether the part after the scheme can be parsed in only one way.
func plain(rest string) bool {
	_, place, query := split(rest)
	if strings.ContainsAny(place, "@#") {
		return false
	}
	hosts, _, _ := strings.Cut(place, "/")
	for host := range strings.SplitSeq(hosts, ",") {
		if !hostAndPort.MatchString(host) {
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
