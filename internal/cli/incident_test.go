package cli

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
)

// incident is the example in its own folder, with its fakes and a gate as processes on free ports.
type incident struct {
	t      *testing.T
	dir    string
	fakes  string // the address of the fake ServiceNow
	server *devServer
	admin  *client.Client
}

// TestIncidentExample runs the blocks of the example's page in order against its fakes, and checks
// the result of each.
func TestIncidentExample(t *testing.T) {
	t.Parallel()
	e := startIncident(t)
	after := map[string]func(out string){
		"Apply the workflow":      e.applied,
		"An incident comes in":    e.parked,
		"Two people decide":       e.decided,
		"The evidence":            e.proven,
		"The webhook comes again": e.replayed,
		"Somebody rejects":        e.rejected,
	}
	outputs := map[string]string{}
	var order []string
	for _, b := range e.blocks() {
		if b.section == "Start" {
			continue // startIncident does this, on other ports
		}
		if len(order) == 0 || order[len(order)-1] != b.section {
			if n := len(order); n > 0 {
				after[order[n-1]](outputs[order[n-1]])
			}
			order = append(order, b.section)
		}
		outputs[b.section] += e.run(b)
		e.noted()
	}
	if len(order) != len(after) {
		t.Fatalf("the page has the sections %q", order)
	}
	last := order[len(order)-1]
	after[last](outputs[last])
	e.server.stop()
}

func startIncident(t *testing.T) *incident {
	t.Helper()
	root, err := filepath.Abs("../..")
	must(t, err)
	e := &incident{t: t, dir: t.TempDir()}
	// The fakes start before the gate has an address: they send to a proxy, which forwards to it.
	var hook atomic.Pointer[url.URL]
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(hook.Load()) }})
	t.Cleanup(proxy.Close)
	models := e.startFakes(root, proxy.URL+"/api/v1/hooks/incident-triage")

	if err := os.CopyFS(filepath.Join(e.dir, "examples", "incident"),
		os.DirFS(filepath.Join(root, "examples", "incident"))); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(e.dir, "examples", "incident", "gatehouse.yaml")
	src, err := os.ReadFile(config)
	must(t, err)
	changed := strings.NewReplacer("127.0.0.1:9101", e.fakes, "127.0.0.1:9102", models).Replace(string(src))
	if changed == string(src) {
		t.Fatal("the configuration names other addresses than the page")
	}
	must(t, os.WriteFile(config, []byte(changed), 0o600))
	e.server = startDev(t, e.dir, "--config", "examples/incident/gatehouse.yaml")
	base := strings.TrimSuffix(e.server.api, "/api/v1")
	at, err := url.Parse(base)
	must(t, err)
	hook.Store(at)
	e.admin = servetest.MustClient(t, base, devEnv(t, e.dir, "admin"))
	return e
}

// startFakes builds and starts the example's fakes, and returns the address of the models.
func (e *incident) startFakes(root, hook string) (models string) {
	t := e.t
	program := filepath.Join(t.TempDir(), "fakes")
	if out, err := buildProgram(program, "./examples/incident/fakes"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(program, "-snow", "127.0.0.1:0", "-models", "127.0.0.1:0", "-hook", hook)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	must(t, err)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	m := regexp.MustCompile(`^A fake ServiceNow at http://(\S+), fake models at http://(\S+)/v1\n$`).FindStringSubmatch(
		line)
	if m == nil {
		t.Fatalf("the fakes say %q, %v", line, err)
	}
	e.fakes = m[1]
	return m[2]
}

// block is a shell block and its heading.
type block struct {
	section string
	fence
}

func (e *incident) blocks() (all []block) {
	page := filepath.Join(e.dir, "examples", "incident", "README.md")
	src, err := os.ReadFile(page)
	must(e.t, err)
	lines := strings.Split(string(src), "\n")
	for _, f := range fences(e.t, page) {
		if f.language != "sh" {
			e.t.Errorf("line %d: nothing runs a block of %q", f.line, f.language)
		}
		section := ""
		for _, l := range lines[:f.line] {
			if title, ok := strings.CutPrefix(l, "## "); ok {
				section = title
			}
		}
		all = append(all, block{section, f})
	}
	checkCommands(e.t, testParser(e.t), page)
	return all
}

func (e *incident) run(b block) string {
	e.t.Helper()
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", strings.ReplaceAll(b.text, "127.0.0.1:9101", e.fakes))
	cmd.Dir, cmd.Env = e.dir, cleanEnv()
	out, err := cmd.CombinedOutput()
	if err != nil {
		e.t.Fatalf("line %d: %v\n%s", b.line, err, out)
	}
	return string(out)
}

func (e *incident) wants(out string, texts ...string) {
	e.t.Helper()
	for _, text := range texts {
		if !strings.Contains(out, text) {
			e.t.Fatalf("no %q in\n%s", text, out)
		}
	}
}

// noted waits until the notes of the page's runs, which need no approval, are written, because the
// next block would race with them.
func (e *incident) noted() {
	e.t.Helper()
	for _, name := range []string{"run.id", "second.id"} {
		if _, err := os.Stat(filepath.Join(e.dir, name)); err != nil {
			continue
		}
		for d := e.detail(name); d.StepOf("note").Status != gatehouse.StepSucceeded; d = e.detail(name) {
			if r, err := e.admin.WaitRun(e.t.Context(), d.ID, time.Minute); err != nil || r.Status.Final() {
				e.t.Fatalf("%+v, %v", r, err)
			}
		}
	}
}

// file reads a file that a block wrote.
func (e *incident) file(name string) string {
	e.t.Helper()
	b, err := os.ReadFile(filepath.Join(e.dir, name))
	must(e.t, err)
	return strings.TrimSpace(string(b))
}

// written lists the fields of each write to ServiceNow.
func (e *incident) written() (fields []string) {
	e.t.Helper()
	res, err := http.Get("http://" + e.fakes + "/fake/ledger")
	must(e.t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	var writes []struct{ Changed []string }
	if err != nil || json.Unmarshal(b, &writes) != nil {
		e.t.Fatalf("%v: %s", err, b)
	}
	for _, w := range writes {
		fields = append(fields, strings.Join(w.Changed, ","))
	}
	return fields
}

func (e *incident) detail(idFile string) *gatehouse.RunDetail {
	e.t.Helper()
	d, err := e.admin.RunDetail(e.t.Context(), e.file(idFile))
	must(e.t, err)
	return d
}

func (e *incident) applied(out string) {
	e.wants(out, "4 tests, 0 failed", "reassign  connector.snow.assign", "incident-triage\t1\tchanged\t")
}

// parked: the note is written, the reassignment waits, and the run costs no
// worker anything.
func (e *incident) parked(out string) {
	e.wants(out, `"hook_status":202`, "waiting_approval\tact_", "0 of 2 approvals")
	d := e.detail("run.id")
	if d.Status != gatehouse.RunWaitingApproval || d.Trigger != gatehouse.TriggerWebhook || len(d.Actions) != 2 {
		e.t.Fatalf("%s by %s with %d actions", d.Status, d.Trigger, len(d.Actions))
	}
	step := d.StepOf("reassign")
	if step.LeaseOwner != "" || step.Status != gatehouse.StepWaitingApproval {
		e.t.Errorf("the step is %s, held by %q", step.Status, step.LeaseOwner)
	}
	if diff := cmp.Diff([]string{"work_notes"}, e.written()); diff != "" {
		e.t.Error(diff)
	}
	// The person who applied the workflow sponsors its proposer.
	a := actionOf(d, step)
	olga, err := client.New(strings.TrimSuffix(e.server.api, "/api/v1"), e.file("olga.key"))
	must(e.t, err)
	me, err := olga.WhoAmI(e.t.Context())
	if err != nil || a.ProposedBy != "workflow:incident-triage" {
		e.t.Fatalf("%v, proposed by %s", err, a.ProposedBy)
	}
	proposer, err := e.admin.FindPrincipal(e.t.Context(), a.ProposerID)
	if err != nil || proposer.Sponsor != me.ID {
		e.t.Errorf("%v: %+v is not sponsored by %s", err, proposer, me.ID)
	}
}

// decided: two people, a double click, one change.
func (e *incident) decided(out string) {
	e.wants(out, "\tvote_recorded\t", "\tapproved\t", "\talready_approved\t", "\tsucceeded\t")
	d := e.detail("run.id")
	votes := d.Actions[1].Approval.Votes
	if d.Status != gatehouse.RunSucceeded || len(votes) != 2 || votes[0].Name == votes[1].Name {
		e.t.Fatalf("%s after %+v", d.Status, votes)
	}
	if diff := cmp.Diff([]string{"work_notes", "assignment_group"}, e.written()); diff != "" {
		e.t.Error(diff)
	}
	if d.Output != `{"category":"network"}` || d.Actions[1].Receipt.ExternalID != "INC0010001" {
		e.t.Errorf("output %s, external id %s", d.Output, d.Actions[1].Receipt.ExternalID)
	}
	if len(d.Usage) != 1 || d.Usage[0].Cost.Sign() <= 0 {
		e.t.Errorf("models cost %+v", d.Usage)
	}
}

// proven: the archive is valid, is the one that the run names, and holds no secret.
func (e *incident) proven(out string) {
	e.wants(out, "Verified: the archive's SHA-256, 7 files", "assignment L4 applied", "external id INC0010001",
		"triage triage-small: 1 call", " verified.")
	archive, err := os.ReadFile(filepath.Join(e.dir, "evidence.zip"))
	must(e.t, err)
	report := verifyBundle(archive)
	report.expect(e.detail("run.id").Evidence, e.file("run.id"))
	if !report.OK || report.Manifest.Status != gatehouse.RunSucceeded {
		e.t.Errorf("%+v", report)
	}
	for _, secret := range []string{"Nobody reaches the VPN", "an example, use a long random text"} {
		if strings.Contains(string(archive), secret) {
			e.t.Errorf("the archive says %q", secret)
		}
	}
}

// replayed: no second run, no third write.
func (e *incident) replayed(out string) {
	e.wants(out, `"hook_status":200`, e.file("run.id"))
	page, err := e.admin.ListRuns(e.t.Context(), gatehouse.RunFilter{})
	if err != nil || len(page.Items) != 1 {
		e.t.Errorf("%d runs, %v", len(page.Items), err)
	}
	e.wants(e.file("answer.json"), `"bad_signature"`)
	if diff := cmp.Diff([]string{"work_notes", "assignment_group"}, e.written()); diff != "" {
		e.t.Error(diff)
	}
}

// rejected: the run has failed after its note, and the incident is not reassigned.
func (e *incident) rejected(out string) {
	e.wants(out, "\trejected\t", "that is a report, not an incident")
	d := e.detail("second.id")
	if d.Status != gatehouse.RunFailed || d.Failure.Code != "rejected" ||
		d.StepOf("note").Status != gatehouse.StepSucceeded {
		e.t.Errorf("%s, %+v", d.Status, d.Failure)
	}
	if diff := cmp.Diff([]string{"work_notes", "assignment_group", "work_notes"}, e.written()); diff != "" {
		e.t.Error(diff)
	}
	// A failed run has its evidence, too.
	b, err := e.admin.RunBundle(e.t.Context(), d.ID)
	must(e.t, err)
	if r := verifyBundle(b.Archive); !r.OK || r.Manifest.Status != gatehouse.RunFailed {
		e.t.Errorf("%+v", r)
	}
	// A retry writes no second note, and asks people again.
	olga, err := client.New(strings.TrimSuffix(e.server.api, "/api/v1"), e.file("olga.key"))
	must(e.t, err)
	again, err := olga.RetryRun(e.t.Context(), d.ID)
	must(e.t, err)
	e.run(block{fence: fence{text: "eval \"$(gatehouse dev env)\"; gatehouse run watch " + again.ID +
		" --until waiting_approval --timeout 60s"}})
	full, err := e.admin.RunDetail(e.t.Context(), again.ID)
	if err != nil || full.Status != gatehouse.RunWaitingApproval ||
		full.Actions[len(full.Actions)-1].Status != gatehouse.StatusPending || len(e.written()) != 3 {
		e.t.Errorf("%v: %s, %v", err, full.Status, e.written())
	}
	// A note cannot be undone. An agent that did not start the run does not even see its action.
	base, note := strings.TrimSuffix(e.server.api, "/api/v1"), actionOf(d, d.StepOf("note")).ID
	agent := servetest.MustClient(e.t, base, devEnv(e.t, e.dir, "agent"))
	if _, err := agent.Reverse(e.t.Context(), note,
		gatehouse.ReverseRequest{Rationale: "not an incident"}); gatehouse.CodeOf(err) != gatehouse.CodeNotFound {
		e.t.Errorf("%v, want not_found", err)
	}
	made, err := e.admin.CreatePrincipal(e.t.Context(), gatehouse.NewPrincipal{
		Name: "desk", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleProposer, gatehouse.RoleOperator},
	})
	must(e.t, err)
	desk := servetest.MustClient(e.t, base, *made)
	_, err = desk.Reverse(e.t.Context(), note, gatehouse.ReverseRequest{Rationale: "not an incident"})
	if gatehouse.CodeOf(err) != gatehouse.CodeNotReversible || len(e.written()) != 3 {
		e.t.Errorf("%v, %v", err, e.written())
	}
	// An assignment can be undone while it is unchanged.
	undo, err := desk.Reverse(e.t.Context(), actionOf(e.detail("run.id"), e.detail("run.id").StepOf("reassign")).ID,
		gatehouse.ReverseRequest{Rationale: "it was the desk's after all"})
	if err != nil || undo.Operation != "assign" || undo.Status != gatehouse.StatusPending {
		e.t.Errorf("%v: %+v", err, undo)
	}
}
