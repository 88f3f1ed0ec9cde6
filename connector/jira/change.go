package jira

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// send makes the only writing call.
func (c *Connector) send(
	ctx context.Context, method, path string, body gatehouse.JSON, want int,
) (connector.Result, gatehouse.JSON, *connector.Error) {
	res, a, failed := c.api.Do(ctx, method, path, nil, nil, body)
	if failed != nil {
		return res, "", failed
	}
	doc := a.JSON()
	switch {
	case a.Status == http.StatusConflict:
		failed = a.Failure() // another transition of the same issue was in progress
		failed.Kind, failed.Code = connector.Terminal, string(gatehouse.CodeTargetChanged)
		return res, doc, failed
	case a.Status != want:
		return res, doc, a.Failure()
	case want != http.StatusNoContent && !doc.IsObject():
		return res, doc, &connector.Error{
			Code: "answer_unreadable", Detail: a.Describe() + ", but the body is not a JSON object", Says: a.Text(doc),
		}
	}
	return res, doc, nil
}

// update sets fields. The answer does not contain the new values, so they are read again.
func (c *Connector) update(ctx context.Context, call connector.Call) (connector.Result, *connector.Error) {
	was, failed := c.readAndCompare(ctx, call)
	if failed != nil {
		return connector.Result{}, failed
	}
	fields := fieldsOf(call.ProposedChange)
	for i, m := range fields {
		if m.Name == labelsField {
			labels, _ := m.Value.Elements()
			fields[i].Value = gatehouse.ArrayJSON(append(labels, was.marks...)...)
		}
	}
	body := gatehouse.ObjectJSON(gatehouse.Member{Name: "fields", Value: gatehouse.ObjectJSON(fields...)})
	res, _, failed := c.send(ctx, http.MethodPut, issuePath(call.Target.EntityRef), body, http.StatusNoContent)
	if failed != nil {
		return res, failed
	}
	res.ExternalID = call.Target.EntityRef
	now, failed := c.after(ctx, call)
	if failed != nil {
		return res, failed
	}
	if failed := differs(call.ProposedChange, was, now); failed != nil {
		return res, failed
	}
	of := connector.Fields(call.ProposedChange)
	if slices.ContainsFunc(of, func(name string) bool { return slices.Contains(was.formatted, name) }) {
		return res, nil
	}
	res.Reversal = &gatehouse.Reversal{
		Operation: opUpdate, Target: call.Target, CurrentState: now.only(of), ProposedChange: undo(was.only(of)),
	}
	res.Reversal.Target.Version = now.updated
	return res, nil
}

// undo is the change that restores fields; a missing description becomes an empty one.
func undo(was gatehouse.JSON) gatehouse.JSON {
	if d, ok := was.Get("description"); ok && d == "null" {
		return rest.With(was, "description", `""`)
	}
	return was
}

// after reads the result of a change.
func (c *Connector) after(ctx context.Context, call connector.Call) (issue, *connector.Error) {
	i, gone, failed := c.read(ctx, call.Target.EntityRef, names(call))
	if failed != nil || gone {
		return i, &connector.Error{
			Code: "not_confirmed", Detail: "Jira has accepted the change, but the issue could not be read afterwards",
		}
	}
	return i, nil
}

// transition moves an issue to a status by the only transition that leads there.
func (c *Connector) transition(ctx context.Context, call connector.Call) (connector.Result, *connector.Error) {
	was, failed := c.readAndCompare(ctx, call)
	if failed != nil {
		return connector.Result{}, failed
	}
	to := rest.Text(call.ProposedChange, "status")
	from := rest.Text(was.fields, "status")
	if from == to {
		return rest.MadeBefore(was.key), nil
	}
	id, failed := c.leading(ctx, was.key, to)
	if failed != nil {
		return connector.Result{}, failed
	}
	body := gatehouse.MustJSON(map[string]any{"transition": map[string]string{"id": id}})
	res, _, failed := c.send(ctx, http.MethodPost, issuePath(was.key, "transitions"), body, http.StatusNoContent)
	if failed != nil {
		return res, failed
	}
	res.ExternalID = was.key
	now, failed := c.after(ctx, call)
	if failed != nil {
		return res, failed
	}
	if failed := differs(call.ProposedChange, was, now); failed != nil {
		return res, failed
	}
	res.Reversal = &gatehouse.Reversal{
		Operation: opTransition, Target: call.Target, CurrentState: call.ProposedChange,
		ProposedChange: gatehouse.MustJSON(map[string]string{"status": from}),
	}
	res.Reversal.Target.Version = ""
	return res, nil
}

// leading finds the transition from the issue's present status to another one.
func (c *Connector) leading(ctx context.Context, key, status string) (string, *connector.Error) {
	a, failed := c.api.Ask(ctx, http.MethodGet, issuePath(key, "transitions"), nil)
	if failed != nil {
		return "", rest.NothingSent(failed)
	}
	if a.Status != http.StatusOK {
		return "", rest.NothingSent(rest.ReadFailure(a.Failure()))
	}
	list, _ := a.JSON().Get("transitions")
	elements, _ := list.Elements()
	var ids, others []string
	for _, t := range elements {
		to, _ := t.Get("to")
		if name := rest.Text(to, "name"); name == status {
			ids = append(ids, rest.Text(t, "id"))
		} else {
			others = append(others, gatehouse.Quote(name))
		}
	}
	if len(ids) == 1 {
		return ids[0], nil
	}
	detail := "there is no transition to the status " + gatehouse.Quote(status)
	if len(ids) > 1 {
		detail = "several transitions lead to the status " + gatehouse.Quote(status)
	}
	if len(others) > 0 {
		slices.Sort(others)
		detail += "; others lead to " + strings.Join(others, ", ")
	}
	return "", &connector.Error{Kind: connector.Terminal, Code: "no_such_transition", Detail: detail}
}

// markLabel is the label of the issue that a call creates.
func markLabel(call connector.Call) string { return markPrefix + call.TargetKey()[:32] }

// create creates an issue with a label made from the call's key. An issue that already has the
// label was created by an earlier call; it is left unchanged, and compared like a new one.
func (c *Connector) create(ctx context.Context, call connector.Call) (connector.Result, *connector.Error) {
	made, there, failed := c.created(ctx, call)
	if failed != nil {
		return connector.Result{}, rest.NothingSent(failed)
	}
	if there {
		return rest.MadeBefore(made.key), createdDiffers(call, made)
	}
	fields := fieldsOf(call.ProposedChange)
	labels, _ := call.ProposedChange.Get(labelsField)
	fields = slices.DeleteFunc(fields, func(m gatehouse.Member) bool { return m.Name == labelsField })
	fields = append(fields,
		gatehouse.Member{Name: "project", Value: gatehouse.MustJSON(map[string]string{"key": call.Target.EntityRef})},
		gatehouse.Member{Name: labelsField, Value: added(labels, markLabel(call))})
	body := gatehouse.ObjectJSON(gatehouse.Member{Name: "fields", Value: gatehouse.ObjectJSON(fields...)})
	res, doc, failed := c.send(ctx, http.MethodPost, "/rest/api/3/issue", body, http.StatusCreated)
	if failed != nil {
		return res, failed
	}
	if res.ExternalID = rest.Text(doc, "key"); res.ExternalID == "" {
		return res, &connector.Error{Code: "answer_unreadable", Detail: "Jira answers 201 without the issue's key"}
	}
	made, gone, failed := c.read(ctx, res.ExternalID, append(names(call), labelsField))
	if failed != nil || gone {
		return res, &connector.Error{
			Code: "not_confirmed", Detail: "the issue was made, but could not be read afterwards",
		}
	}
	return res, createdDiffers(call, made)
}

// added is a list of texts with one more.
func added(list gatehouse.JSON, more string) gatehouse.JSON {
	elements, _ := list.Elements()
	texts := []string{}
	for _, e := range elements {
		s, _ := e.Text()
		texts = append(texts, s)
	}
	return gatehouse.MustJSON(append(texts, more))
}

// created searches for a call's issue: the oldest one with its label, because a clone has the label, too. Not finding
// it proves nothing.
func (c *Connector) created(ctx context.Context, call connector.Call) (issue, bool, *connector.Error) {
	label := markLabel(call)
	query := url.Values{
		"jql":    {`project = "` + call.Target.EntityRef + `" AND labels = "` + label + `" ORDER BY created`},
		"fields": {strings.Join(append(names(call), labelsField), ",")}, "maxResults": {"5"},
	}
	a, failed := c.api.Ask(ctx, http.MethodGet, "/rest/api/3/search/jql", query)
	if failed != nil {
		return issue{}, false, failed
	}
	if a.Status != http.StatusOK {
		return issue{}, false, rest.ReadFailure(a.Failure())
	}
	list, ok := a.JSON().Get("issues")
	elements, err := list.Elements()
	if !ok || err != nil {
		return issue{}, false, &connector.Error{
			Kind: connector.Transient, Code: "check_failed", Detail: "the answer is not a list of issues",
			Says: a.Text(a.JSON()),
		}
	}
	for _, e := range elements {
		if i, ok := issueOf(e); ok && strings.HasPrefix(i.key, call.Target.EntityRef+"-") &&
			slices.Contains(i.marks, gatehouse.StringJSON(label)) {
			return i, true, nil
		}
	}
	return issue{}, false, nil
}
