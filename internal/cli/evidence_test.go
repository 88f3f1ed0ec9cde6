package cli

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
	"github.com/gatehouse-dev/gatehouse/internal/sheet"
	"github.com/gatehouse-dev/gatehouse/internal/term"
)

// testBundle is an archive as a server makes it. change modifies the files before the manifest is
// written, late after it.
func testBundle(t *testing.T, change, late func(files map[string][]byte)) []byte {
	t.Helper()
	digest := gatehouse.NewDigest(`{"group":"network"}`)
	entry := func(index int64, l gatehouse.Leaf) *gatehouse.Entry {
		l.Tenant = "default"
		body, err := json.Marshal(l)
		must(t, err)
		canonical, err := gatehouse.Canonicalize(body)
		must(t, err)
		return &gatehouse.Entry{Index: index, Body: canonical, LeafHash: audit.LeafHash(canonical)}
	}
	doc := func(v any) []byte {
		b, err := json.MarshalIndent(v, "", "  ")
		must(t, err)
		return b
	}
	files := map[string][]byte{
		"run.json": doc(
			map[string]any{"id": "run_1", "trigger": "webhook", "started_by": "webhook", "created_at": "2026-11-20T09:00:00Z"}),
		"steps.json": doc(
			[]map[string]any{
				{"key": "update", "uses": "connector.snow.update", "status": "succeeded", "attempts": 1, "action_id": "act_1"}}),
		"attempts.json": doc([]any{}),
		"decisions.json": doc([]bundleDecision{{
			ActionID: "act_1", ActionType: "assignment", Digest: digest, RiskLevel: gatehouse.L4,
			Status: gatehouse.StatusApplied,
			Policy: gatehouse.PolicyOutcome{Outcome: gatehouse.OutcomeNeedsApproval, Rules: []string{}},
			Approval: &gatehouse.Approval{Required: 1,
				Votes: []gatehouse.Vote{{Name: "ana\x1b[8m", Decision: gatehouse.Approve, Via: gatehouse.ViaConsole}}},
		}}),
		"receipts.json": doc(
			[]map[string]any{
				{"id": "rcp_1", "action_id": "act_1", "attempt": 1, "outcome": "applied", "external_id": "INC1",
					"reversible": true}}),
		"costs.json": doc([]sheet.ModelCost{{Provider: "local", Model: "m", Calls: 2, InputTokens: 250,
			OutputTokens: 30, Cost: "0.000042", Currency: "USD"}}),
		"audit.json": doc(map[string]any{
			"head": gatehouse.LogHead{Tenant: "default", Size: 9},
			"entries": []*gatehouse.Entry{
				entry(3, gatehouse.Leaf{Type: "hitl.proposed", Subject: "act_1", ActionID: "act_1", Digest: digest}),
				entry(8, gatehouse.Leaf{Type: "run.succeeded", Subject: "run_1", From: "running", To: "succeeded"}),
			},
		}),
	}
	if change != nil {
		change(files)
	}
	manifest := bundleManifest{Version: 1, Run: "run_1", Tenant: "default", Workflow: "triage", Revision: 3,
		Status: gatehouse.RunSucceeded}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		sum := sha256.Sum256(files[name])
		manifest.Files = append(manifest.Files, bundleFile{name, int64(len(files[name])), hex.EncodeToString(sum[:])})
	}
	files[manifestFile] = doc(manifest)
	if late != nil {
		late(files)
	}
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write(files[name])
		}
		must(t, err)
	}
	must(t, z.Close())
	return out.Bytes()
}

// replace changes a text in one file, and fails when it is not there.
func replace(t *testing.T, name, from, to string) func(map[string][]byte) {
	return func(files map[string][]byte) {
		if !bytes.Contains(files[name], []byte(from)) {
			t.Errorf("%s does not say %s", name, from)
		}
		files[name] = bytes.Replace(files[name], []byte(from), []byte(to), 1)
	}
}

// TestBundleIsVerified: each modified part is named.
func TestBundleIsVerified(t *testing.T) {
	t.Parallel()
	if r := verifyBundle(testBundle(t, nil, nil)); !r.OK || r.Entries != 2 || *r.First != 3 || *r.Last != 8 ||
		len(r.Decisions) != 1 {
		t.Fatalf("%+v", r)
	}
	for name, c := range map[string]struct {
		change, late func(map[string][]byte)
		want         string
	}{
		"a changed file": {late: replace(t, "receipts.json", `"rcp_1"`, `"rcp_2"`),
			want: "receipts.json has the SHA-256"},
		"a longer file": {late: replace(t, "receipts.json", `"rcp_1"`, `"rcp_11111"`),
			want: "receipts.json cannot be read: it has more than"},
		"a size that is too large": {late: replace(t, manifestFile, `"bytes": `, `"bytes": 1`),
			want: "bytes, and the manifest says 1"},
		"sizes that are too large": {late: func(f map[string][]byte) {
			f[manifestFile] = bytes.ReplaceAll(f[manifestFile], []byte(`"bytes": `), []byte(`"bytes": 999999999`))
		}, want: "its files have more than 1073741824 bytes together"},
		"a missing file":     {late: func(f map[string][]byte) { delete(f, "steps.json") }, want: "steps.json is missing"},
		"a file never named": {change: func(f map[string][]byte) { delete(f, "costs.json") }, want: "costs.json is missing"},
		"one more file": {late: func(f map[string][]byte) { f["notes.txt"] = []byte("x") },
			want: "notes.txt is not in the manifest"},
		"no manifest":     {late: func(f map[string][]byte) { delete(f, manifestFile) }, want: "it has no manifest.json"},
		"another version": {late: replace(t, manifestFile, `"v": 1`, `"v": 2`), want: "version 2"},
		"another run":     {change: replace(t, "run.json", `"run_1"`, `"run_2"`), want: "run.json is of the run run_2"},
		"another audit text": {change: replace(t, "audit.json", `hitl.proposed`, `hitl.approved`),
			want: "audit entry 3 has the leaf hash"},
		"a second audit text": {change: replace(t, "audit.json", `"leaf": `, `"Leaf": "", "leaf": `),
			want: `"Leaf" is an unknown member`},
		"two entries": {change: replace(t, "audit.json", `"head": `, `"Entries": [], "head": `),
			want: `"Entries" is an unknown member`},
		"an id twice": {change: replace(t, "run.json", `"id": `, `"id": "run_2", "id": `), want: "cannot read run.json"},
		"another audit hash": {change: replace(t, "audit.json", `"leaf_hash": "`, `"leaf_hash": "00`),
			want: "cannot read audit.json"},
		"another log": {change: func(f map[string][]byte) {
			f["audit.json"] = bytes.ReplaceAll(f["audit.json"], []byte(`"tenant": "default"`), []byte(`"tenant": "acme"`))
		}, want: "the head is of the tenant acme"},
		"a position beyond": {change: replace(t, "audit.json", `"size": 9`, `"size": 8`),
			want: "audit entry 8 lies beyond the head"},
		"another end": {late: replace(t, manifestFile, `"succeeded"`, `"canceled"`),
			want: "no audit entry says that the run is canceled"},
		"another digest": {change: replace(t, "decisions.json", `"sha256:`, `"sha256:f`),
			want: "the action act_1 has the digest sha256:f"},
		"a decision of naught": {change: replace(t, "decisions.json", `"act_1"`, `"act_2"`),
			want: "the action act_2 has the digest"},
		"no JSON": {change: func(f map[string][]byte) { f["run.json"] = []byte("{") }, want: "cannot read run.json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := verifyBundle(testBundle(t, c.change, c.late))
			err := r.err()
			if r.OK || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("ok %v, %v; want %q", r.OK, err, c.want)
			}
		})
	}
	for id, same := range map[string]bool{
		"run_0123456789abcdef0123456789abcdef": true, "run_0123456789abcdef0123456789abcde0": false,
		"run_01234567": true, "0123456789": true, "run_01234568": false, "run_0123": false, "act_01234567": false,
	} {
		r := &bundleReport{Manifest: bundleManifest{Run: "run_0123456789abcdef0123456789abcdef"}}
		if r.expect("", id); r.OK != same {
			t.Errorf("as the bundle of %s: %v", id, r.Problems)
		}
	}
	for _, junk := range [][]byte{nil, []byte("PK"), []byte(strings.Repeat("x", 1000))} {
		if r := verifyBundle(junk); r.OK || r.err() == nil {
			t.Errorf("%q is a bundle", junk)
		}
	}
}

// TestEvidenceShow: evidence show needs no server, and prints no control character of the file unchanged.
func TestEvidenceShow(t *testing.T) {
	t.Parallel()
	archive := testBundle(t, nil, nil)
	file := filepath.Join(t.TempDir(), "evidence.zip")
	must(t, os.WriteFile(file, archive, 0o600))
	sum := sha256.Sum256(archive)
	good := hex.EncodeToString(sum[:])
	for _, c := range []struct {
		args []string
		code int
		want []string
	}{
		{[]string{file}, term.ExitDone, []string{"run\trun_1\n", "workflow\ttriage version 3\n", "sha256\t" + good,
			"update: succeeded", "ana<U+001B>[8m: approved", "reversible, external id INC1", "0.000042 USD",
			"size 9"}},
		{[]string{file, "--sha256", strings.ToUpper(good)}, term.ExitDone, nil},
		{[]string{file, "--sha256", strings.Repeat("0", 64)}, term.ExitError,
			[]string{"Problems\n", "its SHA-256 is " + good}},
		{[]string{file, "--json"}, term.ExitDone, []string{`"ok": true`, `"problems": []`, `"run": "run_1"`,
			`"audit_entries": 2`}},
		{[]string{filepath.Join(filepath.Dir(file), "none.zip")}, term.ExitError, nil},
		{[]string{filepath.Dir(file)}, term.ExitError, nil},
	} {
		g, out, errOut := testGlobals(t)
		if code := run(*g, append([]string{"evidence", "show"}, c.args...)); code != c.code {
			t.Errorf("%v: exit code %d, want %d: %s", c.args, code, c.code, errOut)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%v: no %q in\n%s", c.args, want, out)
			}
		}
		for _, r := range out.String() + errOut.String() {
			if r != '\n' && r != '\t' && term.Hidden(r) {
				t.Errorf("%v: %U is printed", c.args, r)
			}
		}
	}
}

// TestEvidenceOfAnotherRun: a server that returns another run's archive, which is valid by itself,
// is detected.
func TestEvidenceOfAnotherRun(t *testing.T) {
	t.Parallel()
	archive := testBundle(t, nil, nil)
	sum := sha256.Sum256(archive)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("format") == "manifest" {
			_ = json.NewEncoder(w).Encode(gatehouse.Bundle{RunID: "run_2", SHA256: hex.EncodeToString(sum[:]), Manifest: "{}"})
			return
		}
		_, _ = w.Write(archive)
	}))
	defer s.Close()
	file := filepath.Join(t.TempDir(), "evidence.zip")
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"export", "run_2", "-o", file}, term.ExitError},
		{[]string{"show", "run_2"}, term.ExitError},
		{[]string{"export", "run_1", "-o", file}, term.ExitDone},
		{[]string{"show", "run_1"}, term.ExitDone},
	} {
		g, _, errOut := testGlobals(t)
		g.Key = "gth_x"
		if code := run(*g, append([]string{"evidence", "--url", s.URL}, c.args...)); code != c.code {
			t.Errorf("%v: exit code %d, want %d: %s", c.args, code, c.code, errOut)
		} else if code == term.ExitError && !strings.Contains(errOut.String(), "it is of the run run_1, not of run_2") {
			t.Errorf("%v says %s", c.args, errOut)
		}
		if _, err := os.Stat(file); (err == nil) != (c.code == term.ExitDone) {
			t.Errorf("%v: the file is there: %v", c.args, err == nil)
		}
	}
}

// TestNoPartOfAFileStays: a failed write leaves no file. A file that was there before is kept.
func TestNoPartOfAFileStays(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "evidence.json")
	full := errors.New("the disk is full")
	half := func(w io.Writer) error {
		_, err := w.Write([]byte("{"))
		return errors.Join(err, full)
	}
	if err := createFile(name, half); !errors.Is(err, full) {
		t.Errorf("the failure is %v", err)
	}
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after the failure: %v", err)
	}
	must(t, os.WriteFile(name, []byte("kept"), 0o600))
	if err := createFile(name, half); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over another file: %v", err)
	}
	if kept, err := os.ReadFile(name); err != nil || string(kept) != "kept" {
		t.Errorf("the other file: %q, %v", kept, err)
	}
}

// TestADanglingLinkStays: a symbolic link is not replaced by a file.
func TestADanglingLinkStays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link, target := filepath.Join(dir, "link"), filepath.Join(dir, "none")
	must(t, os.Symlink(target, link))
	if err := replaceFile(link, []byte("x")); err == nil {
		t.Error("the link was replaced")
	}
	if to, err := os.Readlink(link); err != nil || to != target {
		t.Errorf("the link leads to %q, %v", to, err)
	}
}

// TestEvidenceOfAChangedField: the error has the digest of the changed fields and that of the action.
func TestEvidenceOfAChangedField(t *testing.T) {
	t.Parallel()
	a := &gatehouse.Action{ID: "act_1", Proposal: gatehouse.Proposal{ActionType: "note", ProposedChange: `{"note":"x"}`}}
	e := gatehouse.Evidence{Action: a, Canonical: string(a.Canonical())}
	a.Digest = a.ComputeDigest()
	a.ProposedChange = `{"note":"y"}`
	s := answering(t, http.StatusOK, e)
	_, words := runCommand(t, term.ExitError, "evidence", "act_1", "--url", s, "--key", "gth_x")
	if !strings.Contains(words, string(a.ComputeDigest())) || !strings.Contains(words, string(a.Digest)) {
		t.Error(words)
	}
}

// answering is the address of a server that gives one answer to every request.
func answering(t *testing.T, status int, answer any) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(s.Close)
	return s.URL
}
