package sqlconn

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/microsoft/go-mssqldb/msdsn"
)

// parseSQLServer reads sqlserver://user:password@host:port/database. The parameters are database
// (instead of the path), encrypt (true, strict, or disable on this host), trustservercertificate
// (true, on this host) and ca (a file). Without encrypt, a connection to another host is encrypted
// and verified, one on this host is not encrypted.
func parseSQLServer(dsn, password string) (*msdsn.Config, error) {
	u, query, err := serverURL("sqlserver", dsn, "database", "encrypt", "trustservercertificate", "ca")
	if err != nil {
		return nil, err
	}
	host := u.Hostname()
	if host == "" {
		return nil, errors.New("sqlserver: the address needs a host")
	}
	database := strings.TrimPrefix(u.Path, "/")
	if (database == "") == (query.Get("database") == "") {
		return nil, errors.New("sqlserver: the address must name one database, as in sqlserver://user@host:1433/database; " +
			"an instance is reached by its port")
	}
	port := uint64(1433)
	if u.Port() != "" {
		if port, err = strconv.ParseUint(u.Port(), 10, 16); err != nil {
			return nil, errors.New("sqlserver: the port must be a number")
		}
	}
	cfg := &msdsn.Config{
		Host: host, Port: port, Database: database + query.Get("database"),
		User: u.User.Username(), Password: password, AppName: "gatehouse",
		Protocols: []string{"tcp"}, DialTimeout: 10 * time.Second,
		Encoding: msdsn.EncodeParameters{Timezone: time.UTC},
	}
	if password == "" {
		cfg.Password, _ = u.User.Password()
	}
	if cfg.Encryption, cfg.TLSConfig, err = sqlserverTLS(host, query); err != nil {
		return nil, fmt.Errorf("sqlserver: %w", err)
	}
	return cfg, nil
}

func sqlserverTLS(host string, query url.Values) (msdsn.Encryption, *tls.Config, error) {
	encrypt, trust, local := query.Get("encrypt"), query.Get("trustservercertificate"), isLoopback(host)
	encryption := msdsn.Encryption(msdsn.EncryptionRequired)
	switch encrypt {
	case "true":
	case "strict": // TDS 8.0: TLS comes first
		encryption = msdsn.EncryptionStrict
	case "":
		if local {
			encryption = msdsn.EncryptionDisabled
		}
	case "disable":
		if !local {
			return 0, nil, errors.New("encrypt: disable is for a server on this host only")
		}
		encryption = msdsn.EncryptionDisabled
	default:
		return 0, nil, errors.New("encrypt: must be true, strict or disable")
	}
	switch {
	case trust != "" && trust != "true" && trust != "false":
		return 0, nil, errors.New("trustservercertificate: must be true or false")
	case trust == "true" && !local:
		return 0, nil, errors.New("trustservercertificate: is for a server on this host only; name its certificate in ca")
	case encryption == msdsn.EncryptionDisabled && (trust == "true" || query.Has("ca")):
		return 0, nil, errors.New("trustservercertificate and ca: need encrypt=true or encrypt=strict")
	case encryption == msdsn.EncryptionDisabled:
		return encryption, nil, nil
	}
	cfg, err := verifyTLS(host, query.Get("ca"))
	if err != nil {
		return 0, nil, err
	}
	cfg.InsecureSkipVerify = trust == "true"
	cfg.DynamicRecordSizingDisabled = true // the server wants one TLS record for each packet
	return encryption, cfg, nil
}
