package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/gatehouse-dev/gatehouse"
)

// answerTool is the definition of the tool with which a client answers a question about its
// call.
const answerTool = `{"name":"gatehouse_answer","title":"Answer a reviewer's question",` +
	`"description":"Answers a question that a reviewer asked about a call that waits for approval. The pending ` +
	`result has the action id and the question's number. Answering decides nothing; wait again afterwards.",` +
	`"inputSchema":{"type":"object","properties":{"action_id":{"type":"string"},"question":{"type":"integer"},` +
	`"text":{"type":"string"}},"required":["action_id","question","text"],"additionalProperties":false},` +
	`"annotations":{"readOnlyHint":false,"destructiveHint":false,"openWorldHint":false}}`

const answerName = "gatehouse_answer"

// ownTool reports whether a tool is the gate's own.
func ownTool(name string) bool { return name == waitName || name == answerName }

// readOwn decodes the arguments of the proxy's own tool with this definition.
func readOwn(definition string, arguments gatehouse.JSON, into any) error {
	schema := memberOf([]byte(definition), "inputSchema")
	t := &tool{
		properties: string(memberOf(schema, "properties")),
		required:   strings.Trim(string(memberOf(schema, "required")), "[]"),
	}
	if err := t.check([]byte(arguments)); err != nil {
		return err
	}
	err := read([]byte(arguments), into)
	if wrong, ok := errors.AsType[*jsonv2.SemanticError](err); ok {
		return t.wrongType(wrong)
	}
	return err
}

// answerCall handles the proxy's own tool gatehouse_answer.
func (p *Proxy) answerCall(ctx context.Context, f *frame, c *call) []byte {
	var in struct {
		ID       string `json:"action_id"`
		Question int    `json:"question"`
		Text     string `json:"text"`
	}
	if err := readOwn(answerTool, c.arguments, &in); err != nil {
		return p.failed(ctx, f, err)
	}
	a, err := p.ownAction(ctx, in.ID)
	if err == nil {
		a, err = p.Gate.Comment(ctx, a.ID, gatehouse.CommentRequest{
			Kind: gatehouse.CommentAnswer, Answers: in.Question, Text: in.Text,
		})
	}
	if err != nil {
		return p.failed(ctx, f, err)
	}
	// The tool has no outputSchema, so its result need not be marked as an error; see gateResult.
	result := memberOf(p.gateResult(f, a.ID, string(a.Status), "The answer is stored. "+describe(a)), "result")
	return resultFrame(f.id, setMember(result, "isError", nil))
}

// seen returns the number of the last question about an action that the client got.
func (p *Proxy) seen(action string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lastQuestions[action]
}

// noteQuestions records which questions the client gets now.
func (p *Proxy) noteQuestions(a *gatehouse.Action) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a.Status != gatehouse.StatusPending {
		delete(p.lastQuestions, a.ID)
		return
	}
	if last := a.LastQuestion(0); last > 0 {
		if p.lastQuestions == nil {
			p.lastQuestions = map[string]int{}
		}
		p.lastQuestions[a.ID] = last
	}
}

// questions tells a model the open questions of a pending action.
func questions(a *gatehouse.Action) (text string) {
	for _, q := range a.OpenQuestions() {
		text += fmt.Sprintf("\n%s asks (question %d): %s", q.Author, q.Number, q.Text)
	}
	if text != "" {
		text += "\nAnswer with gatehouse_answer: this action_id, the question's number, and your text."
	}
	return text
}
