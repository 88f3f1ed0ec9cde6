package main

import (
	"fmt"
	"strings"
	"time"
)

// table is docs/planted-bugs.md.
func table(results []result, at time.Time) string {
	var b strings.Builder
	caught := 0
	for _, r := range results {
		if r.caught {
			caught++
		}
	}
	fmt.Fprintf(&b, `# Planted bugs

A test that cannot fail proves nothing. Each row below is a bug that was planted
in a copy of the tree, alone, and the one test that was run on it. The numbers
are those of the invariants in [reliability.md](reliability.md).

`+"```\nscripts/planted                 # plants all of them, some minutes\nscripts/planted -run ceiling    # those whose name, file or test matches\nscripts/planted -report docs/planted-bugs.md\n```"+`

The command first sees that the tests are green without a bug, and fails when a
bug is missed, does not build, or no longer applies. The list is
internal/model/planted; that every patch still applies is checked in every test
run.

%s: **%d planted, %d caught, %d missed.**

| # | bug | breaks | planted in | caught by | s |
|---|---|---|---|---|---|
`, at.UTC().Format("2006-01-02"), len(results), caught, len(results)-caught)
	for i, r := range results {
		by := "**missed** by "
		if r.caught {
			by = ""
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s | %s`%s` %s | %.1f |\n", i+1, r.name, r.breaks, r.edits[0].file, by, r.pkg, r.run, r.took.Seconds())
	}
	return b.String()
}
