package sqlconn

import (
	"os"
	"path/filepath"
	"testing"
)

// TestNothingOfTheEnvironment: what the environment says of the gate's own database reaches no connector.
func TestNothingOfTheEnvironment(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	for name, value := range map[string]string{
		"PGPASSWORD": "own", "PGUSER": "own", "PGHOST": "own.example", "PGPORT": "1", "PGDATABASE": "own",
		"PGOPTIONS": "-c role=own", "PGSSLMODE": "verify-full", "PGSSLROOTCERT": filepath.Join(home, "none"),
		"PGSSLCERT": filepath.Join(home, "none"), "PGSSLKEY": filepath.Join(home, "none"),
		"PGTARGETSESSIONATTRS": "read-only",
	} {
		t.Setenv(name, value)
	}
	if err := os.WriteFile(filepath.Join(home, ".pgpass"), []byte("*:*:*:*:own\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for dsn, want := range map[string]string{
		"postgres://app@db.example/shop":                  "postgres:app@db.example:5432/shop",
		"postgresql://app@db.example:15432":               "postgres:app@db.example:15432/",
		"postgres://app@/shop?host=/run/db":               "postgres:app@/run/db:5432/shop",
		"postgres:///shop?host=db.example&user=app":       "postgres:app@db.example:5432/shop",
		"postgres://app@a.example:1,b.example/shop?":      "postgres:app@a.example:1,b.example:5432/shop",
		"postgres://app@a.example,b.example/shop":         "postgres:app@a.example:5432,b.example:5432/shop",
		"postgres://app@db.example/shop?search_path=a":    "postgres:app@db.example:5432/shop?search_path=a",
		"postgres://app@localhost/shop?sslmode=disable":   "postgres:app@localhost:5432/shop",
		"postgres://app@[::1],127.0.0.2/?sslmode=allow":   "postgres:app@::1:5432,127.0.0.2:5432/",
		"postgres://app@/shop?host=/run&sslmode=disable":  "postgres:app@/run:5432/shop",
		"postgres://app@[::1]/shop?options=-c%20role%3Dx": "postgres:app@::1:5432/shop?options=-c+role%3Dx",
	} {
		cfg, err := postgresConfig(dsn)
		if err != nil {
			t.Errorf("%s: %v", dsn, err)
			continue
		}
		if got := postgresAddress(cfg); got != want || cfg.Password != "" || cfg.ValidateConnect != nil {
			t.Errorf("%s is %s, password %q; want %s", dsn, got, cfg.Password, want)
		}
		if cfg.TLSConfig != nil && (!cfg.TLSConfig.InsecureSkipVerify || cfg.TLSConfig.Certificates != nil) {
			t.Errorf("%s: TLS is that of the environment", dsn)
		}
	}
	for dsn, always := range map[string]bool{
		"postgres://app@db.example/shop": true, "postgres://app@localhost,db.example/shop": true,
		"postgres://app@db.example/shop?sslmode=prefer": false, "postgres://app@127.0.0.1/shop": false,
	} {
		cfg, err := postgresConfig(dsn)
		if err != nil {
			t.Fatal(err)
		}
		inClear := cfg.TLSConfig == nil
		for _, f := range cfg.Fallbacks {
			inClear = inClear || f.TLSConfig == nil
		}
		if inClear == always {
			t.Errorf("%s: an attempt without TLS: %v", dsn, inClear)
		}
	}
	for _, dsn := range []string{
		"postgres:///shop", "postgres://db.example/shop", "postgres://app@/shop", "postgres://app@db.example/shop?service=x",
		"postgres://app@db.example/shop?servicefile=/x", "postgres://app@db.example/shop?passfile=/x",
		"postgres://app@db.example/shop?%70assfile=/x", "postgres://app@db.example/shop?a=b;passfile=/x",
		"postgres://app:a?b@db.example/shop?passfile=/x",
		"postgres://app@db.example/shop?sslmode=disable", "postgres://app@db.example/shop?sslmode=allow",
		"postgres://app@localhost,db.example/shop?sslmode=disable",
		"postgres://app@/shop?host=/run/db,10.0.0.1&sslmode=disable",
	} {
		if cfg, err := postgresConfig(dsn); err == nil {
			t.Errorf("%s is accepted, as %s", dsn, postgresAddress(cfg))
		}
	}
	t.Setenv("PGSERVICE", "own")
	if _, err := postgresConfig("postgres://app@db.example/shop"); err == nil {
		t.Error("PGSERVICE is ignored")
	}
}
