package pgurl

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestSecretsThatAreNotEncoded: no part of a password is parsed as a host, user or database, and no error
// quotes it. The password of an address that is accepted is what libpq reads.
func TestSecretsThatAreNotEncoded(t *testing.T) {
	t.Parallel()
	const head, tail = "7391", "8264"
	for _, between := range []string{"@", "/", "#", "?", ":", "%", "%zz", ",", "@/", "/@", "?@", "#/", ":@", "@:", "/?x=y",
		"?x=y/", "@,", " ", "[", "]", "@[", "&", "=", "@a?b=", "'", "\\", "`: "} {
		secret := head + between + tail
		decoded, _ := url.PathUnescape(secret)
		unquoted := strings.ReplaceAll(secret, `\`, "")
		for address, password := range map[string]string{
			"postgres://gate:" + secret + "@db.example/gatehouse":                        decoded,
			"postgresql://gate:" + secret + "@db.example:5432/gatehouse?sslmode=disable": decoded,
			"postgress://gate:" + secret + "@db.example/gatehouse?sslmode=disable":       "",
			"host=db.example user=gate password=" + secret + " dbname=gatehouse":         unquoted,
			"host=db.example user=gate password = " + secret + " dbname=gatehouse":       unquoted,
		} {
			if err := Check(address); err != nil &&
				(strings.Contains(err.Error(), head) || strings.Contains(err.Error(), tail)) {
				t.Errorf("%s: %v", address, err)
			} else if err == nil && elsewhere(t, address, password) {
				t.Errorf("%s: a part of the password is read as something else", address)
			}
		}
	}
}

// elsewhere reports whether an address is parsed as another host, user, password or database than is meant.
func elsewhere(t *testing.T, address, password string) bool {
	t.Helper()
	config, err := pgconn.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	return config.Host != "db.example" || config.User != "gate" || config.Database != "gatehouse" ||
		config.Password != password
}

// TestAddresses: an address that has only one meaning is accepted, and an invalid one is refused.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for address, good := range map[string]bool{
		"":                                  true, // from the environment, as in libpq
		"postgres://":                       true,
		"postgres:///gatehouse":             true,
		"postgres://db/gatehouse":           true,
		"postgres://gate@db/gatehouse":      true,
		"postgres://gate:a%40b%2F@db/gate":  true,
		"postgres://gate:a#b?c:d,e@db/gate": true,
		"postgres://gate:pw@one,two:5433,[::1]:5434/gate":                true,
		"postgres://gate:pw@[fe80::1%25eth0]/gate":                       true,
		"postgres://gate@%2Fvar%2Frun%2Fpostgresql/gate":                 true,
		"postgres:///gate?host=/var/run/postgresql&user=me@server":       true,
		"postgres://db:5432/gate?user=me@server&password=p@ss":           true,
		"host=/var/run/postgresql dbname=gatehouse":                      true,
		"host=db password='a b' dbname=gatehouse search_path=x my.own=y": true,
		"postgres://db/gate?pool_max_conns=many":                         false,
		"postgres://db/gate?sslmode=sometimes":                           false,
		"postgres://db:54x2/gate":                                        false,
		"postgres://gate@[a?b]/gate":                                     false,
		"postgres://gate@[a/b]/gate":                                     false,
		"postgres://db/gate?a@b":                                         false,
		"mysql://gate:pw@db/gate":                                        false,
		"gatehouse":                                                      false,
	} {
		if err := Check(address); (err == nil) != good {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestSplit: user, password, database and parameters are those that the driver reads.
func TestSplit(t *testing.T) {
	t.Parallel()
	for address, good := range map[string]bool{
		"postgres://gate:pw@db/gate":                                     true,
		"postgres://gate: p%40w+ @db/gate?":                              true,
		"postgresql://gate:what?x=1#^[]\"<é:&@[::1]:5432,two/gate?x=a?b": true,
		"postgres://gate:pw@db/gate?x=1&x=2&y=a+b":                       true,
		"postgres://gate:pw@db/gate? x = 1 &%78=%32%26&y=;":              true,
		"postgres://gate:pw@db?x=1&":                                     true,
		"postgres://gate:pw@[a?x=1&b=]/gate?x=2":                         false,
		"postgres://gate:p/w@db/gate?x=1":                                false,
		"postgres://gate:%zz@db/gate":                                    false,
		"postgres://gate:pw@db/gate?x=%zz":                               false,
		"postgres://gate:pw@db/gate?x":                                   false,
		"postgres://gate:pw@db/gate?x=1=2":                               false,
		"mysql://gate:pw@db/gate":                                        false,
		"host=db user=gate password=pw x=1":                              false,
	} {
		parts, err := Split(address)
		if (err == nil) != good {
			t.Errorf("%s: %v", address, err)
		}
		if err != nil {
			continue
		}
		driver, err := pgconn.ParseConfig(address)
		if err != nil {
			t.Fatalf("%s: %v", address, err)
		}
		got := []string{parts.User, parts.Password, parts.Database}
		want := []string{driver.User, driver.Password, driver.Database}
		for _, n := range []string{"x", "y"} {
			values := append([]string{""}, parts.Parameters[n]...)
			got, want = append(got, values[len(values)-1]), append(want, driver.RuntimeParams[n])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s is %q, the driver reads %q", address, got, want)
		}
	}
}
