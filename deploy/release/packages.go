package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"
)

// packages makes a deb and an rpm for each Linux architecture: the program, its systemd unit, a
// system user, and the configuration as a file that upgrades keep.
func (d *dist) packages() error {
	for _, b := range d.binaries {
		if b.os != "linux" {
			continue
		}
		for _, p := range []nfpm.Packager{deb.Default, rpm.DefaultRPM} {
			if err := d.pack(b, p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *dist) pack(b binary, packager nfpm.Packager) error {
	format, isDeb := "rpm", packager == nfpm.Packager(deb.Default)
	if isDeb {
		format = "deb"
	}
	contents, err := d.contents(b, isDeb)
	if err != nil {
		return err
	}
	compression := fmt.Sprintf("gzip:%d", d.level)
	scripts := filepath.Join(d.root, "deploy", "release", "scripts")
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "gatehouse", Arch: b.arch, Platform: "linux", Version: d.version, MTime: d.date,
		Section: "admin", Priority: "optional",
		Maintainer: "The Gatehouse authors <https://github.com/gatehouse-dev/gatehouse>",
		Description: "The gate between AI agents and the systems that they change\n" +
			"Agents propose changes, a policy allows, denies or asks, people decide, and what was\n" +
			"approved is carried out at the target at most once.",
		Vendor: "Gatehouse", Homepage: "https://github.com/gatehouse-dev/gatehouse", License: "Apache-2.0",
		DisableGlobbing: true,
		Overridables: nfpm.Overridables{
			Contents: contents,
			Scripts: nfpm.Scripts{
				PreInstall:  filepath.Join(scripts, "preinstall.sh"),
				PostInstall: filepath.Join(scripts, "postinstall.sh"),
				PreRemove:   filepath.Join(scripts, "preremove.sh"), PostRemove: filepath.Join(scripts, "postremove.sh"),
			},
			// Level 9, nfpm's default, takes three times the CPU time of level 6 and saves 0.4 % of the deb, 4 % of the rpm.
			Deb: nfpm.Deb{Predepends: []string{"passwd"}, Compression: compression},
			RPM: nfpm.RPM{BuildHost: "gatehouse", Group: "System Environment/Daemons", Compression: compression},
		},
	})
	if !isDeb {
		info.Release = "1"
		info.Depends = []string{"shadow-utils"}
	}
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	var out bytes.Buffer
	if err := packager.Package(info, &out); err != nil {
		return err
	}
	return d.write(packager.ConventionalFileName(info), out.Bytes())
}

// contents are the files of a package.
func (d *dist) contents(b binary, isDeb bool) (files.Contents, error) {
	zsh := "/usr/share/zsh/site-functions/_gatehouse"
	if isDeb {
		zsh = "/usr/share/zsh/vendor-completions/_gatehouse"
	}
	unit, err := d.read("deploy/systemd/gatehouse.service")
	if err != nil {
		return nil, err
	}
	made := map[string][]byte{
		"/usr/lib/systemd/system/gatehouse.service":           packagedUnit(unit),
		"/usr/share/bash-completion/completions/gatehouse":    d.completions["bash"],
		"/usr/share/fish/vendor_completions.d/gatehouse.fish": d.completions["fish"],
		zsh: d.completions["zsh"],
	}
	contents := files.Contents{
		{Source: b.file, Destination: "/usr/bin/gatehouse",
			FileInfo: &files.ContentFileInfo{Mode: 0o755, MTime: d.date}},
		{Destination: "/etc/gatehouse", Type: files.TypeDir,
			FileInfo: &files.ContentFileInfo{Mode: 0o750, Group: "gatehouse", MTime: d.date}},
		{Destination: "/var/lib/gatehouse", Type: files.TypeDir,
			FileInfo: &files.ContentFileInfo{Mode: 0o700, Owner: "gatehouse", Group: "gatehouse", MTime: d.date}},
		{
			Source:      filepath.Join(d.root, "internal", "cli", "starter.yaml"),
			Destination: "/etc/gatehouse/gatehouse.yaml", Type: files.TypeConfigNoReplace,
			FileInfo: &files.ContentFileInfo{Mode: 0o640, Group: "gatehouse", MTime: d.date},
		},
		{Source: filepath.Join(d.root, "LICENSE"), Destination: "/usr/share/doc/gatehouse/copyright",
			FileInfo: &files.ContentFileInfo{Mode: 0o644, MTime: d.date}},
		{Source: filepath.Join(d.root, "CHANGELOG.md"), Destination: "/usr/share/doc/gatehouse/CHANGELOG.md",
			FileInfo: &files.ContentFileInfo{Mode: 0o644, MTime: d.date}},
	}
	for at, content := range made {
		from := filepath.Join(d.work, "files", filepath.FromSlash(at))
		if err := os.MkdirAll(filepath.Dir(from), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(from, content, 0o644); err != nil {
			return nil, err
		}
		contents = append(contents, &files.Content{Source: from, Destination: at,
			FileInfo: &files.ContentFileInfo{Mode: 0o644, MTime: d.date}})
	}
	return contents, nil
}

// packagedUnit starts the program at its packaged path. It omits the comment about installing the
// unit by hand.
func packagedUnit(unit []byte) []byte {
	_, unit, _ = bytes.Cut(unit, []byte("[Unit]\n"))
	unit = bytes.ReplaceAll(unit, []byte("/usr/local/bin/gatehouse"), []byte("/usr/bin/gatehouse"))
	return append([]byte("[Unit]\n"), unit...)
}
