package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/term"
	"github.com/gatehouse-dev/gatehouse/internal/version"
)

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

// buildInfo describes the binary: its source, its compiler and its platform.
type buildInfo struct {
	gatehouse.Build
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (*versionCmd) Run(g *globals) error {
	b := buildInfo{version.Build(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	if g.JSON {
		return g.PrintJSON(b)
	}
	from, at := cmp.Or(b.Commit, "unknown"), "unknown"
	if !b.Date.IsZero() {
		at = b.Date.Format(time.RFC3339)
	}
	if g.TTY {
		_, err := fmt.Fprintf(g.Stdout, "gatehouse %s (commit %s of %s, %s, %s)\n", b.Version, from, at, b.Go,
			b.Platform)
		return err
	}
	t := &term.Table{}
	t.Add(b.Version, from, at, b.Go, b.Platform)
	return g.Print(t, "")
}
