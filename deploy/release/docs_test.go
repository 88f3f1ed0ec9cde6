package main

import (
	"regexp"
	"strings"
	"testing"
)

// TestInstallPage: the page names the present version, and only artifacts that a release has.
func TestInstallPage(t *testing.T) {
	src, err := readSource(t.Context(), root)
	must(t, err)
	page := strings.ReplaceAll(string(read(t, root, "docs", "install.md")), "${version}", "$version")
	if !strings.Contains(page, "\nversion="+src.version+"\nbase="+strings.TrimSuffix(download, "v")+"v$version\n") {
		t.Error("the page is of another version")
	}
	known := map[string]bool{
		"gatehouse-$version.tgz": true, "gatehouse_$version_deploy.tar.gz": true,
		"gatehouse_$version_image.oci.tar": true, "gatehouse.rb": true,
		"gatehouse_$version_amd64.deb": true, "gatehouse_$version_arm64.deb": true,
		"gatehouse-$version-1.x86_64.rpm": true, "gatehouse-$version-1.aarch64.rpm": true,
	}
	for _, p := range platforms {
		name := "gatehouse_$version_" + strings.ReplaceAll(p, "/", "_")
		known[name+".cdx.json"], known[name+".tar.gz"], known[name+".zip"] = true, !strings.HasPrefix(p, "windows"),
			strings.HasPrefix(p, "windows")
	}
	seen := make(map[string]bool)
	for _, name := range regexp.MustCompile(
		`gatehouse[-_.][\w$.-]*\.(?:tar\.gz|zip|deb|rpm|tar|tgz|rb|json)\b`).FindAllString(page, -1) {
		seen[name] = true
		if !known[name] {
			t.Errorf("a release has no %s", name)
		}
	}
	if len(seen) < 8 {
		t.Errorf("only %v", seen)
	}
}
