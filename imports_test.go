package gatehouse_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/gatehouse-dev/gatehouse"

// mayImport lists which of the project's packages a package may import; "" is the
// root. Each package is listed, except those of mayImportAllBut and connectors that
// need no more than anyConnector. Tests may import any.
var mayImport = map[string][]string{
	"":              {},
	"cmd/gatehouse": {"internal/cli"},
	"internal/cli": {
		"", "client", "connector", "connector/mcp", "internal/gate", "internal/audit", "internal/card",
		"internal/config", "internal/invariants", "internal/mcp", "internal/migratestore", "internal/notify/slack",
		"internal/openapi", "internal/form", "internal/policy", "internal/serve", "internal/sheet", "internal/spelling",
		"internal/store/sqlite", "internal/term", "internal/tui", "internal/version", "internal/workflow",
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
		"internal/link", "internal/ring", "internal/spelling", "internal/usecase", "internal/aside",
	},
	"internal/aside":    {},
	"internal/lease":    {},
	"internal/dispatch": {"", "internal/gate", "internal/aside", "internal/lease", "internal/usecase", "connector"},
	"internal/runs": {
		"", "internal/gate", "internal/aside", "internal/lease", "internal/usecase", "internal/workflow",
		"internal/audit", "internal/failpoint", "connector",
	},
	"internal/failpoint":      {},
	"internal/failpoint/trap": {"internal/failpoint"},
	"internal/api":            {"", "internal/gate", "internal/card", "internal/link"},
	"internal/card":           {""},
	"internal/runline":        {""},
	"internal/console": {
		"", "docs", "internal/gate", "internal/link", "internal/card", "internal/runline", "internal/usecase",
		"internal/workflow",
	},
	"docs":                    {},
	"internal/filelock":       {},
	"internal/mcp":            {"", "internal/filelock"},
	"internal/store/shared":   {""},
	"internal/store/sqlite":   {"", "internal/filelock", "internal/store/shared"},
	"internal/store/postgres": {"", "internal/pgurl", "internal/store/shared"},
	"internal/pgurl":          {},
	"internal/demo":           {"", "client"},
	"internal/wake":           {},
	"internal/wake/pgwake":    {"internal/pgurl", "internal/wake"},
	"internal/wake/natswake":  {"internal/wake"},
	"internal/feed":           {""},
	"internal/config":         {"", "internal/pgurl"},
	"internal/certs":          {},
	"internal/telemetry":      {""},
	"internal/llm":            {""},
	"internal/version":        {""},
	"internal/term":           {"", "internal/card"},
	"internal/sheet":          {"", "internal/card", "internal/runline", "internal/term", "internal/workflow"},
	"internal/tui":            {"", "internal/card", "internal/sheet", "internal/term"},
	"internal/hook":           {""},
	"internal/notify":         {"", "internal/card", "internal/failpoint"},
	"internal/notify/email":   {"", "internal/card", "internal/notify"},
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
	"internal/bench": {
		"", "connector", "connector/http", "internal/gate", "internal/audit", "internal/dispatch", "internal/policy",
		"internal/runs", "internal/store/sqlite", "internal/store/postgres", "internal/usecase",
	},
	"deploy/release": {},
	// A separate module.
	"bench/river": {
		"", "internal/gate", "internal/bench", "internal/dispatch", "internal/runs", "internal/store/postgres",
		"internal/usecase", "internal/wake",
	},
	"internal/migratestore": {"", "internal/audit", "internal/pgurl", "internal/store/postgres", "internal/store/sqlite"},
	"internal/invariants": {
		"", "internal/audit", "internal/pgurl", "internal/store/postgres", "internal/store/shared", "internal/store/sqlite",
	},
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
	"internal/llm/llmtest":    {},
	"internal/snowtest":       {},
	"internal/mssqltest":      {},
	"examples/incident/fakes": {"internal/llm/llmtest", "internal/snowtest"},
}

// anyConnector lists what a connector without an entry in mayImport may import.
var anyConnector = []string{
	"", "connector", "connector/internal/rest", "connector/internal/typed", "internal/jsonshape", "internal/spelling",
}

// mayImportAllBut lists the packages that may import everything except the given
// packages.
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
	pkg := path.Dir(file)
	if pkg == "." {
		pkg = ""
	}
	allowed, known := mayImport[pkg]
	if !known && path.Dir(pkg) == "connector" {
		allowed, known = anyConnector, true
	}
	never, allBut := mayImportAllBut[pkg]
	known = known || allBut
	if !known {
		t.Errorf("%s: the package %s has no import rule; add it", file, pkg)
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
		case isOwn && allBut && !slices.Contains(never, own):
		case isOwn && !slices.Contains(allowed, own):
			t.Errorf("%s imports %s, which %q may not", file, name, pkg)
		case !isOwn && standardOnly[pkg] && strings.Contains(strings.Split(name, "/")[0], "."):
			t.Errorf("%s imports %s; %q may import the standard library only", file, name, pkg)
		}
	}
}
