package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// TestTypeScriptSDK packs sdk/typescript, installs the tarball in a program of its own,
// compares its types with the server's OpenAPI document, and runs its tests against that
// server.
func TestTypeScriptSDK(t *testing.T) {
	t.Parallel()
	root := sdkRoot(t)
	q := sdkServer(t, root, "sdks.md")
	app := filepath.Join(q.dir, "app")
	tools := filepath.Join(root, "sdk", "typescript", "node_modules")
	if _, err := os.Stat(filepath.Join(tools, ".bin", "tsc")); err != nil {
		t.Fatalf("run scripts/tools: %v", err)
	}
	if err := os.CopyFS(filepath.Join(app, "test"),
		os.DirFS(filepath.Join(root, "sdk", "typescript", "test"))); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "sdks.md"))
	must(t, err)
	blocks := regexp.MustCompile("(?s)```ts\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) != 3 {
		t.Fatalf("%d snippets on the page", len(blocks))
	}
	program := bytes.Join([][]byte{blocks[0][1], blocks[1][1], blocks[2][1], []byte("export { said, receive };\n")}, nil)
	q.write("app/test/page.ts", string(program))
	q.write("app/package.json", `{"private": true, "type": "module"}`)
	q.write("app/tsconfig.json", `{"compilerOptions": {
  "target": "ES2022", "module": "NodeNext", "lib": ["ES2023", "DOM", "DOM.Iterable"], "noEmit": true, "strict": true,
  "allowImportingTsExtensions": true, "erasableSyntaxOnly": true, "verbatimModuleSyntax": true,
  "skipDefaultLibCheck": true, "typeRoots": ["`+filepath.Join(tools, "@types")+`"], "types": ["node"]
}, "include": ["test"]}`)

	env := append(sdkEnv(t, q), "npm_config_audit=false", "npm_config_fund=false", "npm_config_update_notifier=false")
	in := func(dir, name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", filepath.Base(name), err, out)
		}
		return string(out)
	}
	in(app, "npm", "install", "--offline", packTypeScript(t, q))
	in(app, filepath.Join(tools, ".bin", "openapi-typescript"),
		strings.TrimSuffix(q.server.api, "/api/v1")+"/openapi.json",
		"-o", "test/openapi.gen.ts")
	in(app, filepath.Join(tools, ".bin", "tsc"), "-p", "tsconfig.json")
	out := in(app, nodeWithTypes(t), "--test", "--test-timeout=120000", "--test-reporter=tap",
		"test/gate.test.ts", "test/client.test.ts", "test/lease.test.ts", "test/page.test.ts")
	if !regexp.MustCompile(`(?m)^# pass 4\d$`).MatchString(out) || !strings.Contains(out, "\n# skipped 0\n") {
		t.Errorf("not all ran:\n%s", out)
	}
	q.server.stop()
}

const tarballName = "gatehouse-dev-gatehouse-0.1.0.tgz"

// typeScriptTarball is the packed SDK, which is compiled once for all tests.
var typeScriptTarball = sync.OnceValues(func() (tarball []byte, err error) {
	dir, err := os.MkdirTemp("", "gatehouse-sdk-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command("scripts/sdks", dir, "typescript")
	cmd.Dir, cmd.Env = filepath.Join("..", ".."), cleanEnv("npm_config_update_notifier=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("scripts/sdks: %w\n%s", err, out)
	}
	return os.ReadFile(filepath.Join(dir, tarballName))
})

// packTypeScript puts the packed SDK into the folder, and returns its path.
func packTypeScript(t *testing.T, q *quickstart) string {
	t.Helper()
	tarball, err := typeScriptTarball()
	must(t, err)
	q.write(tarballName, string(tarball))
	return filepath.Join(q.dir, tarballName)
}

func sdkRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	must(t, err)
	return root
}

// sdkServer starts a server with the worker's connector of a page of docs, and one of type sql.
func sdkServer(t *testing.T, root, page string) *quickstart {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", page))
	must(t, err)
	worker := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(text)
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
dispatch: {hold: 0s, backoff: [100ms]}
`)
	q.server = startDev(t, q.dir, "--config", filepath.Join(q.dir, "gatehouse.yaml"))
	return q
}

// sdkEnv is the environment of an agent, and of the reviewer in its tests.
func sdkEnv(t *testing.T, q *quickstart) []string {
	t.Helper()
	agent, admin := devEnv(t, q.dir, "agent"), devEnv(t, q.dir, "admin")
	return cleanEnv("GATEHOUSE_URL="+strings.TrimSuffix(q.server.api, "/api/v1"), "GATEHOUSE_KEY="+agent.Key,
		"REVIEWER_KEY="+admin.Key, "REVIEWER_EDIT_TOKEN="+admin.EditToken)
}
