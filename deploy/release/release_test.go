package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const root = "../.."

// scratch is a folder shared by all tests, with two releases for one platform.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "gatehouse-release-test-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(scratch)
	os.Exit(code)
}

// releases are two releases, made one after the other from the same files.
var releases = sync.OnceValues(func() ([2]string, error) {
	var out [2]string
	at, err := filepath.Abs(root)
	if err != nil {
		return out, err
	}
	for i := range out {
		out[i] = filepath.Join(scratch, fmt.Sprintf("dist%d", i))
		o := options{root: at, out: out[i], platforms: []string{"linux/amd64"}, modified: true,
			level: gzip.BestSpeed}
		if err := release(context.Background(), o); err != nil {
			return out, err
		}
	}
	return out, nil
})

// made is the folder of a release for linux/amd64, and its source.
func made(t *testing.T) (string, *source) {
	t.Helper()
	out, err := releases()
	must(t, err)
	src, err := readSource(t.Context(), root)
	must(t, err)
	return out[0], src
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// wantThisBuild runs a program from an artifact and checks its version. It returns the commit that the
// program reports.
func wantThisBuild(t *testing.T, src *source, program string) string {
	t.Helper()
	var b struct {
		Version, Commit, Platform string
		Date                      time.Time
	}
	must(t, json.Unmarshal([]byte(run(t, "", program, "version", "--json")), &b))
	if b.Version != src.version || strings.TrimSuffix(b.Commit, "+modified") != src.commit || !b.Date.Equal(src.date) ||
		b.Platform != "linux/amd64" {
		t.Errorf("%s was built from %+v, not %+v", program, b, src)
	}
	return b.Commit
}

// untar unpacks files and folders.
func untar(t *testing.T, r io.Reader, to string) map[string]*tar.Header {
	t.Helper()
	headers := make(map[string]*tar.Header)
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if err == io.EOF {
			return headers
		}
		must(t, err)
		headers[h.Name] = h
		at := filepath.Join(to, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			must(t, os.MkdirAll(at, 0o755))
			continue
		}
		content, err := io.ReadAll(archive)
		must(t, err)
		must(t, os.MkdirAll(filepath.Dir(at), 0o755))
		must(t, os.WriteFile(at, content, os.FileMode(h.Mode)&0o777))
	}
}

func untarGzip(t *testing.T, name, to string) map[string]*tar.Header {
	t.Helper()
	f, err := os.Open(name)
	must(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	must(t, err)
	return untar(t, z, to)
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(path...))
	must(t, err)
	return content
}

// TestArtifacts: a release has all artifacts, and sha256sum accepts the list.
func TestArtifacts(t *testing.T) {
	out, src := made(t)
	files, err := os.ReadDir(out)
	must(t, err)
	var names []string
	for _, f := range files {
		names = append(names, strings.ReplaceAll(f.Name(), src.version, "VERSION"))
	}
	want := []string{
		"SHA256SUMS", "gatehouse-VERSION-1.x86_64.rpm", "gatehouse-VERSION.tgz", "gatehouse.rb",
		"gatehouse_VERSION_amd64.deb",
		"gatehouse_VERSION_deploy.tar.gz", "gatehouse_VERSION_image.oci.tar", "gatehouse_VERSION_linux_amd64.cdx.json",
		"gatehouse_VERSION_linux_amd64.tar.gz", "install.sh",
	}
	if !slices.Equal(names, want) {
		t.Errorf("got  %q\nwant %q", names, want)
	}
	if n := strings.Count(run(t, out, "sha256sum", "--check", "--strict", sumsFile), ": OK\n"); n != len(want)-1 {
		t.Errorf("%d checksums for %d files", n, len(want)-1)
	}
}

// TestReproducible: the same files give the same bytes.
func TestReproducible(t *testing.T) {
	first, _ := made(t)
	both, err := releases()
	must(t, err)
	files, err := os.ReadDir(first)
	must(t, err)
	for _, f := range files {
		if !bytes.Equal(read(t, both[0], f.Name()), read(t, both[1], f.Name())) {
			t.Errorf("%s differs when it is made again", f.Name())
		}
	}
}

func TestArchive(t *testing.T) {
	out, src := made(t)
	to, name := t.TempDir(), "gatehouse_"+src.version+"_linux_amd64"
	headers := untarGzip(t, filepath.Join(out, name+".tar.gz"), to)
	for _, file := range []string{"LICENSE", "README.md", "CHANGELOG.md", "completions/gatehouse.bash",
		"completions/_gatehouse", "completions/gatehouse.fish"} {
		if h := headers[name+"/"+file]; h == nil || h.Size == 0 || !h.ModTime.Equal(src.date) {
			t.Errorf("%s: %+v", file, h)
		}
	}
	program := filepath.Join(to, name, "gatehouse")
	wantThisBuild(t, src, program)
	run(t, to, "bash", "-n", filepath.Join(to, name, "completions", "gatehouse.bash"))

	// The binary is static and contains no paths of the build machine.
	info := run(t, to, "go", "version", "-m", program)
	for _, want := range []string{"-trimpath=true", "CGO_ENABLED=0"} {
		if !strings.Contains(info, want) {
			t.Errorf("no %s in\n%s", want, info)
		}
	}
	home, err := filepath.Abs(root)
	must(t, err)
	if bytes.Contains(read(t, program), []byte(home+string(filepath.Separator))) {
		t.Errorf("the program names %s", home)
	}
}

// TestPlainBuild: a plain `go build` in a clone also records its commit.
func TestPlainBuild(t *testing.T) {
	src, err := readSource(t.Context(), root)
	must(t, err)
	clone := filepath.Join(t.TempDir(), "clone")
	run(t, "", "git", "clone", "--quiet", "--shared", root, clone)
	program := filepath.Join(t.TempDir(), "gatehouse")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/gatehouse")
	cmd.Dir = clone
	// The flags of the release, except for the commit, so that little is compiled again.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -gcflags=all=-dwarf=false -buildvcs=auto")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	wantThisBuild(t, src, program)
}

// TestDeploymentArchives: the chart's archive is the chart's folder.
func TestDeploymentArchives(t *testing.T) {
	out, src := made(t)
	to := t.TempDir()
	untarGzip(t, filepath.Join(out, "gatehouse-"+src.version+".tgz"), to)
	run(t, "", "diff", "-r", filepath.Join(root, "deploy", "helm", "gatehouse"), filepath.Join(to, "gatehouse"))
	untarGzip(t, filepath.Join(out, "gatehouse_"+src.version+"_deploy.tar.gz"), to)
	for _, name := range []string{"compose", "grafana", "helm", "kubernetes", "prometheus", "systemd"} {
		run(t, "", "diff", "-r", filepath.Join(root, "deploy", name), filepath.Join(to, "deploy", name))
	}
}

// TestRefuses: a state from which no release can be made is refused.
func TestRefuses(t *testing.T) {
	clone := filepath.Join(t.TempDir(), "clone")
	at, err := filepath.Abs(root)
	must(t, err)
	// No checkout: only the files that name the version, copied from here.
	run(t, "", "git", "clone", "--quiet", "--no-checkout", "--shared", at, clone)
	for name := range versioned {
		copyFile(t, name, clone)
	}
	copyFile(t, versionFile, clone)
	try := func(platforms ...string) error {
		return release(t.Context(), options{root: clone, out: filepath.Join(clone, "dist"), platforms: platforms})
	}
	if err := try("plan9/amd64"); err == nil || !strings.Contains(err.Error(), "plan9") {
		t.Errorf("an unknown platform: %v", err)
	}
	if err := try("linux/amd64"); err == nil || !strings.Contains(err.Error(), "differ from the commit") {
		t.Errorf("modified files: %v", err)
	}
	for _, name := range []string{"sdk/python/pyproject.toml", "sdk/typescript/package.json"} {
		if versioned[name] == "" {
			t.Errorf("the version of %s is not checked", name)
		}
	}
	for name := range versioned {
		content := read(t, clone, name)
		src, err := readSource(t.Context(), clone)
		must(t, err)
		other := bytes.Replace(content, []byte(src.version), []byte("9.9.9"), 1)
		must(t, os.WriteFile(filepath.Join(clone, name), other, 0o644))
		if err := try("linux/amd64"); err == nil || !strings.Contains(err.Error(), name+" names version 9.9.9") {
			t.Errorf("%s of another version: %v", name, err)
		}
		must(t, os.WriteFile(filepath.Join(clone, name), content, 0o644))
	}
}

// TestOutIsNoOtherFolder: only a folder with a release is emptied.
func TestOutIsNoOtherFolder(t *testing.T) {
	t.Parallel()
	above := t.TempDir()
	repository, old := filepath.Join(above, "repository"), filepath.Join(above, "old")
	other := filepath.Join(above, "other")
	for _, name := range []string{filepath.Join(repository, "go.mod"), filepath.Join(other, "a"), filepath.Join(old, "a"),
		filepath.Join(old, sumsFile), filepath.Join(repository, sumsFile)} {
		must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must(t, os.WriteFile(name, nil, 0o644))
	}
	for _, out := range []string{repository, above, other} {
		o := options{root: repository, out: out}
		if err := o.emptyOut(); err == nil {
			t.Errorf("%s was emptied", out)
		}
	}
	for _, out := range []string{old, filepath.Join(repository, "dist"), old} {
		o := options{root: repository, out: out}
		if err := o.emptyOut(); err != nil {
			t.Error(err)
		}
		if files, err := os.ReadDir(out); err != nil || len(files) > 0 {
			t.Errorf("%s: %v, %v", out, files, err)
		}
	}
}

// TestSDKsAreNotInTheFolderOfARelease: a release empties its folder, and refuses one that has other files. Git ignores
// the folder of the SDKs, because a release refuses files that differ from the commit.
func TestSDKsAreNotInTheFolderOfARelease(t *testing.T) {
	t.Parallel()
	folder := regexp.MustCompile(`(?m)^\t\./scripts/sdks (\S+)$`).FindSubmatch(read(t, root, "Makefile"))
	if folder == nil || !strings.Contains(string(read(t, root, "scripts", "sdks")), `"${1:-`+string(folder[1])+`}"`) {
		t.Fatalf("the folder of the SDKs is %q", folder)
	}
	if in, err := filepath.Rel("dist", string(folder[1])); err != nil || filepath.IsLocal(in) {
		t.Errorf("%s is in the folder of a release: %v", folder[1], err)
	}
	run(t, root, "git", "check-ignore", "--no-index", string(folder[1])+"/")
}

func copyFile(t *testing.T, name, to string) {
	t.Helper()
	at := filepath.Join(to, filepath.FromSlash(name))
	must(t, os.MkdirAll(filepath.Dir(at), 0o755))
	must(t, os.WriteFile(at, read(t, root, name), 0o644))
}

// TestFormula: Ruby loads the formula, whose archives have the published URLs and the right
// checksums.
func TestFormula(t *testing.T) {
	out, src := made(t)
	// These are the parts of Homebrew's DSL that the formula uses; they record its values.
	const homebrew = `
class Formula
  def self.desc(s); end
  def self.homepage(s); end
  def self.license(s); end
  def self.test; end
  def self.version(s); puts "version #{s}"; end
  def self.url(s); puts "url #{s}"; end
  def self.sha256(s); puts "sha256 #{s}"; end
  def self.method_missing(name)
    raise "no #{name}" unless %i[on_macos on_linux on_intel on_arm].include?(name)
    puts name
    yield
  end
end
load ARGV[0]
`
	said := run(t, out, "ruby", "-W", "-e", homebrew, "./gatehouse.rb")
	name := "gatehouse_" + src.version + "_linux_amd64.tar.gz"
	sum, _, _ := strings.Cut(run(t, out, "sha256sum", name), " ")
	want := "version " + src.version + "\non_linux\non_intel\nurl " + download + src.version + "/" + name +
		"\nsha256 " + sum + "\n"
	if said != want {
		t.Errorf("the formula says\n%s, want\n%s", said, want)
	}
	for _, file := range regexp.MustCompile(`"(completions/[^"]+)"`).FindAllStringSubmatch(string(read(t, out,
		"gatehouse.rb")), -1) {
		run(t, out, "tar", "-tzf", name, strings.TrimSuffix(name, ".tar.gz")+"/"+file[1])
	}
}

// must ends the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
