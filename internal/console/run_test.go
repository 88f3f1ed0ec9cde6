package console_test

import (
	"archive/zip"
	"bytes"
	"context"
	"html"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
	"github.com/gatehouse-dev/gatehouse/internal/console"
	"github.com/gatehouse-dev/gatehouse/internal/runs"
	"github.com/gatehouse-dev/gatehouse/internal/usecase"
)

// asking is a workflow that asks people after a step, and ends with another.
const asking = `name: asking
description: Asks <b>people</b>
on:
  webhook: {kind: github, secret: hook}
  schedule: {cron: "0 6 * * *"}
limits: {deadline: 24h}
input: {type: object, required: [n], properties: {n: {type: number}}}
steps:
  - {id: sum, uses: transform, with: {n: "${{ input.n }}", text: "<img src=x onerror=alert(1)>"}}
  - {id: ask, uses: approval, with: {rationale: "shall we?"}}
  - {id: each, for_each: "input.list", max_items: 3, uses: transform, with: {item: "${{ item }}"}}
`

// runWorkflows runs the world's workflow engine until the test ends.
func (w *world) runWorkflows() {
	w.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var work sync.WaitGroup
	log := slog.New(slog.DiscardHandler)
	leaves, _ := w.hub.Subscribe(usecase.TopicAudit)
	work.Go(func() { (&audit.Sequencer{Store: w.store, Logger: log}).Run(ctx, leaves) })
	work.Go(func() {
		config := runs.RuntimeConfig{Owner: "test", Poll: 50 * time.Millisecond}
		runs.NewRuntime(w.store, w.runs, w.hub, config, log).Run(ctx)
	})
	w.t.Cleanup(func() { stop(); work.Wait() })
}

func (w *world) apply(name, source string) {
	w.t.Helper()
	if _, _, err := w.runs.ApplyWorkflow(w.admin, name, source); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) start(ctx context.Context, name string, input gatehouse.JSON) *gatehouse.Run {
	w.t.Helper()
	r, _, err := w.runs.StartRun(ctx, name, gatehouse.NewRun{Input: input})
	must(w.t, err)
	return r
}

// run waits until the run meets the condition.
func (w *world) run(id, what string, ok func(*gatehouse.Run) bool) *gatehouse.Run {
	w.t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		r, err := w.runs.WaitRun(w.admin, id, 50*time.Millisecond)
		must(w.t, err)
		if ok(r) {
			return r
		}
		if time.Now().After(end) {
			w.t.Fatalf("the run is %s, not %s: %+v", r.Status, what, r.Failure)
		}
	}
}

func (w *world) reached(id string, s gatehouse.RunStatus) *gatehouse.Run {
	w.t.Helper()
	return w.run(id, string(s), func(r *gatehouse.Run) bool { return r.Status == s })
}

// TestStarterSteersRun: a proposer cancels and retries the runs that the proposer started, and no others.
func TestStarterSteersRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runWorkflows()
	w.apply("asking", asking)
	w.principal("cleo", gatehouse.KindPerson, gatehouse.RoleApprover) // else nobody could answer
	pia, pat := w.signIn("pia", gatehouse.RoleProposer), w.signIn("pat", gatehouse.RoleProposer)
	run := w.reached(w.start(w.as(pia.creds), "asking", `{"list":[],"n":1}`).ID, gatehouse.RunWaitingApproval)
	path := "/runs/" + run.ID

	pat.get(path).want(http.StatusOK).lacks(testid("cancel"))
	pat.post(path+"/cancel", "reason", "x").want(http.StatusForbidden)
	pia.get(path).want(http.StatusOK).has(testid("cancel"))
	pia.post(path+"/cancel", "reason", "x").want(http.StatusOK)
	w.reached(run.ID, gatehouse.RunCanceled)

	pat.get(path).want(http.StatusOK).lacks(testid("retry"))
	pat.post(path + "/retry").want(http.StatusForbidden)
	pia.get(path).want(http.StatusOK).has(testid("retry"))
	if p := pia.post(path + "/retry").want(http.StatusOK); p.url.Path == path {
		t.Errorf("the retry stayed on the page of the run %s", run.ID)
	}
}

func TestRunPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runWorkflows()
	w.apply("asking", asking)
	w.principal("cleo", gatehouse.KindPerson, gatehouse.RoleApprover)
	run := w.reached(w.start(w.agent("bot"), "asking", `{"list":["a","b"],"n":1.50e0}`).ID, gatehouse.RunWaitingApproval)
	vic := w.signIn("vic", gatehouse.RoleViewer)
	path := "/runs/" + run.ID
	p := vic.get(path).want(http.StatusOK)
	p.headers()
	p.has(
		`data-status="waiting_approval"`, "waiting for people", "Run waiting for people; 1 of 3 steps ended.",
		"asking version 1", "by bot over the API",
		"ask : the role approver", testid("tl-row"), `class="tl-people"`, "Input and output of sum",
		"&lt;img src=x onerror=alert(1)&gt;", "1.50e0",
		`href="/actions/`+run.StepOf("ask").ActionID+`"`, testid("run-action"),
	)
	p.lacks("<img", testid("cancel"), testid("retry"), testid("evidence"))
	// Operators and the run's starter see the buttons; only their posts are accepted.
	vic.post(path+"/cancel", "reason", "x").want(http.StatusForbidden)
	op := w.signIn("op", gatehouse.RoleOperator)
	op.get(path).has(testid("cancel"), "Cancel the run of asking").lacks(testid("retry"))
	op.post(path + "/retry").want(http.StatusConflict).has("Only a failed or canceled run can be retried")

	// The open page gets no content while nothing has changed, and the new content afterwards.
	live := path + "/live?seen=" + between(p.body, "/live?seen=", `"`)
	if got := vic.get(live).want(http.StatusNoContent); got.body != "" {
		t.Errorf("an unchanged run answers %q", got.body)
	}
	op.post(path+"/cancel", "reason", "the <i>supplier</i> took it back").want(http.StatusOK)
	vic.get(live).want(http.StatusOK).has(`id="run"`, `data-status="canceled"`,
		"canceled by op: the &lt;i&gt;supplier&lt;/i&gt; took it back").
		lacks("<html", "<i>", "Canceled: ", "decided by")
	ended := w.reached(run.ID, gatehouse.RunCanceled)
	if ended.Failure == nil || ended.Failure.Code != "canceled" {
		t.Errorf("the run ended with %+v", ended.Failure)
	}
	op.post(path+"/cancel", "reason", "again").want(http.StatusOK) // changes nothing

	// The steps that did not succeed are retried, once.
	p = op.post(path+"/retry").want(http.StatusOK).has(testid("retry-of"), "succeeded in the run before")
	if again := op.post(path + "/retry"); again.url.Path != p.url.Path || p.url.Path == path {
		t.Errorf("retried as %s, then as %s", p.url, again.url)
	}
	w.run(run.ID, "bundled", func(r *gatehouse.Run) bool { return r.Evidence != "" })
	z := vic.get(path + "/evidence").want(http.StatusOK)
	if _, err := zip.NewReader(bytes.NewReader([]byte(z.body)), int64(len(z.body))); err != nil ||
		z.header.Get("Content-Type") != "application/zip" {
		t.Errorf("the evidence is %s: %v", z.header.Get("Content-Type"), err)
	}
	if d := z.header.Get("Content-Disposition"); d != `attachment; filename="evidence-`+run.ID+`.zip"` {
		t.Errorf("the evidence is sent as %q", d)
	}
	vic.get(path).has(testid("evidence"), z.header.Get("X-Evidence-SHA256"), "Lessons")
	vic.get(p.url.Path + "/evidence").want(http.StatusConflict) // the run has not ended
	vic.get("/search?q=" + run.ID).want(http.StatusOK).has(`data-id="` + run.ID + `"`)
}

func between(text, before, after string) string {
	_, rest, _ := strings.Cut(text, before)
	got, _, _ := strings.Cut(rest, after)
	return got
}

// TestActionLeadsToItsRun: the link comes from the store, which knows which run proposed an action.
// A run id in the action's context, written by an agent, makes no link.
func TestActionLeadsToItsRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runWorkflows()
	w.apply("asking", asking)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	bot := w.agent("bot")
	run := w.reached(w.start(bot, "asking", `{"list":[],"n":1}`).ID, gatehouse.RunWaitingApproval)
	ana.get("/actions/"+run.StepOf("ask").ActionID).want(http.StatusOK).has(testid("of-run"),
		"Proposed by step ask of a run of asking", `href="/runs/`+run.ID+`"`)
	forged := w.propose(bot, func(p *gatehouse.Proposal) {
		p.Context = gatehouse.MustJSON(map[string]any{"run": run.ID, "run_id": run.ID, "workflow": "asking", "step": "ask"})
	})
	ana.get("/actions/"+forged.ID).want(http.StatusOK).lacks(testid("of-run"), run.ID+`"`)
}

// TestAQuestionShowsEarlierOutputs: below its question, an approval step has the outputs of the
// steps that it needs, with hidden characters marked and long texts cut.
func TestAQuestionShowsEarlierOutputs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runWorkflows()
	w.apply("offer", `name: offer
steps:
  - {id: price, uses: transform, with: {net: "1180.00", to: "a${{ input.hidden }}b", long: "${{ input.long }}"}}
  - {id: other, needs: [], uses: transform, with: {margin: "12 %"}}
  - {id: ask, needs: [price], uses: approval, with: {title: "Send the offer?"}}
`)
	ana := w.signIn("ana", gatehouse.RoleApprover)
	input := gatehouse.MustJSON(map[string]any{"hidden": "\u202e", "long": strings.Repeat("x", 500)})
	run := w.reached(w.start(w.agent("bot"), "offer", input).ID, gatehouse.RunWaitingApproval)
	ana.get("/actions/"+run.StepOf("ask").ActionID).want(http.StatusOK).
		has(testid("produced"), "1180.00", "U+202E", "x…", "all of it").
		lacks("12 %", "No fields change", "Read them from", "\u202e")
}

func TestRunList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	vic := w.signIn("vic", gatehouse.RoleViewer)
	vic.get("/runs").want(http.StatusOK).has(testid("empty"), "gatehouse workflow apply hello.yaml")
	w.apply("asking", asking)
	w.apply("other", "name: other\nsteps:\n  - {id: nap, uses: wait, with: {event: go}}\n")
	vic.get("/runs").has("No runs yet", "gatehouse run start NAME")
	bot := w.agent("bot")
	var last *gatehouse.Run
	for range 31 {
		last = w.start(bot, "other", "")
	}
	first := vic.get("/runs").want(http.StatusOK).has("by bot", "over the API")
	if n := strings.Count(first.body, testid("run-row")); n != 30 || !strings.Contains(first.body, last.ID) {
		t.Errorf("%d runs on the first page", n)
	}
	next := vic.get(
		strings.ReplaceAll(between(between(first.body, `class="pager"`, testid("next-page")), `href="`, `"`), "&amp;",
			"&")).want(http.StatusOK)
	if n := strings.Count(next.body, testid("run-row")); n != 1 || strings.Contains(next.body, testid("fresh")) {
		t.Errorf("%d runs on the second page", n)
	}

	// The pill counts new and changed runs, and moves no row.
	pill := strings.ReplaceAll("/runs/new?"+between(first.body, `hx-get="/runs/new?`, `"`), "&amp;", "&")
	vic.get(pill).want(http.StatusOK).lacks(testid("fresh-pill"))
	fresh := w.start(bot, "asking", `{"n":1}`)
	if _, err := w.runs.CancelRun(w.admin, last.ID, ""); err != nil {
		t.Fatal(err)
	}
	vic.get(pill).want(http.StatusOK).has("1 new, 1 changed").lacks("<html")

	// Filters are in the URL and preselected in the form.
	p := vic.get("/runs?workflow=asking").want(http.StatusOK).has(fresh.ID, `value="asking"`).lacks(last.ID)
	vic.get("/runs?status=canceled").want(http.StatusOK).has(last.ID, `<option value="canceled" selected`).lacks(fresh.ID)
	vic.get("/runs?workflow=asking&status=canceled").has("No run matches the filter.")
	vic.get("/runs?workflow=" + url.QueryEscape(`"><script>`) + "&status=x").want(http.StatusOK).lacks("<script>")
	// A run that no longer matches the filter counts as changed.
	pill = strings.ReplaceAll("/runs/new?"+between(p.body, `hx-get="/runs/new?`, `"`), "&amp;", "&")
	pill = strings.Replace(pill, "workflow=asking", "workflow=asking&status=canceled", 1)
	vic.get(pill).has("1 changed")
}

func TestWorkflowPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	vic, pia := w.signIn("vic", gatehouse.RoleViewer), w.signIn("pia", gatehouse.RoleProposer)
	vic.get("/workflows").want(http.StatusOK).has(testid("empty"))
	w.apply("asking", strings.Replace(asking, "deadline: 24h", "deadline: 48h", 1))
	w.apply("asking", asking)
	vic.get("/workflows").want(http.StatusOK).has("asking", "version 2", "0 runs", "none has ended",
		"Asks &lt;b&gt;people&lt;/b&gt;")
	p := vic.get("/workflows/asking").want(http.StatusOK)
	p.headers()
	p.has("version 2", "POST /api/v1/hooks/asking", "signed as github with the secret hook", "0 6 * * *", "next at",
		"a run ends within 1 d",
		`class="wf-graph"`, testid("versions"), "Asks &lt;b&gt;people&lt;/b&gt;").lacks(testid("start"), "<b>people")
	vic.get("/workflows/asking?version=1").want(http.StatusOK).has("This is an earlier version", "deadline</span>: 48h")
	for _, bad := range []string{"/workflows/none", "/workflows/asking?version=3", "/workflows/asking?version=x",
		"/workflows/asking?version=0"} {
		vic.get(bad).want(http.StatusNotFound)
	}

	// A person who may propose may start a run. An error of the input is shown at its field, and
	// the typed text stays.
	vic.post("/workflows/asking/start", "input", `{"n":1}`).want(http.StatusForbidden)
	pia.get("/workflows/asking?version=1").want(http.StatusOK).lacks(testid("start"))
	page := pia.get("/workflows/asking").has(testid("start"), "Schema of the input")
	once := between(page.body, `name="once" value="`, `"`)
	for _, x := range [][2]string{
		{"{\"n\":\n1,}", "line 2 is not valid JSON"}, {`{"n":"</textarea><b>"}`, "/input/n"}, {`{}`, "/input"},
		{`{"n":1,"n":2}`, "/input"},
	} {
		p := pia.post("/workflows/asking/start", "once", "other", "input", x[0]).want(http.StatusUnprocessableEntity)
		p.has(testid("start-error"), x[1], `aria-invalid="true"`, `aria-describedby="start-error"`).lacks("</textarea><b>")
	}
	p = pia.post("/workflows/asking/start", "once", once, "input",
		`{"n":1.0}`).want(http.StatusOK).has("by pia over the API")
	if again := pia.post("/workflows/asking/start", "once", once, "input", `{"n":1.0}`); again.url.Path != p.url.Path {
		t.Errorf("sent twice, the form made %s and %s", p.url, again.url)
	}
	if _, err := w.runs.CancelRun(w.admin, strings.TrimPrefix(p.url.Path, "/runs/"), ""); err != nil {
		t.Fatal(err)
	}
	counts := vic.get("/workflows/asking").has("0.0 %")
	link := "/runs?since=" + between(counts.body, `href="/runs?since=`, `"`)
	since := w.now().AddDate(0, 0, -30).UTC().Format(time.DateOnly)
	if !strings.Contains(counts.body, `&amp;status=canceled&amp;workflow=asking"`) ||
		!strings.HasPrefix(link, "/runs?since="+since) {
		t.Errorf("the counts lead to %s", link)
	}
	vic.get(html.UnescapeString(link)).want(http.StatusOK).has(strings.TrimPrefix(p.url.Path, "/runs/"))
}

// TestRunsStayInTheirTenant requests another tenant's run and workflow by every route that names
// one, in every role.
func TestRunsStayInTheirTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.foreignAction()
	c, err := w.gate.CreatePrincipal(w.foreignAdmin(), gatehouse.NewPrincipal{
		Tenant: "other", Name: "owner", Kind: gatehouse.KindPerson,
		Roles: []gatehouse.Role{gatehouse.RoleOperator, gatehouse.RoleProposer},
	})
	must(t, err)
	owner := w.as(c)
	if _, _, err := w.runs.ApplyWorkflow(owner, "theirs",
		"name: theirs\nsteps:\n  - {id: nap, uses: wait, with: {event: OTHER-TENANT}}\n"); err != nil {
		t.Fatal(err)
	}
	run := w.start(owner, "theirs", `{"secret":"OTHER-TENANT"}`)
	w.apply("ours", "name: ours\nsteps:\n  - {id: nap, uses: wait, with: {event: go}}\n")
	own := w.start(w.agent("bot"), "ours", "")
	seen := 0
	for _, role := range gatehouse.Roles() {
		if role == gatehouse.RoleWorker || role == gatehouse.RoleEvaluator {
			continue // not for people
		}
		b := w.signIn("p-"+string(role), role)
		person := gatehouse.Principal{Roles: []gatehouse.Role{role}}
		for _, rt := range console.Routes(w.console) {
			method, path, _ := strings.Cut(rt.Pattern, " ")
			at := func(run, flow string) string {
				return strings.NewReplacer("{id}", run, "{name}", flow).Replace(path)
			}
			if !strings.HasPrefix(path, "/runs/{") && !strings.HasPrefix(path, "/workflows/{") {
				continue
			}
			seen++
			form := url.Values{"reason": {"x"}, "input": {"{}"}}
			p := b.do(b.request(method, at(run.ID, "theirs"), form))
			p.headers()
			entitled := len(rt.Roles) == 0
			for _, r := range rt.Roles {
				entitled = entitled || person.Has(r)
			}
			want := http.StatusNotFound
			if !entitled {
				want = http.StatusForbidden
			}
			if p.status != want {
				t.Errorf("%s to %s: another tenant's answers %d, want %d", rt.Pattern, role, p.status, want)
			}
			p.lacks("OTHER-TENANT")
			if method == http.MethodGet {
				if p := b.do(b.request(method, at(own.ID, "ours"), nil)); p.status >= 400 && !strings.HasSuffix(path, "/evidence") {
					t.Errorf("%s to %s: the own run answers %d", rt.Pattern, role, p.status)
				}
			}
		}
		for _, list := range []string{"/runs", "/runs?workflow=theirs", "/workflows", "/runs/new?workflow=theirs"} {
			b.get(list).want(http.StatusOK).lacks("OTHER-TENANT", run.ID, `data-name="theirs"`)
		}
	}
	if seen < 40 {
		t.Errorf("only %d routes were walked", seen)
	}
	after, err := w.runs.FindRun(owner, run.ID)
	if err != nil || after.Status != run.Status || after.Stop != "" {
		t.Errorf("the other tenant's run was changed: %+v, %v", after, err)
	}
}
