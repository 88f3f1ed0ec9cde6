package cli

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
)

// TestMCPQuestion: a question ends a held call once, with its text and number; the model answers it
// and continues to wait for the outcome.
func TestMCPQuestion(t *testing.T) {
	t.Parallel()
	w := newMCPWorld(t)
	c := w.proxy("--hold", "40s")
	held := c.begin("tools/call", callOf("append", `{"text":"a"}`))
	a := w.pending("append")
	w.ask(a.ID, "which file is it?")
	got := c.await(held).Result
	if !got.IsError || got.Meta.Action.Status != "pending" || !strings.Contains(got.text(), "question 1") ||
		!strings.Contains(got.text(), "which file is it?") || !strings.Contains(got.text(), "gatehouse_answer") {
		t.Errorf("asked: %+v", got)
	}
	// A model that ignores the question waits as before.
	ignored := c.begin("tools/call", callOf("gatehouse_wait", `{"action_id":"`+a.ID+`"}`))
	answered := c.call("gatehouse_answer", `{"action_id":"`+a.ID+`","question":1,"text":"the log"}`)
	if answered.IsError || answered.Meta.Action.Status != "pending" || !strings.Contains(answered.text(), "stored") {
		t.Errorf("answered: %+v", answered)
	}
	if got := c.call("gatehouse_answer", `{"action_id":"`+a.ID+`","question":9,"text":"x"}`); !strings.Contains(
		got.text(), "not the number of a question") {
		t.Errorf("answered a question that nobody asked: %+v", got)
	}
	now, err := w.admin.FindAction(t.Context(), a.ID)
	if err != nil || len(now.OpenQuestions()) != 0 || len(now.Comments) != 2 || now.Comments[1].Text != "the log" {
		t.Errorf("the conversation: %+v, %v", now.Comments, err)
	}
	w.decide(a, gatehouse.Approve, "")
	if got := c.await(ignored).Result; got.text() != "wrote a" {
		t.Errorf("the outcome: %+v", got)
	}
	w.wrote("a")
}

// ask asks the proposer of an action, as the administrator.
func (w *mcpWorld) ask(id, text string) {
	w.Helper()
	r := gatehouse.CommentRequest{Kind: gatehouse.CommentQuestion, Text: text}
	if _, err := w.admin.Comment(w.Context(), id, r); err != nil {
		w.Fatal(err)
	}
}
