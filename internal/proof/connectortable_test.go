package proof

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
)

// TestConnectorTable holds docs/proof/connectors.md to the code: it has a row for every connector, each
// except mcp runs the suite, each fault that a row leaves out is one of the suite's, and every test that
// the page names exists.
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
	var suite strings.Builder
	for _, fault := range connectortest.Faults {
		suite.WriteString(string(fault) + ", ")
	}
	for _, file := range append(packages, "../../connector/mcp/mcp.go") {
		name := filepath.Base(filepath.Dir(file))
		row := regexp.MustCompile(`(?m)^\| ` + name + `( ⁷)? \| [^|]+ \| ([^|]*)\|`).FindStringSubmatch(string(page))
		if row == nil {
			t.Errorf("there is no row of %s", name)
			continue
		}
		own, _ := filepath.Glob(filepath.Dir(file) + "/*_test.go")
		if runs := slices.ContainsFunc(own, runsSuite(t)); runs == (name == "mcp") {
			t.Errorf("%s is held to the suite: %v", name, runs)
		}
		for _, fault := range regexp.MustCompile(`an? [a-z ]+[a-z]`).FindAllString(row[2], -1) {
			if !strings.Contains(suite.String(), fault+", ") {
				t.Errorf("the row of %s leaves out %q, which is no fault", name, fault)
			}
		}
	}
}

func runsSuite(t *testing.T) func(file string) bool {
	return func(file string) bool {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), "connectortest.Run(")
	}
}
