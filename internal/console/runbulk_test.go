package console_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// TestBulkRuns: several runs are canceled, and then retried, at once; each has its own result.
func TestBulkRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runWorkflows()
	w.apply("asking", asking)
	bot := w.agent("bot")
	w.principal("cleo", gatehouse.KindPerson, gatehouse.RoleApprover)
	var ids []string
	for range 2 {
		ids = append(ids, w.reached(w.start(bot, "asking", `{"n":1,"list":[]}`).ID, gatehouse.RunWaitingApproval).ID)
	}
	vic, op := w.signIn("vic", gatehouse.RoleViewer), w.signIn("op", gatehouse.RoleOperator)
	picked := "/runs/bulk?return=%2Fruns%3Fworkflow%3Dasking&pick=" + ids[0] + "&pick=" + ids[1]

	// Only operators may select, cancel and retry runs.
	vic.get("/runs").want(http.StatusOK).lacks(`name="pick"`, testid("bulk-bar"))
	vic.get(picked).want(http.StatusForbidden)
	vic.post("/runs/bulk", "do", "cancel", "pick", ids[0]).want(http.StatusForbidden)
	op.get("/runs").want(http.StatusOK).has(`value="`+ids[0]+`"`, testid("bulk-bar"))
	op.get(picked).want(http.StatusOK).has("Cancel 2 runs", `href="/runs?workflow=asking"`).lacks("Retry 2 runs")
	op.get("/runs/bulk?return=//evil.example&pick=" + ids[0]).want(http.StatusOK).lacks(`href="//evil`)
	op.post("/runs/bulk", "do", "cancel").want(http.StatusUnprocessableEntity)
	op.post("/runs/bulk", "do", "delete", "pick", ids[0]).want(http.StatusUnprocessableEntity)

	post := func(do string, picks ...string) *page {
		t.Helper()
		return op.do(op.request(http.MethodPost, "/runs/bulk", url.Values{"do": {do}, "pick": picks,
			"reason": {"the <i>supplier</i> stopped"}}))
	}
	// A run that does not exist does not prevent the others.
	post("cancel", ids[0], "run_none", ids[1]).want(http.StatusOK).
		has("2 runs canceled, 1 run not", `data-id="run_none" data-code="not_found"`,
			`data-id="`+ids[1]+`" data-code="done"`)
	for _, id := range ids {
		if r := w.reached(id, gatehouse.RunCanceled); r.Failure.Detail != "canceled by op: the <i>supplier</i> stopped" {
			t.Errorf("the failure of %s is %q", id, r.Failure.Detail)
		}
	}
	op.get(picked).want(http.StatusOK).has("Retry 2 runs").lacks("Cancel 2 runs")
	going := w.start(bot, "asking", `{"n":1,"list":[]}`)
	post("retry", ids[0], going.ID).want(http.StatusOK).
		has("1 run retried, 1 run not", `data-id="`+ids[0]+`" data-code="done"`,
			"Only a failed or canceled run can be retried")
	post("cancel", "run_none").want(http.StatusOK).has("No run was canceled")
	page, err := w.runs.ListRuns(w.admin, gatehouse.RunFilter{})
	if err != nil || len(page.Items) != 4 {
		t.Errorf("%d runs, %v", len(page.Items), err)
	}
}

func TestRunsByTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply("asking", asking)
	bot := w.agent("bot")
	early := w.start(bot, "asking", `{"n":1,"list":[]}`)
	w.advance(48 * time.Hour)
	late := w.start(bot, "asking", `{"n":1,"list":[]}`)
	vic := w.signIn("vic", gatehouse.RoleViewer)
	between := w.now().Add(-24 * time.Hour).UTC().Format("2006-01-02T15:04")
	row := func(r *gatehouse.Run) string { return `id="row-` + r.ID + `"` }
	vic.get("/runs?since="+between).want(http.StatusOK).has(row(late), `value="`+between+`"`).lacks(row(early))
	vic.get("/runs?until=" + between).want(http.StatusOK).has(row(early)).lacks(row(late))
	vic.get("/runs?workflow=asking&since="+early.CreatedAt.UTC().Format(time.DateOnly)).want(http.StatusOK).has(row(early),
		row(late))
	vic.get("/runs?since=yesterday").want(http.StatusUnprocessableEntity)
	vic.get("/runs/new?since=yesterday").want(http.StatusUnprocessableEntity)
}
