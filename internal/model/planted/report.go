package main

import (
	"fmt"
	"strings"
	"time"
)

// reportText returns the content of docs/proof/planted-bugs.md: how many bugs were planted and caught, and every
// bug that was missed.
func reportText(results []result, at time.Time) string {
	var missed []result
	for _, r := range results {
		if !r.caught {
			missed = append(missed, r)
		}
	}

	var b strings.Builder
	b.WriteString(intro)
	fmt.Fprintf(&b, "\n%s: **%d planted, %d caught, %d missed.**\n",
		at.UTC().Format("2006-01-02"), len(results), len(results)-len(missed), len(missed))
	if len(missed) > 0 {
		b.WriteString("\n| missed | breaks | planted in | test |\n|---|---|---|---|\n")
	}
	for _, r := range missed {
		fmt.Fprintf(&b, "| %s | %s | %s | `%s` %s |\n", r.name, r.breaks, r.edits[0].file, r.pkg, r.run)
	}
	return b.String()
}

const intro = `# Planted bugs

` + "`scripts/planted`" +
	` plants one bug at a time in a copy of the tree and runs the test that must catch it. It fails when a
bug is missed, does not build, or no longer applies. ` + "`internal/model/planted`" + ` lists each bug with the
[invariant](README.md#invariants) or promise that it breaks, and its test. Every test run checks that each patch
applies.

` + "```sh" + `
scripts/planted                 # all of them; about an hour
scripts/planted -run ceiling    # those whose name, file or test matches
scripts/planted -report docs/proof/planted-bugs.md
` + "```" + `
`
