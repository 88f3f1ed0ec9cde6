package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// install runs install.sh against a server that modifies its answers.
func install(
	t *testing.T, script []byte, change func(name string, content []byte) []byte,
) (to, said string, err error) {
	t.Helper()
	out, _ := made(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/")
		content, err := os.ReadFile(filepath.Join(out, filepath.Base(name)))
		if err == nil && change != nil {
			content = change(name, content)
		}
		if err != nil || content == nil {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(content)
	}))
	defer server.Close()
	to = filepath.Join(t.TempDir(), "bin")
	cmd := exec.CommandContext(t.Context(), "dash")
	cmd.Stdin = bytes.NewReader(script)
	cmd.Env = append(os.Environ(), "GATEHOUSE_BASE="+server.URL, "GATEHOUSE_INSTALL="+to, "TMPDIR="+t.TempDir())
	answer, err := cmd.CombinedOutput()
	left, globErr := filepath.Glob(filepath.Join(strings.TrimPrefix(cmd.Env[len(cmd.Env)-1], "TMPDIR="), "*"))
	if globErr != nil || len(left) > 0 {
		t.Errorf("it leaves %q, %v", left, globErr)
	}
	return to, string(answer), err
}

func TestInstall(t *testing.T) {
	out, src := made(t)
	script := read(t, out, "install.sh")
	to, said, err := install(t, script, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	wantThisBuild(t, src, filepath.Join(to, "gatehouse"))
	if !strings.Contains(said, "Installed gatehouse "+src.version+" as "+to) ||
		!strings.Contains(said, "is not in PATH") {
		t.Errorf("it said %s", said)
	}
	if !bytes.Contains(script, []byte(download+src.version+"}")) || bytes.Contains(script, []byte("@VERSION@")) {
		t.Error("the script does not name this release")
	}
}

// TestInstallRefuses: install.sh installs nothing if an artifact is missing, truncated, or has
// another checksum than in the release.
func TestInstallRefuses(t *testing.T) {
	out, src := made(t)
	script := read(t, out, "install.sh")
	archive := "gatehouse_" + src.version + "_linux_amd64.tar.gz"
	only := func(name string, to []byte) func(string, []byte) []byte {
		return func(asked string, content []byte) []byte {
			if asked == name {
				return to
			}
			return content
		}
	}
	sums := read(t, out, sumsFile)
	for name, c := range map[string]struct {
		script []byte
		change func(string, []byte) []byte
		want   string
	}{
		"another archive": {script, only(archive, append(read(t, out, archive), 0)), "has the checksum"},
		"another checksum": {script, only(sumsFile,
			regexp.MustCompile(`(?m)^[0-9a-f]{64}`).ReplaceAll(sums, bytes.Repeat([]byte("0"), 64))),
			"has the checksum"},
		"no checksum": {script, only(sumsFile, bytes.ReplaceAll(sums, []byte(archive), []byte("other"))),
			"has no line for " + archive},
		"no checksums":          {script, only(sumsFile, nil), "cannot get"},
		"no archive":            {script, only(archive, nil), "cannot get"},
		"a script broken off":   {script[:bytes.Index(script, []byte("  fetch"))], nil, ""},
		"broken off at the end": {bytes.TrimSuffix(script, []byte("main\n")), nil, ""},
	} {
		to, said, err := install(t, c.script, c.change)
		if c.want != "" && (err == nil || !strings.Contains(said, c.want)) {
			t.Errorf("%s: %v, %s", name, err, said)
		}
		if files, err := filepath.Glob(filepath.Join(to, "*")); err != nil || len(files) > 0 {
			t.Errorf("%s: it installed %q, %v", name, files, err)
		}
	}
}
