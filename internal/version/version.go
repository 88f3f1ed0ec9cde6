// Package version describes this build.
package version

import (
	"cmp"
	"runtime/debug"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// Number is the version of the last release. Changing it is the first step of a release.
const Number = "0.1.0"

// The linker sets commit and date in builds without version control, such as the Dockerfile's:
// -ldflags "-X github.com/gatehouse-dev/gatehouse/internal/version.commit=HASH" and the same for date,
// such as 2026-01-02T15:04:05Z.
var commit, date string

// Build takes commit and date from the linker if they are set, else from the Go command's
// version control information.
func Build() gatehouse.Build {
	settings := make(map[string]string)
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
	}
	b := gatehouse.Build{Version: Number, Commit: cmp.Or(commit, settings["vcs.revision"])}
	if commit == "" && b.Commit != "" && settings["vcs.modified"] == "true" {
		b.Commit += "+modified"
	}
	if at, err := time.Parse(time.RFC3339, cmp.Or(date, settings["vcs.time"])); err == nil {
		b.Date = at.UTC()
	}
	return b
}
