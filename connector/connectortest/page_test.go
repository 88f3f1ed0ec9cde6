package connectortest_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
)

// TestPage: docs/connectortest.md names every fault, and its example is a part of a test.
func TestPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/connectortest.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range connectortest.Faults {
		if !strings.Contains(string(page), "\n| "+string(fault)+" |") {
			t.Errorf("the page lacks %s", fault)
		}
	}
	tests, err := os.ReadFile("../slack/slack_test.go")
	example := regexp.MustCompile("(?s)```go\n(.*?)```").FindStringSubmatch(string(page))
	if err != nil || example == nil || !strings.Contains(string(tests), example[1]) {
		t.Errorf("the example is not a part of TestConformance of Slack: %v", err)
	}
}
