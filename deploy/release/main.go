// Command release builds the artifacts of a release from the checked out commit: binaries,
// packages, the image, bills of materials, checksums. The same commit and the same Go version give
// the same bytes. It is a separate module, so that the product does not depend on its libraries.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

// platforms are the platforms of a release.
var platforms = []string{"darwin/amd64", "darwin/arm64", "linux/amd64", "linux/arm64", "windows/amd64", "windows/arm64"}

// options say what to build.
type options struct {
	root      string // the repository's folder
	out       string // where the artifacts go; see emptyOut
	platforms []string
	// modified permits files that differ from the commit; the binaries, the image and the bills of
	// materials report it.
	modified bool
	// base is the URL prefix of the published artifacts.
	base string
	// level is gzip's, for the archives and packages.
	level int
}

const download = "https://github.com/gatehouse-dev/gatehouse/releases/download/v"

func main() {
	o := options{level: 6}
	list := strings.Join(platforms, ",")
	flag.StringVar(&o.root, "root", ".", "the repository's `folder`")
	flag.StringVar(&o.out, "out", "dist", "the `folder` for the artifacts; if it has the "+sumsFile+
		" of an earlier release, everything in it is deleted first")
	flag.StringVar(&list, "platforms", list, "the platforms to build for, separated by commas")
	flag.StringVar(&o.base, "base", "",
		"the base `URL` of the published artifacts; by default the release on GitHub")
	flag.BoolVar(&o.modified, "modified", false, "build files that differ from the commit, to try things out")
	flag.Parse()
	o.platforms = strings.Split(list, ",")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := release(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release builds everything into the output folder.
func release(ctx context.Context, o options) (err error) {
	for _, p := range o.platforms {
		if !slices.Contains(platforms, p) {
			return fmt.Errorf("no platform %q; there are %s", p, strings.Join(platforms, ", "))
		}
	}
	src, err := readSource(ctx, o.root)
	if err != nil {
		return err
	}
	if src.modified && !o.modified {
		return errors.New("files differ from the commit: commit them, or permit them with -modified")
	}
	if o.base == "" {
		o.base = download + src.version
	}
	if err := o.emptyOut(); err != nil {
		return err
	}
	defer func() {
		if err != nil { // a folder without its checksums would be refused the next time
			err = errors.Join(err, os.RemoveAll(o.out))
		}
	}()
	work, err := os.MkdirTemp("", "gatehouse-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)

	d := &dist{source: src, out: o.out, base: o.base, level: o.level, work: work}
	if err := d.build(ctx, o.platforms); err != nil {
		return err
	}
	for _, step := range []func() error{d.archives, d.packages, d.image, d.sboms, d.deployment, d.installer, d.formula,
		d.checksums} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// emptyOut makes the output folder, or deletes everything in it. It refuses a folder that has files, but not
// the checksums of a release, and a folder that contains the repository.
func (o *options) emptyOut() error {
	root, err := filepath.Abs(o.root)
	if err != nil {
		return err
	}
	out, err := filepath.Abs(o.out)
	if err != nil {
		return err
	}
	if inside, err := filepath.Rel(out, root); err == nil && filepath.IsLocal(inside) {
		return fmt.Errorf("%s contains the repository, and would be deleted", o.out)
	}
	files, err := os.ReadDir(out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	isSums := func(f fs.DirEntry) bool { return f.Name() == sumsFile }
	if len(files) > 0 && !slices.ContainsFunc(files, isSums) {
		return fmt.Errorf("%s has files, but no %s of a release: name another folder, or delete it", o.out, sumsFile)
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	return os.MkdirAll(out, 0o755)
}

// dist is a release in the making.
type dist struct {
	*source
	out, base string
	level     int
	// work is a folder for intermediate files.
	work     string
	binaries []binary
	// completions maps each shell to its completion script.
	completions map[string][]byte
}

// write writes an artifact.
func (d *dist) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(d.out, name), content, 0o644)
}
