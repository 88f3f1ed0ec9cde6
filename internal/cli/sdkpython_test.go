package cli

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPythonSDK installs the wheel of sdk/python, and runs its tests against a server with
// a connector of type worker and one of type sql.
func TestPythonSDK(t *testing.T) {
	t.Parallel()
	root := sdkRoot(t)
	q := sdkServer(t, root, "sdks.md")
	packed := q.command(filepath.Join(root, "scripts", "sdks"), q.dir, "python")
	if out, err := packed.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	site := filepath.Join(q.dir, "site") // as an installer of wheels does: the unchanged files
	unpack := q.command("python3", "-m", "zipfile", "-e", "gatehouse-0.1.0-py3-none-any.whl", site)
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command("python3", "-W", "error", "-m", "unittest", "discover", "-v", "-s",
		filepath.Join(root, "sdk/python/tests"))
	cmd.Env = append(sdkEnv(t, q), "PYTHONPATH="+site, "PYTHONDONTWRITEBYTECODE=1", "WHEEL="+q.dir)
	out, err := cmd.CombinedOutput()
	if err != nil || !regexp.MustCompile(`Ran \d\d tests`).Match(out) || strings.Contains(string(out), "skipped") {
		t.Errorf("%v\n%s", err, out)
	}
	q.server.stop()
}
