package proof

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestConnectorTable holds docs/proof/connectors.md to the code: it has a row for every connector, and
// every test that it names exists.
func TestConnectorTable(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/proof/connectors.md")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, pattern := range []string{
		"../../connector/*/*_test.go", "*_test.go", "../dispatch/*_test.go", "../mcp/*_test.go", "../cli/*_test.go",
	} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tests.Write(text)
		}
	}
	for _, name := range regexp.MustCompile("`(Test[A-Za-z]+)`").FindAllStringSubmatch(string(page), -1) {
		if !strings.Contains(tests.String(), "func "+name[1]+"(") {
			t.Errorf("there is no test %s", name[1])
		}
	}
	packages, err := filepath.Glob("../../connector/*/connector.go")
	if err != nil || len(packages) < 12 {
		t.Fatal(packages, err)
	}
	for _, file := range append(packages, "../../connector/mcp/mcp.go") {
		name := filepath.Base(filepath.Dir(file))
		if !strings.Contains(string(page), "\n| "+name+" ") {
			t.Errorf("there is no row of %s", name)
		}
	}
}
