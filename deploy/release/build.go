package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// binary is the program for one platform.
type binary struct {
	os, arch, file string
}

// name is the prefix of the platform's artifacts.
func (b *binary) name(version string) string {
	return fmt.Sprintf("gatehouse_%s_%s_%s", version, b.os, b.arch)
}

// build compiles the program and makes it print the shell completions.
func (d *dist) build(ctx context.Context, list []string) error {
	for _, p := range list {
		system, arch, _ := strings.Cut(p, "/")
		b, err := d.compile(ctx, system, arch)
		if err != nil {
			return err
		}
		d.binaries = append(d.binaries, b)
	}
	own := func(b binary) bool { return b.os == runtime.GOOS && b.arch == runtime.GOARCH }
	var here binary
	if i := slices.IndexFunc(d.binaries, own); i >= 0 {
		here = d.binaries[i]
	} else {
		var err error
		if here, err = d.compile(ctx, runtime.GOOS, runtime.GOARCH); err != nil {
			return err
		}
	}
	d.completions = make(map[string][]byte)
	for _, shell := range []string{"bash", "zsh", "fish"} {
		out, err := exec.CommandContext(ctx, here.file, "completion", shell).Output()
		if err != nil {
			return fmt.Errorf("completion for %s: %w", shell, err)
		}
		d.completions[shell] = out
	}
	return nil
}

// compile makes one static binary without any paths of the build machine. The linker sets the
// commit, because the version control information of the Go command depends on tags, and is missing
// in a worktree.
func (d *dist) compile(ctx context.Context, system, arch string) (binary, error) {
	b := binary{system, arch, filepath.Join(d.work, system+"_"+arch, "gatehouse")}
	if system == "windows" {
		b.file += ".exe"
	}
	const at = "github.com/gatehouse-dev/gatehouse/internal/version"
	flags := fmt.Sprintf("-s -w -X %s.commit=%s -X %s.date=%s", at, d.revision(), at, d.date.Format(time.RFC3339))
	// The linker drops debugging data; the compiler need not make any.
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false",
		"-ldflags", flags, "-o", b.file, "./cmd/gatehouse")
	cmd.Dir = d.root
	cmd.Env = append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch, "GOAMD64=v1",
		"GOARM64=v8.0", "GOEXPERIMENT=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return b, fmt.Errorf("build for %s/%s: %w\n%s", system, arch, err, out)
	}
	return b, nil
}
