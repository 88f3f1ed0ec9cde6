package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

func (w *world) previews(p *gatehouse.Preview, mute bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.would, w.mute = p, mute
}

// TestPreview: the page shows what the target would do; without a preview the page is unchanged.
func TestPreview(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bot := w.agent("bot")
	ana, eve := w.signIn("ana", gatehouse.RoleApprover), w.signIn("eve", gatehouse.RoleViewer)
	part := func(a *gatehouse.Action) string { return "/actions/" + a.ID + "/preview" }
	fresh := func() *gatehouse.Action { return w.propose(bot, nil) } // an answer is reused for a while

	a := fresh()
	ana.get("/actions/"+a.ID).want(200).lacks("/preview?", testid("preview"))
	ana.get(part(a)).want(200).lacks(testid("preview"), testid("no-preview"))

	w.previews(&gatehouse.Preview{
		Rows: 1, Undo: &gatehouse.PreviewUndo{Possible: true},
		Changes: []gatehouse.PreviewChange{{Path: "/price", Before: `"10.00"`, After: `"12.50"`,
			How: gatehouse.PreviewAsProposed}},
	}, false)
	ana.get("/actions/" + a.ID).want(200).has(`hx-get="` + part(a)).lacks(testid("preview"))
	eve.get("/actions/" + a.ID).want(200).lacks("/preview?")
	eve.get(part(a)).want(200).lacks(testid("preview"), "12.50")
	for _, p := range []*page{ana.get(part(a)), ana.get("/actions/" + a.ID + "?read=1")} {
		p.want(200).has(testid("preview"), "What ", "1 record would change, as proposed.", "Can be undone.").
			lacks("data-bad", testid("no-preview"))
	}

	a = fresh()
	w.previews(&gatehouse.Preview{
		Rows: 1, Differs: true, More: 3, Undo: &gatehouse.PreviewUndo{Why: "a value cannot be restored"},
		Changes: []gatehouse.PreviewChange{
			{Path: "/price", Before: `"10.00"`, After: `"99.00"`, Proposed: `"12.50"`, How: gatehouse.PreviewDiffers},
			{Path: "/note", After: `"stamped"`, How: gatehouse.PreviewAlso},
		},
	}, false)
	ana.get(part(a)).want(200).has("data-bad", "but not as proposed", "99.00", "proposed", "not in the proposal",
		"And 3 more fields.", "Cannot be undone: a value cannot be restored.")

	a = fresh()
	w.previews(&gatehouse.Preview{
		Changes: []gatehouse.PreviewChange{{Path: "/" + hostileText, After: gatehouse.StringJSON(hostileText),
			How: gatehouse.PreviewAlso}},
		Failure: &gatehouse.PreviewFailure{Code: "refused", Detail: "the target refuses", TargetSays: hostileText},
	}, false)
	hostile := ana.get(part(a)).want(200).has("data-bad", "shop would refuse this", "The target refuses")
	if strings.Contains(hostile.body, "<script>alert") ||
		strings.ContainsAny(hostile.body, "\u202E\u200B\u2060\uFEFF\x1b") {
		t.Errorf("the target's text is shown as it is: %s", hostile.body)
	}

	a = fresh()
	w.previews(&gatehouse.Preview{}, true)
	ana.get(part(a)).want(200).has(testid("no-preview"), "did not answer the preview")
	ana.post("/actions/"+a.ID+"/decide", decision(a, gatehouse.Approve)...).want(200)
	ana.get(part(a)).want(200).lacks(testid("preview"), testid("no-preview"))
	ana.get("/actions/none/preview").want(http.StatusNotFound)
}
