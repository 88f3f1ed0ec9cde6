package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is that of the next release, until the release.
const version = "0.1.0"

// versionCmd prints the version.
type versionCmd struct{}

func (*versionCmd) Help() string {
	return `
Piped, the columns are: version, revision, Go version, platform.

Examples:

    gatehouse version --json
`
}

// buildInfo tells what this binary was built from.
type buildInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func thisBuild() buildInfo {
	b := buildInfo{Version: version, Revision: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	modified := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			b.Revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "+modified"
		}
	}
	b.Revision += modified
	return b
}

// Run prints.
func (*versionCmd) Run(g *globals) error {
	b := thisBuild()
	if g.JSON {
		return g.printJSON(b)
	}
	if g.tty {
		_, err := fmt.Fprintf(g.stdout, "gatehouse %s (%s, %s, %s)\n", b.Version, b.Revision, b.Go, b.Platform)
		return err
	}
	t := &table{}
	t.add(b.Version, b.Revision, b.Go, b.Platform)
	return g.print(t, "")
}
