package cli

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/feed"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
	"github.com/gatehouse-dev/gatehouse/internal/telemetry"
)

const deployDir = "../../deploy"

func readDeploy(t *testing.T, path ...string) string {
	t.Helper()
	src, err := os.ReadFile(filepath.Join(append([]string{deployDir}, path...)...))
	must(t, err)
	return string(src)
}

// runTool runs a program that scripts/tools installs.
func runTool(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// The metrics that alert rules and dashboard ask for exist on a server, or are series of its histograms.
func TestAlertsAndDashboardKnowTheMetrics(t *testing.T) {
	t.Parallel()
	cfg := servetest.Config(t,
		`connectors: {shop: {type: sql, dsn: "sqlite:/nowhere/shop.db", entities: {item: {table: items, key: sku}}}}`)
	served := servedMetrics(t, t.TempDir(), cfg) + furtherMetrics(t)
	files := map[string]string{
		"alerts":    readDeploy(t, "prometheus", "alerts.yaml"),
		"dashboard": readDeploy(t, "grafana", "gatehouse.json"),
	}
	if !json.Valid([]byte(files["dashboard"])) {
		t.Error("the dashboard is not JSON")
	}
	names := regexp.MustCompile(`\b(?:gatehouse|process|go)_[a-z_]+`)
	for file, src := range files {
		seen := 0
		for _, name := range names.FindAllString(src, -1) {
			seen++
			family := regexp.MustCompile(`_(bucket|count)$`).ReplaceAllString(name, "")
			if !strings.Contains(served, "# TYPE "+name+" ") && !strings.Contains(served, "# TYPE "+family+" histogram") {
				t.Errorf("%s: a server has no metric %s", file, name)
			}
		}
		if seen < 10 {
			t.Errorf("%s: only %d metrics", file, seen)
		}
	}
}

// furtherMetrics returns the metrics that exist only with NATS, or after a model was called.
func furtherMetrics(t *testing.T) string {
	t.Helper()
	n := openNode(t, t.TempDir(), &config.Config{})
	defer func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}()
	registry := prometheus.NewRegistry()
	telemetry.RegisterFeed(registry, new(feed.Feed).Published, new(feed.Feed).Behind)
	telemetry.NewRuns(registry, n.Store).ModelUsed(&gatehouse.ModelUsage{Provider: "local", InputTokens: 1,
		Cost: "0.1", Currency: "USD"})
	families, err := registry.Gather()
	must(t, err)
	var names strings.Builder
	for _, f := range families {
		fmt.Fprintf(&names, "# TYPE %s counter\n", f.GetName())
	}
	return names.String()
}

func TestAlertRules(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(deployDir, "prometheus")
	runTool(t, dir, "promtool", "check", "rules", "alerts.yaml")
	runTool(t, dir, "promtool", "test", "rules", "alerts_test.yaml")
}

// systemd itself checks the unit, in which the test's own program replaces the installed one.
func TestSystemdUnit(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	must(t, err)
	unit := readDeploy(t, "systemd", "gatehouse.service")
	start := regexp.MustCompile(`ExecStart=(\S+) (.*)`).FindStringSubmatch(unit)
	if start == nil {
		t.Fatal("no ExecStart")
	}
	if _, err := testParser(t).Parse(strings.Fields(start[2])); err != nil {
		t.Errorf("%s: %v", start[2], err)
	}
	dir := t.TempDir()
	copied := filepath.Join(dir, "gatehouse.service")
	must(t, os.WriteFile(copied, []byte(strings.ReplaceAll(unit, start[1], self)), 0o600))
	runTool(t, dir, "systemd-analyze", "verify", "--man=no", copied)
}

// The files that the image copies exist, it is built with the Go version of go.mod, and it runs serve
// as an unprivileged user. The test does not build it, which would need a container engine.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("../../Dockerfile")
	must(t, err)
	file := string(src)
	for _, m := range regexp.MustCompile(`(?m)^COPY ([^-].*) \S+$`).FindAllStringSubmatch(file, -1) {
		for _, from := range strings.Fields(m[1]) {
			if _, err := os.Stat(filepath.Join("../..", from)); err != nil {
				t.Error(err)
			}
		}
	}
	mod, err := os.ReadFile("../../go.mod")
	must(t, err)
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(mod)
	for _, want := range []string{
		"FROM golang:" + string(version[1]) + "-", "CGO_ENABLED=0", "gcr.io/distroless/static-", ":nonroot\n", "\nUSER 65532",
		`CMD ["serve"]`,
		"ARG COMMIT DATE", "-X $VERSION.commit=$COMMIT -X $VERSION.date=$DATE",
	} {
		if !strings.Contains(file, want) {
			t.Errorf("no %q in the Dockerfile", want)
		}
	}
}

// The program accepts the arguments of the manifests.
func TestKubernetesArguments(t *testing.T) {
	t.Parallel()
	args := regexp.MustCompile(`args: \[(.*)\]`).FindStringSubmatch(readDeploy(t, "kubernetes", "deployment.yaml"))
	if args == nil {
		t.Fatal("no args")
	}
	var words []string
	for _, w := range strings.Split(args[1], ",") {
		words = append(words, strings.Trim(strings.TrimSpace(w), `"`))
	}
	if _, err := testParser(t).Parse(words); err != nil {
		t.Errorf("%q: %v", words, err)
	}
	src := regexp.MustCompile(`(?s)gatehouse.yaml: \|\n(.*)`).FindStringSubmatch(
		readDeploy(t, "kubernetes", "configmap.yaml"))
	if _, err := config.Parse("gatehouse.yaml", []byte(strings.ReplaceAll(src[1], "\n    ", "\n"))); err != nil {
		t.Error(err)
	}
}

// The program accepts the arguments of the compose file.
func TestComposeArguments(t *testing.T) {
	t.Parallel()
	file := readDeploy(t, "compose", "compose.yaml")
	command := regexp.MustCompile(`command: \[(.*)\]`).FindStringSubmatch(file)
	first := regexp.MustCompile(`run --rm gatehouse (init .*)`).FindStringSubmatch(file)
	if command == nil || first == nil {
		t.Fatal("no command")
	}
	for _, words := range []string{strings.NewReplacer(",", "", `"`, "").Replace(command[1]), first[1]} {
		if _, err := testParser(t).Parse(strings.Fields(words)); err != nil {
			t.Errorf("%s: %v", words, err)
		}
	}
	if _, err := config.Parse("gatehouse.yaml", []byte(readDeploy(t, "compose", "gatehouse.yaml"))); err != nil {
		t.Error(err)
	}
}

// The compose file's script accepts a password with a quote and a dollar sign. It creates a role to which
// row-level security applies, and a database in which the role may create tables.
func TestComposeRole(t *testing.T) {
	t.Parallel()
	cluster := pgtest.New(t)
	at, err := url.Parse(cluster.DSN("gatehouse"))
	must(t, err)
	cmd := exec.CommandContext(t.Context(), "sh", filepath.Join(deployDir, "compose", "role.sh"))
	cmd.Env = append(os.Environ(), "PATH="+pgtest.Programs()+":"+os.Getenv("PATH"), "PGHOST="+at.Query().Get("host"),
		"GATEHOUSE_PASSWORD=it's $HOME")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	super, err := pgx.Connect(t.Context(), cluster.DSN("gatehouse"))
	must(t, err)
	defer super.Close(t.Context())
	var stored string
	must(t, super.QueryRow(t.Context(), "SELECT rolpassword FROM pg_authid WHERE rolname = 'gatehouse'").Scan(&stored))
	if !scramOf(t, "it's $HOME", stored) { // the cluster itself asks for no password
		t.Errorf("another password is stored: %s", stored)
	}
	at.User = url.User("gatehouse")
	conn, err := pgx.Connect(t.Context(), at.String())
	must(t, err)
	defer conn.Close(t.Context())
	var unbound bool
	if err := conn.QueryRow(t.Context(),
		"SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user").Scan(&unbound); err != nil || unbound {
		t.Errorf("the role is not bound by row-level security: %v, %v", unbound, err)
	}
	if _, err := conn.Exec(t.Context(), "CREATE TABLE mine (id int)"); err != nil {
		t.Error(err)
	}
}

// scramOf reports whether a stored SCRAM-SHA-256 secret is of the password (RFC 5803).
func scramOf(t *testing.T, password, stored string) bool {
	t.Helper()
	m := regexp.MustCompile(`^SCRAM-SHA-256\$(\d+):([^$]+)\$([^:]+):`).FindStringSubmatch(stored)
	if m == nil {
		return false
	}
	rounds, err := strconv.Atoi(m[1])
	must(t, err)
	salt, err := base64.StdEncoding.DecodeString(m[2])
	must(t, err)
	salted, err := pbkdf2.Key(sha256.New, password, salt, rounds, sha256.Size)
	must(t, err)
	mac := hmac.New(sha256.New, salted)
	mac.Write([]byte("Client Key"))
	key := sha256.Sum256(mac.Sum(nil))
	return base64.StdEncoding.EncodeToString(key[:]) == m[3]
}
