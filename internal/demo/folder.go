package demo

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

// The files of a demo's folder, which otherwise is a normal data folder.
const (
	LedgerFile   = "ledger.db"
	BeforeFile   = "before.db"
	ExpectedFile = "expected.db"
	JournalFile  = "journal.jsonl"
	ConfigFile   = "gatehouse.yaml"
	policyFile   = "policy.yaml"
	// markFile identifies a demo's folder, and explains the folder to people.
	markFile = "DEMO.txt"
)

// markStart is the beginning of the mark. Demos of all versions recognize their folders by it.
const markStart = `This folder was made by "gatehouse demo".`

const mark = markStart + ` Nothing in it is real. To remove it:
"gatehouse demo --remove".

ledger.db       the shop's ledger, as it is after the demo
before.db       its copy from before the demo
expected.db     that copy, with the changes of journal.jsonl applied
journal.jsonl   the decisions of the reviewers, and the changes that the policy allowed or a clerk made
gatehouse.db    what the gate stored; to see it, run "gatehouse dev --data" with this folder
`

//go:embed policy.yaml
var policySource []byte

// entities are the entities that the sql connector can change in a ledger. Their
// changes are L3 or more, so people decide, except for fields declared lower.
const entities = `      item: {table: items, key: sku, version: version, fields: {tag: 1, description: 2}}
      customer: {table: customers, key: id, version: version, fields: {note: 1}}
      order: {table: orders, key: id, version: version}
      refund: {table: refunds, key: id, version: version}
`

var configTemplate = template.Must(template.New("config").Parse(`# Made by "gatehouse demo".
connectors:
  shop:
    type: sql
    dsn: {{.DSN}}
    entities:
` + entities + `  warehouse:
    type: http
    base_url: {{.Warehouse}}
    allow_private: true
    operations:
      receive: {method: POST, path: "/receive/{entity_ref}", class: A}
      credit: {method: POST, path: "/credit/{entity_ref}", class: C}
policy: {file: policy.yaml}
dispatch: {hold: 0s, retries: 2, backoff: [100ms, 200ms], lease: 10s}
# Mails are kept, not sent. A reviewer gets every message, never a digest.
digest: {after: 1000}
`))

var devTemplate = template.Must(
	template.New("dev").Parse(`# Made by "gatehouse dev", with a shop of demo data to try things on. Edit it at
# will: it is read at each start.
#
# A change of what is named under fields has at least the level given there; the action type can
# raise it. Under the default policy, L1 and L2 need nobody. Every other change needs a person's
# approval, whatever risk level an agent claims.
connectors:
  shop:
    type: sql
    dsn: {{.DSN}}
    entities:
` + entities + `  # For: gatehouse mcp proxy --name files -- COMMAND...
  "mcp:files": {type: mcp}
# Approved changes are sent at once. Without this line, a change of L1 to L3 that people approve
# waits for 10s, and can be canceled in this time.
dispatch: {hold: 0s}
`))

func config(t *template.Template, ledger, warehouse string) ([]byte, error) {
	path, err := filepath.Abs(ledger)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	// A JSON string is a YAML string too, whatever the path contains.
	err = t.Execute(&b, struct{ DSN, Warehouse string }{text("sqlite:" + path), text(warehouse)})
	return b.Bytes(), err
}

func text(s string) string {
	b, _ := json.Marshal(s) // a string always marshals
	return string(b)
}

// ErrNotDemo is returned for a folder that no demo created. The folder is not changed.
var ErrNotDemo = errors.New("the folder was not created by a demo")

// Check returns nil if a demo may use the folder: an earlier demo created it, it is empty, or it
// does not exist.
func Check(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	content, err := os.ReadFile(filepath.Join(dir, markFile))
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && !strings.HasPrefix(string(content), markStart):
		return fmt.Errorf("%s: %w", dir, ErrNotDemo)
	case err != nil:
		return fmt.Errorf("%s cannot be recognized as the folder of a demo: %w", dir, err)
	}
	return nil
}

// Remove removes the folder of an earlier demo, or an empty one, if it exists.
func Remove(dir string) error {
	if err := Check(dir); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// Prepare creates the folder of a new demo and replaces an earlier one. The folder has the
// ledger, its copy and the gate's configuration. The warehouse serves until it is closed.
func Prepare(ctx context.Context, dir string) (*Warehouse, error) {
	if err := Remove(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, markFile), []byte(mark), 0o600); err != nil {
		return nil, err
	}
	ledger := filepath.Join(dir, LedgerFile)
	if err := MakeLedger(ctx, ledger); err != nil {
		return nil, fmt.Errorf("make the ledger: %w", err)
	}
	db, err := Open(ledger)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(copyLedger(ctx, db, filepath.Join(dir, BeforeFile)), db.Close()); err != nil {
		return nil, fmt.Errorf("copy the ledger: %w", err)
	}
	w, err := openWarehouse(ctx, ledger)
	if err != nil {
		return nil, err
	}
	source, err := config(configTemplate, ledger, w.URL)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, policyFile), policySource, 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, ConfigFile), source, 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// DevLedgerFile is the file name of the ledger in development mode.
const DevLedgerFile = "shop.db"

// PrepareDev adds a shop to a data folder that has no configuration: its ledger, unless there is
// one, and a configuration with the connectors "shop" and "mcp:files".
func PrepareDev(ctx context.Context, dir string) error {
	path := filepath.Join(dir, ConfigFile)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	ledger := filepath.Join(dir, DevLedgerFile)
	if _, err := os.Stat(ledger); errors.Is(err, fs.ErrNotExist) {
		// The ledger is renamed when it is complete, so that an incomplete one is never used.
		draft := ledger + ".new"
		for _, end := range []string{"", "-wal", "-shm"} {
			_ = os.Remove(draft + end)
		}
		if err := MakeLedger(ctx, draft); err != nil {
			return fmt.Errorf("make the demo ledger: %w", err)
		}
		if err := os.Rename(draft, ledger); err != nil {
			return err
		}
	}
	source, err := config(devTemplate, ledger, "")
	if err != nil {
		return err
	}
	return os.WriteFile(path, source, 0o600)
}
