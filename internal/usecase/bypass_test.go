package usecase_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// bypasses lists, by reason, the functions that open a transaction without Perform, Do,
// PerformAcross or PerformParts. A use case of a caller is never one of them.
var bypasses = map[string][]string{
	"a server works without a caller": {
		"gate.store", "gate.sweepTogether", "gate.IndexActions", "gate.EnsurePolicies", "gate.StoreDecisionCounts",
		"gate.purge", "gate.RotateOldLinkKeys", "gate.resealKey", "gate.UseSecrets",
		"gate.WebPushKey", "gate.ReviewLink", "gate.UnsubscribeToken", "gate.StoreSlackClick", "gate.WithdrawGone",
	},
	"a push carries out an approved action": {
		"gate.ApplyApprovedPolicy", "gate.StoreConnectors", "gate.StartMandate",
	},
	"the program has the store itself, and no caller": {"gate.Bootstrap", "gate.BreakGlass", "gate.ResetAdmin"},
	"nobody is signed in yet": {
		"gate.BeginCeremony", "gate.TakeCeremony", "gate.SignInExternal", "gate.SignInPasskey", "gate.RedeemSetupLink",
		"gate.LinkSlack", "gate.touch",
	},
	"a signed link stands in for the caller": {"gate.proof", "gate.ReviewOpened", "gate.Unsubscribe"},
	"one part of a request, whose answer covers all parts": {
		"gate.countBulk", "gate.oneDeadLetter", "gate.readBackPush", "gate.markRestored",
	},
	"the runtime moves runs": {
		"gate.CancelForRun", "runs.moveWith", "runs.admitOne", "runs.fire", "runs.bundle", "runs.claim",
		"runs.reserveBudget",
	},
	"the runtime acts without a caller": {"runs.propose", "runs.renewLease"},
}

func TestUseCasesRunInTheRunner(t *testing.T) {
	t.Parallel()
	known := make(map[string]bool)
	for _, names := range bypasses {
		for _, name := range names {
			known[name] = false
		}
	}
	for _, pkg := range []string{"gate", "runs"} {
		files, err := filepath.Glob("../" + pkg + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatal("no files in", pkg, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range parsed.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok || !opensTransaction(f) {
					continue
				}
				name := pkg + "." + f.Name.Name
				if _, ok := known[name]; !ok {
					t.Errorf("%s: %s opens a transaction by itself: use Perform or Do, or say here why not", file, name)
				}
				known[name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if !known[name] {
			t.Errorf("%s opens no transaction: remove it from the list", name)
		}
	}
}

// opensTransaction reports whether a function calls Update or UpdateQueues of the store
// or of the runner.
func opensTransaction(f *ast.FuncDecl) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			s, ok := call.Fun.(*ast.SelectorExpr)
			found = found || ok && (s.Sel.Name == "Update" || s.Sel.Name == "UpdateQueues")
		}
		return !found
	})
	return found
}
