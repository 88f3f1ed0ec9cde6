package serve

import (
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
	"github.com/gatehouse-dev/gatehouse/internal/termtest"
)

// TestBootstrapKeepsItsSecrets: an administrator is created only if its credentials can be written,
// also next to those of another store.
func TestBootstrapKeepsItsSecrets(t *testing.T) {
	t.Parallel()
	g, _, _ := termtest.New(t)
	n := openNode(t, &config.Config{})
	t.Cleanup(func() { _ = n.Close() })

	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	if err := bootstrapOnce(g, n, filepath.Join(file, "data")); err == nil ||
		!strings.Contains(err.Error(), "credentials") {
		t.Fatalf("no place for the credentials: %v", err)
	}
	if made, err := administered(t.Context(), n.Store); made || err != nil {
		t.Fatalf("an administrator whose secrets nobody knows: %v, %v", made, err)
	}

	data := t.TempDir()
	kept := filepath.Join(data, credentialsFile)
	must(t, os.WriteFile(kept, []byte("of another store"), 0o600))
	must(t, bootstrapOnce(g, n, data))
	if body, err := os.ReadFile(kept); err != nil || string(body) != "of another store" {
		t.Errorf("the file of another store holds %q, %v", body, err)
	}
	files, err := filepath.Glob(filepath.Join(data, "admin-credentials-prn_*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	body, err := os.ReadFile(files[0])
	var creds adminCredentials
	must(t, errors.Join(err, json.Unmarshal(body, &creds)))
	if _, err := n.Gate.Authenticate(t.Context(), creds.AdminKey); err != nil {
		t.Error(err)
	}
	if err := bootstrapOnce(g, n, filepath.Join(file, "data")); err != nil {
		t.Errorf("a store that has an administrator needs no place for credentials: %v", err)
	}
	left, err := os.ReadDir(data)
	if err != nil || len(left) != 2 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestInitKeepsItsSecrets: init prints the administrator's secrets even if it fails after it has created the
// administrator.
func TestInitKeepsItsSecrets(t *testing.T) {
	t.Parallel()
	for _, asJSON := range []bool{false, true} {
		data := t.TempDir()
		open := func() *Node {
			n, err := Open(t.Context(), data, &config.Config{}, slog.New(slog.DiscardHandler))
			must(t, err)
			return n
		}
		must(t, open().Close())
		db, err := sql.Open("sqlite", filepath.Join(data, DatabaseFile))
		must(t, err)
		_, err = db.Exec(`CREATE TRIGGER full BEFORE INSERT ON setup_link BEGIN SELECT RAISE(ABORT, 'no room'); END`)
		must(t, errors.Join(err, db.Close()))
		g, out, _ := termtest.New(t)
		g.JSON = asJSON
		c := &InitCommand{StoreFlags: StoreFlags{DataFlags: DataFlags{Data: data}}}
		if err := c.Run(g); err == nil {
			t.Fatal("no error, although the set-up link cannot be stored")
		}
		key := regexp.MustCompile(`admin_key\W+(gth_[\w-]+)`).FindStringSubmatch(out.String())
		if key == nil || !strings.Contains(out.String(), "edit_token") {
			t.Fatalf("the secrets are lost: %s", out)
		}
		n := open()
		if _, err := n.Gate.Authenticate(t.Context(), key[1]); err != nil {
			t.Error(err)
		}
		must(t, n.Close())
	}
}

// TestServeAwaitsTheAdministrator: the server creates none itself, and continues once there is one.
func TestServeAwaitsTheAdministrator(t *testing.T) {
	t.Parallel()
	n := openNode(t, &config.Config{})
	t.Cleanup(func() { _ = n.Close() })
	g, _, _ := termtest.New(t)
	waits := make(chan error, 1)
	go func() { waits <- (&Command{AwaitAdministrator: true}).bootstrap(g, n) }()
	select {
	case err := <-waits:
		t.Fatalf("it does not wait: %v", err)
	case <-time.After(1500 * time.Millisecond):
	}
	if made, err := administered(t.Context(), n.Store); made || err != nil {
		t.Fatalf("it made one: %v, %v", made, err)
	}
	servetest.Bootstrap(t, n.Gate)
	must(t, <-waits)
}
