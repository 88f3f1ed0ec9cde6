package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/demo"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// devServer is a running gatehouse dev.
type devServer struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout *bufio.Reader
	stderr bytes.Buffer
	// warning matches what it may write to stderr; nil for nothing.
	warning *regexp.Regexp
	// banner is what it printed; api and key are in the banner.
	banner, api, key string
}

var bannerForm = regexp.MustCompile(`^Gatehouse 0\.1\.0 — development mode, not for production
├─ Console  http://127\.0\.0\.1:\d+/setup\?token=gtu_\S+   \(one time, 30 minutes\)
├─ API      (http://127\.0\.0\.1:\d+/api/v1)   key (gth_\S+)
├─ Data     (\S+)   mail is caught at /dev/mail, Slack cards at /dev/slack
├─ Flags    --listen HOST:PORT  --data DIR  --config FILE
└─ Try      gatehouse demo
$`)

// cleanEnv is the environment without the Gatehouse settings of the developer.
func cleanEnv(more ...string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GATEHOUSE_") {
			env = append(env, v)
		}
	}
	return append(env, more...)
}

// startDev starts gatehouse dev in a folder, on a free port, and waits for its banner.
func startDev(t *testing.T, dir string, more ...string) *devServer {
	t.Helper()
	s := &devServer{t: t, cmd: exec.Command(watched, append([]string{"dev", "--listen", "127.0.0.1:0"}, more...)...)}
	s.cmd.Dir, s.cmd.Env, s.cmd.Stderr = dir, cleanEnv(), &s.stderr
	pipe, err := s.cmd.StdoutPipe()
	must(t, err)
	s.stdout = bufio.NewReader(pipe)
	must(t, s.cmd.Start())
	t.Cleanup(func() {
		if s.cmd.ProcessState == nil {
			_ = s.cmd.Process.Kill()
			_ = s.cmd.Wait()
		}
	})
	for range 6 {
		line, err := s.stdout.ReadString('\n')
		if err != nil {
			t.Fatalf("dev ended: %v, %s", err, &s.stderr)
		}
		s.banner += line
	}
	m := bannerForm.FindStringSubmatch(s.banner)
	if m == nil {
		t.Fatalf("dev prints\n%s", s.banner)
	}
	s.api, s.key = m[1], m[2]
	return s
}

// stop ends it, and checks that it printed nothing more but the expected warning.
func (s *devServer) stop() {
	s.t.Helper()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	rest, _ := io.ReadAll(s.stdout)
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("dev ended with %v", err)
	}
	if len(rest) > 0 || s.stderr.Len() > 0 && (s.warning == nil || !s.warning.Match(s.stderr.Bytes())) {
		s.t.Errorf("dev also printed %q and %q", rest, &s.stderr)
	}
}

// TestDev walks an agent author's first steps.
func TestDev(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := startDev(t, dir)

	address := strings.TrimSuffix(strings.TrimPrefix(s.api, "http://"), "/api/v1")
	for command, data := range map[string]string{"dev": "other", "serve": "third"} {
		taken := exec.Command("gatehouse", command, "--data", data, "--listen", address)
		taken.Dir, taken.Env = dir, cleanEnv()
		said, err := taken.CombinedOutput()
		if taken.ProcessState.ExitCode() != term.ExitError ||
			!bytes.Contains(said, []byte("is in use, perhaps by another `gatehouse`")) {
			t.Errorf("%s on a used port: %v, %s", command, err, said)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "other")); err == nil {
		t.Error("on a used port a data folder was created")
	}

	// The printed key proposes, as curl would.
	body := `{"action_type": "price_change", "connector": "shop", "operation": "update",
		"target": {"entity_type": "item", "entity_ref": "SKU-1042", "version": "7"},
		"current_state": {"price": "10.00"}, "proposed_change": {"price": "12.50"}}`
	req, err := http.NewRequest(http.MethodPost, s.api+"/proposed-actions", strings.NewReader(body))
	must(t, err)
	req.Header.Set("Authorization", "Bearer "+s.key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	defer resp.Body.Close()
	var a gatehouse.Action
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil || resp.StatusCode != http.StatusCreated ||
		a.Status != gatehouse.StatusPending {
		t.Fatalf("%s, %s, %v", resp.Status, a.Status, err)
	}

	url := strings.TrimSuffix(s.api, "/api/v1")
	told, err := servetest.MustClient(t, url, devEnv(t, dir, "admin")).ListNotices(t.Context(),
		gatehouse.NoticeFilter{})
	if err != nil || len(told.Items) > 0 {
		t.Errorf("the administrator has notices about the start: %d, %v", len(told.Items), err)
	}
	// The agent's key can only propose, not decide.
	agent := servetest.MustClient(t, url, devEnv(t, dir, "agent"))
	approve := gatehouse.Decision{Decision: gatehouse.Approve, Digest: a.Digest}
	if _, err := agent.Decide(t.Context(), a.ID, approve); gatehouse.CodeOf(err) != gatehouse.CodeRoleRequired {
		t.Errorf("the agent decides: %v", err)
	}
	admin := servetest.MustClient(t, url, devEnv(t, dir, "admin"))
	if _, err := admin.Decide(t.Context(), a.ID, approve); err != nil {
		t.Fatal(err)
	}
	done, err := agent.WaitAction(t.Context(), a.ID, time.Minute, gatehouse.UntilFinished)
	if err != nil || done.Status != gatehouse.StatusApplied {
		t.Fatalf("%v, %v", done, err)
	}
	ledger, err := demo.Open(filepath.Join(dir, "gatehouse-data", demo.DevLedgerFile))
	must(t, err)
	defer ledger.Close()
	var price, version string
	if err := ledger.QueryRow(`SELECT price, version FROM items WHERE sku = 'SKU-1042'`).Scan(&price,
		&version); err != nil || price != "12.50" || version != "8" {
		t.Errorf("the ledger has price %s, version %s, %v", price, version, err)
	}
	// The reviewer, the second person for L5, may decide; this action is decided already.
	reviewer := servetest.MustClient(t, url, devEnv(t, dir, "reviewer"))
	if _, err := reviewer.Decide(t.Context(), a.ID, approve); gatehouse.CodeOf(err) != gatehouse.CodeAlreadyDecided {
		t.Errorf("the reviewer decides again: %v", err)
	}

	secrets, err := os.Stat(filepath.Join(dir, "gatehouse-data", "dev-credentials.json"))
	if err != nil || secrets.Mode().Perm() != 0o600 {
		t.Errorf("the credentials: %v, %v", secrets.Mode(), err)
	}
	s.stop()

	// The same folder keeps the key, the ledger and the actions.
	again := startDev(t, dir)
	if again.key != s.key {
		t.Error("the key differs after a restart")
	}
	kept, err := servetest.MustClient(t, strings.TrimSuffix(again.api, "/api/v1"),
		devEnv(t, dir, "agent")).FindAction(t.Context(), a.ID)
	if err != nil || kept.Status != gatehouse.StatusApplied {
		t.Errorf("after a restart: %v, %v", kept, err)
	}
	again.stop()

	// If another command has replaced the edit token, dev replaces it again.
	reset := exec.Command("gatehouse", "admin", "reset", "admin", "--data", "gatehouse-data")
	reset.Dir, reset.Env = dir, cleanEnv()
	if out, err := reset.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	third := startDev(t, dir)
	admin = servetest.MustClient(t, strings.TrimSuffix(third.api, "/api/v1"), devEnv(t, dir, "admin"))
	if _, err := admin.CreateKey(t.Context(), "dev-agent"); err != nil {
		t.Errorf("after an admin reset: %v", err)
	}
	third.stop()
}

// devEnv evaluates gatehouse dev env in a shell, as people do.
func devEnv(t *testing.T, dir, as string) gatehouse.Credentials {
	t.Helper()
	cmd := exec.Command("sh", "-c", `GATEHOUSE_EDIT_TOKEN=of-somebody-else; set -e
made=$(gatehouse dev env --as `+as+`); eval "$made"; printf '%s\n' "$GATEHOUSE_KEY" "${GATEHOUSE_EDIT_TOKEN-}"`)
	cmd.Dir, cmd.Env = dir, cleanEnv()
	out, err := cmd.Output()
	must(t, err)
	key, token, _ := strings.Cut(strings.TrimSuffix(string(out), "\n"), "\n")
	return gatehouse.Credentials{Key: key, EditToken: token}
}

// TestDevServesADemo: dev can serve a demo's folder, and the folder is not removed meanwhile.
func TestDevServesADemo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gatehouseIn := func(args ...string) (string, int) {
		cmd := exec.Command("gatehouse", args...)
		cmd.Dir, cmd.Env = dir, cleanEnv()
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	if out, code := gatehouseIn("demo"); code != 0 {
		t.Fatal(out)
	}
	s := startDev(t, dir, "--data", "gatehouse-demo")
	// The demo's warehouse ended with the demo.
	s.warning = regexp.MustCompile(`\Awarning: connector warehouse: no connection to [^\n]*\n\z`)
	admin := servetest.MustClient(t, strings.TrimSuffix(s.api, "/api/v1"), func() gatehouse.Credentials {
		var c struct{ Admin gatehouse.Credentials }
		b, err := os.ReadFile(filepath.Join(dir, "gatehouse-demo", "dev-credentials.json"))
		must(t, errors.Join(err, json.Unmarshal(b, &c)))
		return c.Admin
	}())
	page, err := admin.ListActions(t.Context(), gatehouse.ActionFilter{Status: gatehouse.StatusDenied})
	if err != nil || len(page.Items) != 1 || page.Items[0].Metadata != `{"demo":true}` {
		t.Errorf("denied in the demo: %v, %v", page.Items, err)
	}
	for _, args := range [][]string{{"demo"}, {"demo", "--remove"}} {
		if out, code := gatehouseIn(args...); code != term.ExitError || !strings.Contains(out, "is not removed") {
			t.Errorf("%v while it is served: exit code %d, %s", args, code, out)
		}
	}
	s.stop()
	if out, code := gatehouseIn("demo", "--remove"); code != 0 {
		t.Error(out)
	}
}

// TestDevOffersPasskeys checks that passkeys are offered at localhost, and that the pages at the
// printed address lead there.
func TestDevOffersPasskeys(t *testing.T) {
	t.Parallel()
	s := startDev(t, t.TempDir())
	at := strings.TrimSuffix(s.api, "/api/v1")
	named := strings.Replace(at, "127.0.0.1", "localhost", 1)
	page := func(host string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+"/signin", nil)
		must(t, err)
		req.Host = strings.TrimPrefix(host, "http://")
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s, %v", resp.Status, err)
		}
		return string(body)
	}
	if !strings.Contains(page(named), "data-passkey-signin") {
		t.Errorf("no passkeys at %s", named)
	}
	if p := page(at); strings.Contains(p, "data-passkey-signin") || !strings.Contains(p, `href="`+named+`/signin"`) {
		t.Errorf("at %s nothing leads to %s", at, named)
	}
	s.stop()
}
