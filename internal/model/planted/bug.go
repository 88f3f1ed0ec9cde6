// Command planted plants bugs in a copy of the tree, one at a time, and checks that the test named
// beside each fails.
//
//	go run ./internal/model/planted [-run REGEXP] [-report FILE] [-resume FILE]
//
// It fails when a bug is missed, when a planted tree does not build, when a
// patch no longer applies, or when a test is red without any bug.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// bug is one mutation of the tree, and the test that must notice.
type bug struct {
	// name describes the bug.
	name string
	// breaks lists what the bug breaks: numbers of invariants in docs/proof/README.md,
	// promises with their numbers, settings such as limits.max_writes_per_run, or an
	// area such as contract, operations or security.
	breaks string
	edits  []edit
	// pkg and run name the test, as arguments of go test; run is matched as a
	// whole, level by level. In the package browser, run is FILE/NAME: the test NAME
	// in browser/test/FILE.test.mjs.
	pkg, run string
}

// edit replaces the one occurrence of old in a file.
type edit struct{ file, old, new string }

// plant is a bug of one edit.
func plant(name, breaks, file, old, instead, pkg, run string) bug {
	return bug{name, breaks, []edit{{file, old, instead}}, pkg, run}
}

// bugs returns all bugs.
func bugs() []bug {
	var all []bug
	all = append(all, decisionBugs()...)
	all = append(all, identityBugs()...)
	all = append(all, ceilingBugs()...)
	all = append(all, dispatchBugs()...)
	all = append(all, storeBugs()...)
	all = append(all, replicaBugs()...)
	all = append(all, waitBugs()...)
	all = append(all, wallBugs()...)
	all = append(all, runBugs()...)
	all = append(all, archiveBugs()...)
	all = append(all, restoredBugs()...)
	all = append(all, newsBugs()...)
	all = append(all, scriptBugs()...)
	all = append(all, holeBugs()...)
	all = append(all, notifyBugs()...)
	all = append(all, loggedBugs()...)
	return append(all, edgeBugs()...)
}

// apply returns the new content of each file that the bug changes, by name.
func (b bug) apply(root string) (map[string]string, error) {
	out := map[string]string{}
	for _, e := range b.edits {
		text, ok := out[e.file]
		if !ok {
			raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(e.file)))
			if err != nil {
				return nil, err
			}
			text = string(raw)
		}
		if n := strings.Count(text, e.old); n != 1 {
			return nil, fmt.Errorf("%s: %s has %q %d times, not once", b.name, e.file, e.old, n)
		}
		out[e.file] = strings.Replace(text, e.old, e.new, 1)
	}
	return out, nil
}
