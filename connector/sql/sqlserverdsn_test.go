package sqlconn

import (
	"fmt"
	"strings"
	"testing"

	mssql "github.com/microsoft/go-mssqldb"
	"github.com/microsoft/go-mssqldb/msdsn"

	"github.com/gatehouse-dev/gatehouse/connector"
)

func TestParseSQLServer(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]string{
		"sqlserver://app@db.example/shop":                                     "db.example:1433 app  shop tls",
		"sqlserver://app@db.example?database=shop":                            "db.example:1433 app  shop tls",
		"sqlserver://app:a%40b%2F@db.example:1444/shop?encrypt=strict":        "db.example:1444 app a@b/ shop strict",
		"sqlserver://app@[2001:db8::1]:1444/shop?encrypt=true":                "2001:db8::1:1444 app  shop tls",
		"sqlserver://app@127.0.0.1/shop":                                      "127.0.0.1:1433 app  shop",
		"sqlserver://app@localhost/shop?encrypt=disable":                      "localhost:1433 app  shop",
		"sqlserver://app@localhost/shop?encrypt=true":                         "localhost:1433 app  shop tls",
		"sqlserver://app@[::1]/shop?encrypt=true&trustservercertificate=true": "::1:1433 app  shop any",
		"sqlserver://app@db.example/shop?trustservercertificate=true":         "is for a server on this host only",
		"sqlserver://app@db.example/shop?encrypt=disable": "encrypt: disable is for a server on this " +
			"host only",
		"sqlserver://app@db.example/shop?encrypt=false":                        "encrypt: must be true, strict or disable",
		"sqlserver://app@localhost/shop?trustservercertificate=true":           "need encrypt=true",
		"sqlserver://app@localhost/shop?ca=/nowhere":                           "need encrypt=true",
		"sqlserver://app@localhost/shop?encrypt=true&trustservercertificate=1": "must be true or false",
		"sqlserver://app@db.example/shop?ca=/nowhere":                          "ca: open /nowhere",
		"sqlserver://app@db.example/shop?encrypt=true&encrypt=disable":         "each once",
		"sqlserver://app@db.example/shop?log=63":                               "the parameters are ",
		"sqlserver://app@db.example/shop?database=shop":                        "must name one database",
		"sqlserver://app@db.example":                                           "must name one database",
		"sqlserver://app@/shop":                                                "needs a host",
		"sqlserver://db.example/shop":                                          "cannot be read",
		"sqlserver://app:p#7391@db.example/shop":                               "cannot be read",
		"sqlserver://app:7391/w@db.example/shop":                               "cannot be read",
	} {
		cfg, err := parseSQLServer(dsn, "")
		if err != nil {
			if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "7391") {
				t.Errorf("%s: %v, want %s", dsn, err, want)
			}
			continue
		}
		got := fmt.Sprintf("%s:%d %s %s %s", cfg.Host, cfg.Port, cfg.User, cfg.Password, cfg.Database)
		switch {
		case cfg.TLSConfig == nil:
		case cfg.TLSConfig.InsecureSkipVerify:
			got += " any"
		case cfg.TLSConfig.ServerName != cfg.Host:
			t.Errorf("%s: verifies %q", dsn, cfg.TLSConfig.ServerName)
		case cfg.Encryption == msdsn.EncryptionStrict:
			got += " strict"
		default:
			got += " tls"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", dsn, got, want)
		}
	}
	if cfg, err := parseSQLServer("sqlserver://app:one@db.example/shop", "two"); err != nil || cfg.Password != "two" {
		t.Errorf("a secret does not replace the password: %v, %v", cfg, err)
	}
}

func TestClassifySQLServer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		number          int32
		message         string
		kind            connector.Kind
		code, says      string
		unique, missing bool
	}{
		{1205, "m", connector.Transient, "serialization", "m", false, false},
		{3960, "m", connector.Transient, "serialization", "m", false, false},
		{1222, "m", connector.Transient, "busy", "m", false, false},
		{9002, "m", connector.Transient, "unavailable", "m", false, false},
		{40613, "m", connector.Transient, "unavailable", "m", false, false},
		{18456, "m", connector.Terminal, "forbidden", "m", false, false},
		{229, "m", connector.Terminal, "forbidden", "m", false, false},
		{3906, "m", connector.Terminal, "forbidden", "m", false, false},
		{207, "m", connector.Terminal, "schema_changed", "m", false, true},
		{208, "m", connector.Terminal, "schema_changed", "m", false, true},
		{515, "m", connector.Terminal, "constraint_violation", "m", false, false},
		{547, "m", connector.Terminal, "constraint_violation", "m", false, false},
		{2628, "m", connector.Terminal, "invalid_value", "m", false, false},
		{8114, "m", connector.Terminal, "invalid_value", "m", false, false},
		{102, "m", connector.Terminal, "sql_error", "m", false, false},
		{
			2627, "Cannot insert duplicate key in object 'dbo.t'. The duplicate key value is (own, hidden).",
			connector.Terminal, "constraint_violation", "Cannot insert duplicate key in object 'dbo.t'.", true, false,
		},
		{2601, "m", connector.Terminal, "constraint_violation", "m", true, false},
	} {
		first := mssql.Error{Number: test.number, Message: test.message}
		follows := mssql.Error{Number: 3930, Message: "what follows from it", All: []mssql.Error{first, {Number: 3930}}}
		want := verdict{
			kind: test.kind, code: test.code, says: test.says,
			detail: fmt.Sprintf("%s (error %d)", test.says, test.number),
			unique: test.unique, missing: test.missing, answered: true,
		}
		for _, err := range []mssql.Error{first, follows} {
			if v := (sqlserverDialect{}).classify(err); v != want {
				t.Errorf("%d: %+v, want %+v", test.number, v, want)
			}
		}
	}
}
