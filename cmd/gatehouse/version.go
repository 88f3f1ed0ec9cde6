package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// version is that of the next release, until the release.
const version = "0.1.0"

// For builds without version control, such as the Dockerfile's:
// -ldflags "-X main.commit=HASH -X main.date=2026-01-02T15:04:05Z".
var commit, date string

// versionCmd prints the version.
type versionCmd struct{}

func (*versionCmd) Help() string {
	return `
Commit and date are those of the source; "unknown" where the build had no version
control. Piped, the columns are: version, commit, date, Go version, platform.

Examples:

    gatehouse version --json
`
}

// buildInfo tells what this binary was built from, with what, and for what.
type buildInfo struct {
	gatehouse.Build
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// thisBuild takes commit and date from the linker where it was told, else from what
// the Go command noted of the version control.
func thisBuild() gatehouse.Build {
	settings := make(map[string]string)
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
	}
	b := gatehouse.Build{Version: version, Commit: cmp.Or(commit, settings["vcs.revision"])}
	if commit == "" && b.Commit != "" && settings["vcs.modified"] == "true" {
		b.Commit += "+modified"
	}
	if at, err := time.Parse(time.RFC3339, cmp.Or(date, settings["vcs.time"])); err == nil {
		b.Date = at.UTC()
	}
	return b
}

// Run prints.
func (*versionCmd) Run(g *globals) error {
	b := buildInfo{thisBuild(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	if g.JSON {
		return g.printJSON(b)
	}
	from, at := cmp.Or(b.Commit, "unknown"), "unknown"
	if !b.Date.IsZero() {
		at = b.Date.Format(time.RFC3339)
	}
	if g.tty {
		_, err := fmt.Fprintf(g.stdout, "gatehouse %s (commit %s of %s, %s, %s)\n", b.Version, from, at, b.Go,
			b.Platform)
		return err
	}
	t := &table{}
	t.add(b.Version, from, at, b.Go, b.Platform)
	return g.print(t, "")
}
