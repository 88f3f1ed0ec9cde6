package main

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// table is docs/proof/planted-bugs.md: how many bugs were planted and caught in
// each folder, and every bug that was missed.
func table(results []result, at time.Time) string {
	type count struct{ planted, caught int }
	folders := map[string]count{}
	caught := 0
	var missed []result

	for _, r := range results {
		c := folders[path.Dir(r.edits[0].file)]
		c.planted++
		if r.caught {
			c.caught++
			caught++
		} else {
			missed = append(missed, r)
		}
		folders[path.Dir(r.edits[0].file)] = c
	}

	var b strings.Builder
	b.WriteString(intro)
	fmt.Fprintf(&b, "\n%s: **%d planted, %d caught, %d missed.**\n\n| planted in | bugs | caught |\n|---|---|---|\n",
		at.UTC().Format("2006-01-02"), len(results), caught, len(missed))
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		fmt.Fprintf(&b, "| %s | %d | %d |\n", folder, folders[folder].planted, folders[folder].caught)
	}

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
