package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
)

// TestFrameworkRecipes runs examples/agents with the frameworks of the npm registry and
// scripted models.
func TestFrameworkRecipes(t *testing.T) {
	t.Parallel()
	root := sdkRoot(t)
	q := sdkServer(t, root, "sdks.md")
	recipes := filepath.Join(root, "examples", "agents")
	if _, err := os.Stat(filepath.Join(recipes, "node_modules", "ai")); err != nil {
		t.Fatalf("run scripts/tools: %v", err)
	}
	app := filepath.Join(q.dir, "app")
	files, err := filepath.Glob(filepath.Join(recipes, "*.mjs"))
	if err != nil || len(files) != 7 {
		t.Fatalf("%d recipes: %v", len(files), err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		must(t, err)
		q.write("app/"+filepath.Base(f), string(text))
	}
	must(t, os.CopyFS(filepath.Join(app, "test"), os.DirFS(filepath.Join(recipes, "test"))))
	world, err := os.ReadFile(filepath.Join(root, "sdk", "typescript", "test", "world.ts"))
	must(t, err)
	q.write("app/test/world.ts", string(world))
	// The SDK is resolved before the frameworks.
	must(t, os.Symlink(filepath.Join(recipes, "node_modules"), filepath.Join(q.dir, "node_modules")))
	own := filepath.Join(app, "node_modules", "@gatehouse-dev")
	must(t, os.MkdirAll(own, 0o750))
	unpack := exec.Command("sh", "-c", `tar xzf "$1" && mv package gatehouse`, "sh", packTypeScript(t, q))
	unpack.Dir = own
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command(nodeWithTypes(t), "--test", "--test-timeout=120000", "--test-reporter=tap",
		"test/recipes.test.mjs")
	cmd.Dir = app
	cmd.Env = append(sdkEnv(t, q), "OPENAI_AGENTS_DISABLE_TRACING=1", "LANGSMITH_TRACING=false")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "\n# pass 7\n") {
		t.Errorf("%v\n%s", err, out)
	}
	q.server.stop()
}

// TestShellRecipes runs the shell script, and the shell of the GitHub Actions workflow.
func TestShellRecipes(t *testing.T) {
	t.Parallel()
	root := sdkRoot(t)
	q := sdkServer(t, root, "sdks.md")
	agent, admin := devEnv(t, q.dir, "agent"), devEnv(t, q.dir, "admin")
	url := strings.TrimSuffix(q.server.api, "/api/v1")
	api := servetest.MustClient(t, url, admin)
	run := func(name string, args ...string) (string, int) {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = q.dir
		cmd.Env = cleanEnv("GATEHOUSE_URL="+url, "GATEHOUSE_KEY="+agent.Key, "PATIENCE=1s", "GITHUB_SHA=0f1e2d",
			"GITHUB_REPOSITORY=shop/prices", "GITHUB_RUN_ID=7")
		out, err := cmd.CombinedOutput()
		var exited *exec.ExitError
		if err != nil && !errors.As(err, &exited) {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	script := filepath.Join(root, "examples", "agents", "price.sh")
	expect := func(what string, code int, name string, args ...string) {
		t.Helper()
		out, got := run(name, args...)
		if got != code || !strings.Contains(out, what) {
			t.Errorf("exits %d, want %d and %q:\n%s", got, code, what, out)
		}
	}
	expect("run it again later", 8, script, "SKU-1", "10.00", "12.00")
	servetest.DecideOnly(t, api, gatehouse.Approve)
	expect("SKU-1 costs 12.00", 0, script, "SKU-1", "10.00", "12.00")
	expect("run it again later", 8, script, "SKU-1", "12.00", "99.00")
	servetest.DecideOnly(t, api, gatehouse.Reject)
	expect("still costs 12.00", 10, script, "SKU-1", "12.00", "99.00")
	expect("run it again later", 8, script, "SKU-1", "12.00", "98.00")
	page, err := api.ListActions(t.Context(), gatehouse.ActionFilter{Status: gatehouse.StatusPending})
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("pending: %+v, %v", page, err)
	}
	_, err = servetest.MustClient(t, url, agent).Cancel(t.Context(), page.Items[0].ID)
	must(t, err)
	expect("canceled, or replaced by another revision: gatehouse list -q SKU-1 ", 12, script, "SKU-1", "12.00", "98.00")
	url, server := "http://127.0.0.1:1", url // nothing listens there
	expect("not done, or not known: see the message above", 1, script, "SKU-1", "12.00", "97.00")
	url = server

	var workflow struct {
		Jobs map[string]struct {
			Steps []struct {
				Run string `yaml:"run"`
			} `yaml:"steps"`
		} `yaml:"jobs"`
	}
	text, err := os.ReadFile(filepath.Join(root, "examples", "agents", "github-action.yml"))
	must(t, err)
	must(t, yaml.Unmarshal(text, &workflow))
	steps := workflow.Jobs["propose"].Steps
	body := steps[len(steps)-1].Run
	if !regexp.MustCompile(`--wait --timeout 5h`).MatchString(body) {
		t.Fatalf("the step runs %q", body)
	}
	body = strings.Replace(body, "--timeout 5h", "--timeout 60s", 1)
	shop := func(script string) string {
		t.Helper()
		cmd := exec.Command("python3", "-c", `import sqlite3; db = sqlite3.connect("shop.db"); `+script)
		cmd.Dir = q.dir
		out, err := cmd.Output()
		must(t, err)
		return strings.TrimSpace(string(out))
	}
	shop(`db.execute("INSERT INTO items VALUES ('SKU-2', '20.00', 1)"); db.commit()`)
	// The first run goes on after the rejected row.
	for i, c := range []struct {
		prices    string
		decisions []gatehouse.DecisionKind
		code      int
	}{
		{"SKU-1 12.00 99.00\nSKU-2 20.00 21.00\n", []gatehouse.DecisionKind{gatehouse.Reject, gatehouse.Approve}, 10},
		{"SKU-1 12.00 13.00\n", []gatehouse.DecisionKind{gatehouse.Approve}, 0},
	} {
		q.write("prices.txt", c.prices)
		decided := make(chan struct{})
		go func() {
			defer close(decided)
			for _, d := range c.decisions {
				servetest.DecideOnly(t, api, d)
			}
		}()
		// As a runner does: bash that ends at the first failing command. Each run has its own number.
		out, code := run("bash", "-e", "-c", fmt.Sprintf("GITHUB_RUN_ID=%d\n%s", i, body))
		<-decided
		if code != c.code {
			t.Errorf("the step exits %d: %s", code, out)
		}
	}
	if out := shop(`print(db.execute("SELECT sku, price FROM items ORDER BY sku").fetchall())`); out !=
		"[('SKU-1', '13.00'), ('SKU-2', '21.00')]" {
		t.Errorf("the prices are %s", out)
	}
	q.server.stop()
}
