package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"
)

// Template is a database that tests copy. A copy takes a tenth of the time of a store's migrations.
type Template struct {
	// Prepare fills the template, on first use, and closes its connections.
	Prepare func(t testing.TB, dsn string)

	mu     sync.Mutex
	dsn    string
	copies int
}

// Copy creates a copy of the template for one test, and drops it after the test.
func (p *Template) Copy(t testing.TB) (dsn string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dsn == "" {
		made := Database(t)
		p.Prepare(t, made)
		p.dsn = made
	}
	u, err := url.Parse(p.dsn)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	from := u.Path[1:]
	p.copies++
	to := fmt.Sprintf("%s_%d", from, p.copies)
	u.Path = "/postgres"
	exec := func(dsn, statement string) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if err := run(ctx, dsn, statement); err != nil {
			t.Fatalf("pgtest: %s: %v", statement, err)
		}
	}
	admin := u.String()
	exec(admin, "CREATE DATABASE "+to+" TEMPLATE "+from+" STRATEGY FILE_COPY")
	t.Cleanup(func() { exec(Superuser(admin), "DROP DATABASE "+to+" WITH (FORCE)") })
	u.Path = "/" + to
	return u.String()
}
