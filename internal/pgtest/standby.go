package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// standbyName is the application_name of each standby.
const standbyName = "standby"

// Standby creates and starts a streaming standby of c. No commit waits for it unless
// [Cluster.Synchronous] says so.
func (c *Cluster) Standby(t testing.TB) *Cluster {
	t.Helper()
	s, err := empty(c.bin)
	if err != nil {
		t.Fatal(err)
	}
	s.closeAfter(t)
	if err := s.Follow(c); err != nil {
		t.Fatal(err)
	}
	return s
}

// Follow turns c, which must be down, into a standby of primary. The data of c is lost.
func (c *Cluster) Follow(primary *Cluster) error {
	if err := os.RemoveAll(c.data()); err != nil {
		return err
	}
	backup := c.command("pg_basebackup", "-d", "host="+primary.Dir+" user=postgres application_name="+standbyName,
		"-D", c.data(), "-R", "-X", "stream", "-c", "fast", "--no-sync")
	if out, err := backup.CombinedOutput(); err != nil {
		return fmt.Errorf("pg_basebackup: %w\n%s", err, out)
	}
	return c.Up()
}

// Synchronous sets whether each COMMIT waits for a standby.
func (c *Cluster) Synchronous(on bool) error {
	names := ""
	if on {
		names = standbyName
	}
	for _, sql := range []string{"ALTER SYSTEM SET synchronous_standby_names = '" + names + "'",
		"SELECT pg_reload_conf()"} {
		if err := c.exec(sql); err != nil {
			return err
		}
	}
	// Each process of the server reads the setting by itself, so a new connection must confirm it. The
	// checkpointer tells the others whether a COMMIT waits at all; it does so before its next checkpoint.
	if err := c.await("SELECT current_setting('synchronous_standby_names') = '" + names + "'"); err != nil {
		return err
	}
	return c.exec("CHECKPOINT")
}

// Promote promotes a standby and returns when it accepts writes.
func (c *Cluster) Promote() error {
	if err := c.exec("SELECT pg_promote(false)"); err != nil {
		return err
	}
	return c.await("SELECT NOT pg_is_in_recovery()")
}

// AwaitReplication waits until every connected standby, and at least one, has replayed all that c has written.
func (c *Cluster) AwaitReplication() error {
	return c.await("SELECT coalesce(bool_and(replay_lsn >= pg_current_wal_lsn()), false) FROM pg_stat_replication")
}

func (c *Cluster) exec(sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	return run(ctx, c.DSN("postgres"), sql)
}

// await runs the question on new connections until the answer is true.
func (c *Cluster) await(question string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for {
		yes, err := c.ask(ctx, question)
		if err != nil {
			return fmt.Errorf("%s: %w", question, err)
		}
		if yes {
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (c *Cluster) ask(ctx context.Context, question string) (yes bool, err error) {
	conn, err := pgx.Connect(ctx, c.DSN("postgres"))
	if err != nil {
		return false, err
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, question).Scan(&yes)
	return yes, err
}

// ClustersURL returns a URL that lists several clusters: a client connects to the cluster that accepts
// writes. The documentation tells operators to use this form.
func ClustersURL(database string, clusters ...*Cluster) string {
	var hosts []string
	for _, c := range clusters {
		hosts = append(hosts, c.Dir)
	}
	return address(database, url.Values{"host": {strings.Join(hosts, ",")}, "target_session_attrs": {"read-write"}})
}
