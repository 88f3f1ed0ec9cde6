package gatehouse_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/gatehouse-dev/gatehouse"

// mayImport lists, for each package, which of the project's packages its code may
// import. A package that is not listed may import none. Tests may import any.
var mayImport = map[string][]string{
	"":                         {},
	"client":                   {""},
	"connector":                {""},
	"connector/sql":            {"", "connector", "internal/pgurl", "internal/spelling"},
	"connector/http":           {"", "connector", "connector/internal/rest", "internal/jsonshape", "internal/spelling"},
	"connector/internal/rest":  {"", "connector"},
	"connector/internal/typed": {"", "connector", "internal/jsonshape"},
	"connector/servicenow": {
		"", "connector", "connector/internal/rest", "connector/internal/typed", "internal/spelling",
	},
	"connector/email":         {"", "connector", "connector/internal/rest", "connector/internal/typed"},
	"connector/github":        {"", "connector", "connector/internal/rest", "connector/internal/typed"},
	"connector/slack":         {"", "connector", "connector/internal/rest", "connector/internal/typed"},
	"connector/worker":        {"", "connector"},
	"connector/netsuite":      {"", "connector", "connector/internal/rest", "internal/jsonshape", "internal/spelling"},
	"connector/jira":          {"", "connector", "connector/internal/rest", "connector/internal/typed"},
	"connector/kubernetes":    {"", "connector", "connector/internal/rest", "connector/internal/typed"},
	"connector/salesforce":    {"", "connector", "connector/internal/rest", "connector/internal/typed", "internal/spelling"},
	"connector/stripe":        {"", "connector", "connector/internal/rest", "internal/jsonshape"},
	"connector/stepfunctions": {"", "connector", "connector/internal/rest", "internal/jsonshape"},
	"connector/mcp":           {"", "connector"},

	"connector/stepfunctions/stepfunctionstest": {},
	"internal/openapi":                          {"", "connector", "connector/http"},
	"internal/spelling":                         {""},
	"internal/expr":                             {""},
	"internal/form":                             {""},
	"internal/policy":                           {"", "internal/card", "internal/expr", "internal/form"},
	"internal/jsonshape":                        {""},
	"internal/workflow":                         {"", "internal/expr", "internal/form", "internal/jsonshape"},
	"internal/audit":                            {"", "internal/failpoint"},
	"internal/link":                             {""},
	"internal/ring":                             {},
	"internal/signin":                           {""},
	"internal/app":                              {"", "internal/card", "internal/policy", "internal/workflow", "internal/audit", "internal/failpoint", "internal/link", "internal/ring", "internal/spelling"},
	"internal/engine":                           {"", "internal/app", "connector"},
	"internal/runtime":                          {"", "internal/app", "internal/workflow", "connector"},
	"internal/failpoint":                        {},
	"internal/api":                              {"", "internal/app", "internal/card", "internal/link"},
	"internal/card":                             {""},
	"internal/runline":                          {""},
	"internal/console":                          {"", "internal/app", "internal/link", "internal/card", "internal/runline", "internal/workflow"},
	"internal/mcp":                              {""},
	"internal/store/shared":                     {""},
	"internal/store/sqlite":                     {"", "internal/store/shared"},
	"internal/store/postgres":                   {"", "internal/pgurl", "internal/store/shared"},
	"internal/pgurl":                            {},
	"internal/demo":                             {"", "client"},
	"internal/wake":                             {},
	// The carriers of hints, each with its driver.
	"internal/wake/pgwake":   {"internal/pgurl", "internal/wake"},
	"internal/wake/natswake": {"internal/wake"},
	"internal/feed":          {""},
	"internal/config":        {""},
	"internal/certs":         {},
	"internal/telemetry":     {""},
	"internal/llm":           {""},
	"internal/hook":          {""},
	"internal/notify":        {"", "internal/card"},
	"internal/notify/email":  {"", "internal/notify"},
	"internal/notify/stepfunctions": {
		"", "connector", "connector/stepfunctions", "internal/notify", "internal/notify/webhook",
	},
	"internal/notify/natscall":  {"", "internal/notify", "internal/notify/webhook"},
	"internal/notify/webhook":   {"", "internal/card", "internal/notify"},
	"internal/notify/slack":     {"", "internal/notify"},
	"internal/notify/slackdev":  {"", "internal/notify/slack"},
	"internal/notify/teams":     {"", "internal/notify"},
	"internal/notify/pagerduty": {"", "internal/notify"},
	"internal/notify/sns":       {"", "internal/notify", "internal/notify/webhook"},
	// It builds its own gate, and compares packages with bare baselines.
	"internal/bench": {
		"", "connector", "connector/http", "internal/app", "internal/audit", "internal/engine", "internal/policy",
		"internal/runtime", "internal/store/sqlite", "internal/store/postgres",
	},
	// A separate module: benchmarks of the outbox and of runs against River.
	"deploy/release":        {},
	"bench/river":           {"", "internal/app", "internal/bench", "internal/engine", "internal/policy", "internal/runtime", "internal/store/postgres", "internal/wake"},
	"internal/migratestore": {"", "internal/audit", "internal/pgurl", "internal/store/postgres", "internal/store/sqlite"},
	"internal/invariants":   {"", "internal/audit", "internal/store/postgres", "internal/store/shared", "internal/store/sqlite"},
	// Imported by tests only.
	"internal/notify/slacktest": {},
	"internal/notify/mailtest":  {},
	"internal/gatetest":         {"", "connector", "internal/app", "internal/audit", "internal/engine", "internal/wake"},
	"internal/store/storetest":  {""},
	"internal/testserver":       {},
	"internal/pgtest":           {"internal/testserver"},
	"internal/mariatest":        {"internal/testserver"},
	"internal/natstest":         {},
	"internal/proof":            {},
	"internal/proof/legs":       {},
	"internal/proof/report":     {"internal/failpoint", "internal/proof/legs"},
	"internal/model":            {},
	"internal/model/planted":    {},
	"connector/connectortest":   {"", "connector", "internal/jsonshape"},
	"internal/signin/idptest":   {},
	"browser/idp":               {"internal/signin/idptest"},
	// Fakes of other systems, for tests and examples.
	"internal/llm/llmtest": {},
	"internal/snowtest":    {},
	// Runnable examples, which use fakes.
	"examples/incident/fakes": {"internal/llm/llmtest", "internal/snowtest"},
}

// standardOnly lists the packages that import nothing but the standard library and
// the packages in mayImport.
var standardOnly = map[string]bool{"": true, "connector": true, "internal/wake": true}

func TestImportRules(t *testing.T) {
	t.Parallel()
	seen := 0
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && file != "." || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		seen++
		checkImports(t, filepath.ToSlash(file))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 20 {
		t.Fatalf("only %d files were checked", seen)
	}
}

func checkImports(t *testing.T, file string) {
	room := path.Dir(file)
	if room == "." {
		room = ""
	}
	if strings.HasPrefix(room, "cmd/") {
		return // the only package that wires all others
	}
	allowed, known := mayImport[room]
	if !known {
		t.Errorf("%s: the room %s has no import rule; add it", file, room)
		return
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Error(err)
		return
	}
	for _, spec := range parsed.Imports {
		name, _ := strconv.Unquote(spec.Path.Value)
		own, isOwn := strings.CutPrefix(name, module)
		own = strings.TrimPrefix(own, "/")
		switch {
		case isOwn && !contains(allowed, own):
			t.Errorf("%s imports %s, which %q may not", file, name, room)
		case !isOwn && standardOnly[room] && strings.Contains(strings.Split(name, "/")[0], "."):
			t.Errorf("%s imports %s; %q has the standard library only", file, name, room)
		}
	}
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}
