package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPythonSDK runs the tests of sdk/python against a server with a connector of
// type worker and one of type sql.
func TestPythonSDK(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "sdk-python.md"))
	if err != nil {
		t.Fatal(err)
	}
	worker := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)
	if worker == nil {
		t.Fatal("no configuration on the page")
	}
	q := &quickstart{t: t, dir: t.TempDir()}
	const table = `import sqlite3; db = sqlite3.connect("shop.db")
db.execute("CREATE TABLE items (sku TEXT PRIMARY KEY, price TEXT, version INTEGER)")
db.execute("INSERT INTO items VALUES ('SKU-1', '10.00', 1)"); db.commit()`
	if out, err := q.command("python3", "-c", table).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	q.write("policy.yaml", "version: 1\nrules: [{id: no-wipe, when: 'action.type == \"wipe\"', then: deny}]\n")
	q.write("gatehouse.yaml", string(worker[1])+`  shop:
    type: sql
    dsn: "sqlite:`+filepath.Join(q.dir, "shop.db")+`"
    entities: {item: {table: items, key: sku, version: version}}
policy: {file: policy.yaml}
dispatch: {hold: 0s}
`)
	q.server = startDev(t, q.dir, "--config", filepath.Join(q.dir, "gatehouse.yaml"))
	agent, admin := devEnv(t, q.dir, "agent"), devEnv(t, q.dir, "admin")
	cmd := exec.Command("python3", "-W", "error", "-m", "unittest", "discover", "-v", "-s",
		filepath.Join(root, "sdk/python/tests"))
	cmd.Env = cleanEnv("PYTHONPATH="+filepath.Join(root, "sdk/python"), "PYTHONDONTWRITEBYTECODE=1",
		"GATEHOUSE_URL="+strings.TrimSuffix(q.server.api, "/api/v1"), "GATEHOUSE_KEY="+agent.Key,
		"REVIEWER_KEY="+admin.Key, "REVIEWER_EDIT_TOKEN="+admin.EditToken)
	out, err := cmd.CombinedOutput()
	if err != nil || !regexp.MustCompile(`Ran \d\d tests`).Match(out) || strings.Contains(string(out), "skipped") {
		t.Errorf("%v\n%s", err, out)
	}
	q.server.stop()
}
