package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sassoftware/go-rpmutils"
)

// TestDeb unpacks the package as dpkg does, and runs its program.
func TestDeb(t *testing.T) {
	out, src := made(t)
	deb, to := filepath.Join(out, "gatehouse_"+src.version+"_amd64.deb"), t.TempDir()
	run(t, "", "dpkg-deb", "--extract", deb, to)
	program := filepath.Join(to, "usr/bin/gatehouse")
	wantThisBuild(t, src, program)
	run(t, "", program, "config", "check", "--config", filepath.Join(to, "etc/gatehouse/gatehouse.yaml"))

	listed := run(t, "", "dpkg-deb", "--contents", deb)
	for _, want := range []string{
		`-rwxr-xr-x root/root .* \./usr/bin/gatehouse`,
		`-rw-r----- root/gatehouse .* \./etc/gatehouse/gatehouse.yaml`,
		`drwxr-x--- root/gatehouse .* \./etc/gatehouse/`,
		`drwx------ gatehouse/gatehouse .* \./var/lib/gatehouse/`,
		`-rw-r--r-- root/root .* \./usr/share/doc/gatehouse/copyright`,
	} {
		if !regexp.MustCompile(`(?m)^` + want + `$`).MatchString(listed) {
			t.Errorf("no %s in\n%s", want, listed)
		}
	}
	for field, want := range map[string]string{"Version": src.version, "Architecture": "amd64",
		"Pre-Depends": "passwd"} {
		if got := strings.TrimSpace(run(t, "", "dpkg-deb", "--field", deb, field)); !strings.HasPrefix(got, want) {
			t.Errorf("%s is %s", field, got)
		}
	}
	control := t.TempDir()
	run(t, "", "dpkg-deb", "--control", deb, control)
	if got := string(read(t, control, "conffiles")); strings.TrimSpace(got) != "/etc/gatehouse/gatehouse.yaml" {
		t.Errorf("upgrades keep %q", got)
	}
	for _, script := range []string{"preinst", "postinst", "prerm", "postrm"} {
		run(t, "", "dash", "-n", filepath.Join(control, script))
	}
	if !strings.Contains(string(read(t, control, "preinst")), "useradd --system") {
		t.Error("nothing makes the user")
	}

	// The unit starts the program at its packaged path.
	unit := filepath.Join(to, "usr/lib/systemd/system/gatehouse.service")
	content := bytes.ReplaceAll(read(t, unit), []byte("=/usr/bin/"), []byte("="+to+"/usr/bin/"))
	copied := filepath.Join(t.TempDir(), "gatehouse.service")
	must(t, os.WriteFile(copied, content, 0o600))
	run(t, "", "systemd-analyze", "verify", "--man=no", copied)
	if bytes.Contains(content, []byte("/usr/local")) ||
		!bytes.Contains(content, []byte("--config /etc/gatehouse/gatehouse.yaml")) {
		t.Errorf("the unit starts something else:\n%s", content)
	}
}

// TestRPM reads the package's header and unpacks it.
func TestRPM(t *testing.T) {
	out, src := made(t)
	f, err := os.Open(filepath.Join(out, "gatehouse-"+src.version+"-1.x86_64.rpm"))
	must(t, err)
	defer f.Close()
	rpm, err := rpmutils.ReadRpm(f)
	must(t, err)
	nevra, err := rpm.Header.GetNEVRA()
	if err != nil || nevra.Name != "gatehouse" || nevra.Version != src.version || nevra.Release != "1" ||
		nevra.Arch != "x86_64" {
		t.Errorf("it is %v, %v", nevra, err)
	}
	scripts := map[int]string{
		rpmutils.PREIN: "useradd --system", rpmutils.POSTIN: "try-restart", rpmutils.PREUN: "disable --now",
		rpmutils.POSTUN: "daemon-reload",
	}
	for tag, want := range scripts {
		if got, err := rpm.Header.GetString(tag); err != nil || !strings.Contains(got, want) {
			t.Errorf("script %d: %q, %v", tag, got, err)
		}
	}
	files, err := rpm.Header.GetFiles()
	must(t, err)
	// The file flags of rpm: 1 marks a configuration file, 16 one that upgrades do not replace.
	want := map[string]struct {
		mode, flags  int
		owner, group string
	}{
		"/usr/bin/gatehouse":                        {0o100755, 0, "root", "root"},
		"/etc/gatehouse/gatehouse.yaml":             {0o100640, 1 | 16, "root", "gatehouse"},
		"/etc/gatehouse":                            {0o40750, 0, "root", "gatehouse"},
		"/var/lib/gatehouse":                        {0o40700, 0, "gatehouse", "gatehouse"},
		"/usr/lib/systemd/system/gatehouse.service": {0o100644, 0, "root", "root"},
	}
	for _, f := range files {
		w, ok := want[f.Name()]
		if !ok {
			continue
		}
		delete(want, f.Name())
		if f.Mode()&0o177777 != w.mode || f.Flags() != w.flags || f.UserName() != w.owner || f.GroupName() != w.group {
			t.Errorf("%s: %o %d %s %s, want %+v", f.Name(), f.Mode(), f.Flags(), f.UserName(), f.GroupName(), w)
		}
	}
	if len(want) > 0 {
		t.Errorf("it has none of %v", want)
	}
	to := t.TempDir()
	must(t, rpm.ExpandPayload(to))
	// The library leaves the modes to the header, which is checked above.
	program := filepath.Join(to, "usr/bin/gatehouse")
	must(t, os.Chmod(program, 0o755))
	wantThisBuild(t, src, program)
}
