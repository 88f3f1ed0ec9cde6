package sqlconn

import (
	"strings"
	"testing"
)

func TestParseMySQL(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]string{
		"mysql://app@db.example/shop":                      "tcp db.example:3306 app  shop tls",
		"mysql://app:a%40b%2F@db.example:3307/shop":        "tcp db.example:3307 app a@b/ shop tls",
		"mysql://app@[2001:db8::1]:3307/shop?tls=verify":   "tcp [2001:db8::1]:3307 app  shop tls",
		"mysql://app@127.0.0.1/shop":                       "tcp 127.0.0.1:3306 app  shop",
		"mysql://app@localhost/shop?tls=verify":            "tcp localhost:3306 app  shop tls",
		"mysql://app@[::1]/shop?tls=none":                  "tcp [::1]:3306 app  shop",
		"mysql://app@/shop?socket=/run/mysqld/mysqld.sock": "unix /run/mysqld/mysqld.sock app  shop",
		"mysql://app@db.example/shop?tls=none":             "tls: none is for a server on this host only",
		"mysql://app@db.example/shop?tls=skip-verify":      "tls: must be verify or none",
		"mysql://app@db.example/shop?tls=verify&tls=none":  "each once",
		"mysql://app@db.example/shop?ca=/nowhere":          "ca: open /nowhere",
		"mysql://app@db.example/shop?cert=/nowhere":        "cert and key: ",
		"mysql://app@localhost/shop?ca=/nowhere":           "ca: needs tls=verify",
		"mysql://app@db.example/shop?allowAllFiles=true":   "the parameters are ",
		"mysql://app@db.example/shop?socket=/s":            "needs a host, or a socket",
		"mysql://app@/shop":                                "needs a host, or a socket",
		"mysql://app@/shop?socket=/s&tls=verify":           "a socket has no host name to verify",
		"mysql://app@db.example":                           "names no database",
		"mysql://db.example/shop":                          "cannot be read",
		"mysql:app@db.example/shop":                        "cannot be read",
		"mysql://app:p#w@db.example/shop":                  "cannot be read",
		"mysql://app:p/w@db.example/shop":                  "cannot be read",
		"mysql://app:7391/w@db.example/shop":               "cannot be read",
		"mysql://app:p?w@db.example/shop":                  "cannot be read",
		"mysql://app:p%w@db.example/shop":                  "cannot be read",
	} {
		cfg, err := parseMySQL(dsn, "")
		if err != nil {
			if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "7391") {
				t.Errorf("%s: %v, want %s", dsn, err, want)
			}
			continue
		}
		got := strings.Join([]string{cfg.Net, cfg.Addr, cfg.User, cfg.Passwd, cfg.DBName}, " ")
		if cfg.TLS != nil {
			got += " tls"
			if cfg.TLS.InsecureSkipVerify || !strings.Contains(cfg.Addr, cfg.TLS.ServerName) {
				t.Errorf("%s: verifies %q", dsn, cfg.TLS.ServerName)
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", dsn, got, want)
		}
	}
	if cfg, err := parseMySQL("mysql://app:one@db.example/shop", "two"); err != nil || cfg.Passwd != "two" {
		t.Errorf("a secret does not replace the password: %v, %v", cfg, err)
	}
}
