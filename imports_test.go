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
	"":              {},
	"cmd/gatehouse": {"internal/cli"},
	"internal/cli": {
		"", "client", "connector", "connector/mcp", "internal/gate", "internal/audit", "internal/card",
		"internal/config",
		"internal/invariants", "internal/mcp", "internal/migratestore", "internal/notify/slack", "internal/openapi",
		"internal/form", "internal/policy", "internal/serve", "internal/sheet", "internal/spelling", "internal/store/sqlite",
		"internal/term", "internal/tui", "internal/version", "internal/workflow",
	},
	"client":                   {""},
	"connector":                {""},
	"connector/sql":            {"", "connector", "internal/pgurl", "internal/spelling"},
	"connector/internal/rest":  {"", "connector"},
	"connector/internal/typed": {"", "connector", "internal/jsonshape"},

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
	"internal/usecase":                          {""},
	"internal/gate": {
		"", "internal/card", "internal/policy", "internal/workflow", "internal/audit", "internal/failpoint",
		"internal/link", "internal/ring", "internal/spelling", "internal/usecase",
	},
	"internal/lease":    {},
	"internal/dispatch": {"", "internal/gate", "internal/lease", "connector"},
	"internal/runs": {
		"", "internal/gate", "internal/lease", "internal/usecase", "internal/workflow", "internal/audit",
		"internal/failpoint",
		"connector",
	},
	"internal/failpoint": {},
	"internal/api":       {"", "internal/gate", "internal/card", "internal/link"},
	"internal/card":      {""},
	"internal/runline":   {""},
	"internal/console": {
		"", "docs", "internal/gate", "internal/link", "internal/card", "internal/runline", "internal/usecase",
		"internal/workflow",
	},
	"docs":                    {},
	"internal/mcp":            {""},
	"internal/store/shared":   {""},
	"internal/store/sqlite":   {"", "internal/store/shared"},
	"internal/store/postgres": {"", "internal/pgurl", "internal/store/shared"},
	"internal/pgurl":          {},
	"internal/demo":           {"", "client"},
	"internal/wake":           {},
	// The carriers of hints, each with its driver.
	"internal/wake/pgwake":   {"internal/pgurl", "internal/wake"},
	"internal/wake/natswake": {"internal/wake"},
	"internal/feed":          {""},
	"internal/config":        {""},
	"internal/certs":         {},
	"internal/telemetry":     {""},
	"internal/llm":           {""},
	"internal/version":       {""},
	"internal/term":          {"", "internal/card"},
	"internal/sheet":         {"", "internal/card", "internal/runline", "internal/term", "internal/workflow"},
	"internal/tui":           {"", "internal/card", "internal/sheet", "internal/term"},
	"internal/hook":          {""},
	"internal/notify":        {"", "internal/card", "internal/failpoint"},
	"internal/notify/email":  {"", "internal/card", "internal/notify"},
	"internal/notify/stepfunctions": {
		"", "connector", "connector/stepfunctions", "internal/notify", "internal/notify/webhook",
	},
	"internal/notify/natscall":  {"", "internal/notify", "internal/notify/webhook"},
	"internal/notify/webhook":   {"", "internal/card", "internal/notify"},
	"internal/notify/slack":     {"", "internal/notify"},
	"internal/notify/slackdev":  {"", "internal/notify/slack"},
	"internal/notify/teams":     {"", "internal/notify"},
	"internal/notify/pagerduty": {"", "internal/notify"},
	"internal/notify/webpush":   {"", "internal/card", "internal/notify"},
	"internal/notify/sns":       {"", "internal/notify", "internal/notify/webhook"},
	// It builds its own gate, and compares packages with bare baselines.
	"internal/bench": {
		"", "connector", "connector/http", "internal/gate", "internal/audit", "internal/dispatch", "internal/policy",
		"internal/runs", "internal/store/sqlite", "internal/store/postgres", "internal/usecase",
	},
	// A separate module: benchmarks of the outbox and of runs against River.
	"deploy/release": {},
	"bench/river": {
		"", "internal/gate", "internal/bench", "internal/dispatch", "internal/runs", "internal/store/postgres",
		"internal/usecase", "internal/wake",
	},
	"internal/migratestore": {"", "internal/audit", "internal/pgurl", "internal/store/postgres", "internal/store/sqlite"},
	"internal/invariants":   {"", "internal/audit", "internal/store/postgres", "internal/store/shared", "internal/store/sqlite"},
	// Imported by tests only.
	"internal/notify/slacktest":   {},
	"internal/notify/webpushtest": {},
	"internal/notify/mailtest":    {},
	"internal/termtest":           {"internal/term"},
	"internal/servetest":          {"", "client", "internal/config", "internal/gate"},
	"internal/gatetest": {"", "connector", "internal/gate", "internal/audit", "internal/dispatch",
		"internal/wake"},
	"internal/store/storetest":                      {""},
	"internal/testserver":                           {},
	"internal/pgtest":                               {"internal/testserver"},
	"internal/store/sqlite/sqlitetest":              {},
	"internal/store/sqlite/sqlitetest/migratedfile": {"internal/store/sqlite", "internal/store/sqlite/sqlitetest"},
	"internal/pgtest/migrated":                      {"internal/pgtest", "internal/store/postgres"},
	"internal/mariatest":                            {"internal/testserver"},
	"internal/natstest":                             {},
	"internal/proof":                                {},
	"internal/proof/legs":                           {},
	"internal/proof/report":                         {"internal/failpoint", "internal/proof/legs"},
	"internal/model":                                {},
	"internal/model/planted":                        {},
	"connector/connectortest":                       {"", "connector", "internal/jsonshape"},
	"internal/signin/idptest":                       {},
	"browser/idp":                                   {"internal/signin/idptest"},
	// Fakes of other systems, for tests and examples.
	"internal/llm/llmtest": {},
	"internal/snowtest":    {},
	"internal/mssqltest":   {},
	// Runnable examples, which use fakes.
	"examples/incident/fakes": {"internal/llm/llmtest", "internal/snowtest"},
}

// anyConnector may be imported by a connector that mayImport does not list.
var anyConnector = []string{
	"", "connector", "connector/internal/rest", "connector/internal/typed", "internal/jsonshape", "internal/spelling",
}

// mayImportAllBut lists the packages that wire others, and what they may not import.
var mayImportAllBut = map[string][]string{
	"internal/serve": {"internal/cli", "internal/tui"},
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
	allowed, known := mayImport[room]
	if !known && path.Dir(room) == "connector" {
		allowed, known = anyConnector, true
	}
	never, wires := mayImportAllBut[room]
	known = known || wires
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
		case isOwn && wires && !contains(never, own):
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
