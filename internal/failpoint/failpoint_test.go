package failpoint_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
	"github.com/gatehouse-dev/gatehouse/internal/failpoint"
)

// TestNames finds the places in the source: each is listed, each that is
// listed is there, and no two have one name.
func TestNames(t *testing.T) {
	t.Parallel()
	here := regexp.MustCompile(`failpoint\.Here\(("?)([^)]*?)"?\)`)
	var found []string
	for _, p := range append(dispatch.Points(), dispatch.RescuePoints()...) {
		found = append(found, string(p))
	}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "../.." && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			filepath.Base(filepath.Dir(path)) == "failpoint" {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range here.FindAllStringSubmatch(string(source), -1) {
			switch {
			case m[1] == `"`:
				found = append(found, m[2])
			case !strings.HasSuffix(path, "internal/serve/server.go"): // there it passes the points of other packages on
				t.Errorf("%s: a place must have its name beside it, not %s", path, m[0])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	listed := failpoint.Names()
	slices.Sort(found)
	slices.Sort(listed)
	if d := cmp.Diff(listed, found); d != "" {
		t.Errorf("Names (-) differs from the source (+): %s", d)
	}
	if n := len(slices.Compact(listed)); n != len(found) {
		t.Error("two places have one name")
	}
}

// TestUnarmed passes every place: without the environment variable nothing happens, whatever the
// build.
func TestUnarmed(t *testing.T) {
	for _, name := range failpoint.Names() {
		failpoint.Here(name)
	}
	if n := testing.AllocsPerRun(100, func() { failpoint.Here("decide/voted") }); n != 0 {
		t.Errorf("a place costs %v allocations", n)
	}
}
