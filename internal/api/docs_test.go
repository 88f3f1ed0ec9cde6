package api

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// manual reads the pages on the API and its errors.
func manual(t *testing.T) string {
	t.Helper()
	var pages strings.Builder
	for _, name := range []string{"api.md", "errors.md"} {
		b, err := os.ReadFile("../../docs/" + name)
		must(t, err)
		pages.Write(b)
	}
	return pages.String()
}

// TestManualHasTheCodeTable compares the manual's table of codes with the code.
func TestManualHasTheCodeTable(t *testing.T) {
	t.Parallel()
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (\\d+) \\| (yes|no) \\| \\S")
	listed := make(map[gatehouse.Code]bool)
	for _, m := range row.FindAllStringSubmatch(manual(t), -1) {
		code := gatehouse.Code(m[1])
		if listed[code] {
			t.Errorf("%s is listed twice", code)
		}
		listed[code] = true
		if status, _ := strconv.Atoi(m[2]); status != gatehouse.StatusOf(code) {
			t.Errorf("%s: status %s, want %d", code, m[2], gatehouse.StatusOf(code))
		}
		if (m[3] == "yes") != code.Retryable() {
			t.Errorf("%s: retryable %s", code, m[3])
		}
	}
	for _, code := range gatehouse.Codes() {
		if !listed[code] {
			t.Errorf("the manual lacks %s", code)
		}
		if titles[code] == "" {
			t.Errorf("%s has no title", code)
		}
	}
	if len(listed) != len(gatehouse.Codes()) {
		t.Errorf("%d codes in the manual, %d in the table", len(listed), len(gatehouse.Codes()))
	}
}

// TestManualNamesRoutesThatExist looks up each path in the manual.
func TestManualNamesRoutesThatExist(t *testing.T) {
	t.Parallel()
	s := newServer(t, newFake(), func(c *Config) { c.Events = &eventLog{} })
	known := make(map[string]bool)
	for i := range s.routes {
		known[s.routes[i].method+" "+s.routes[i].path] = true
	}
	for _, rt := range []route{hookRoute, targetHookRoute, bounceRoute} {
		known[rt.method+" "+rt.path] = true
	}
	for i := range reviewRoutes {
		known[reviewRoutes[i].method+" "+reviewRoutes[i].path] = true
	}
	mention := regexp.MustCompile("`(GET|POST|PATCH|PUT|DELETE) (/[^`? ]+)")
	found := mention.FindAllStringSubmatch(manual(t), -1)
	for _, m := range found {
		if route := m[1] + " " + strings.TrimSpace(m[2]); !known[route] {
			t.Errorf("the manual names %s", route)
		}
	}
	if len(found) < 20 {
		t.Errorf("only %d routes are mentioned", len(found))
	}
}
