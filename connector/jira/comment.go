package jira

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// property is the name of the property by which a comment is found again.
const property = "gatehouse"

// comment adds a comment. It cannot be reversed, because it was mailed to the issue's watchers.
func (c *Connector) comment(ctx context.Context, call connector.Call) (connector.Result, *connector.Error) {
	if _, failed := c.readAndCompare(ctx, call); failed != nil {
		return connector.Result{}, failed
	}
	made, there, failed := c.commented(ctx, call)
	if failed != nil {
		return connector.Result{}, rest.NothingSent(failed)
	}
	if there {
		return rest.MadeBefore(rest.Text(made, "id")), commentDiffers(call, made)
	}
	text := rest.Text(call.ProposedChange, "text")
	body := gatehouse.ObjectJSON(
		gatehouse.Member{Name: "body", Value: document(text)},
		gatehouse.Member{Name: "properties", Value: gatehouse.MustJSON([]map[string]any{
			{"key": property, "value": map[string]string{"key": call.TargetKey()}},
		})})
	res, doc, failed := c.send(ctx, http.MethodPost, issuePath(call.Target.EntityRef, "comment"), body,
		http.StatusCreated)
	if failed != nil {
		return res, failed
	}
	res.ExternalID = rest.Text(doc, "id")
	return res, commentDiffers(call, doc)
}

// maxPages limits the search through the comments, newest first, in pages of 100.
const maxPages = 5

// commented searches for a call's comment among the newest ones.
func (c *Connector) commented(
	ctx context.Context, call connector.Call,
) (made gatehouse.JSON, there bool, failed *connector.Error) {
	for page := range maxPages {
		query := url.Values{
			"orderBy": {"-created"}, "expand": {"properties"},
			"maxResults": {"100"}, "startAt": {strconv.Itoa(100 * page)},
		}
		a, failed := c.api.Ask(ctx, http.MethodGet, issuePath(call.Target.EntityRef, "comment"), query)
		if failed != nil {
			return "", false, failed
		}
		if a.Status != http.StatusOK {
			return "", false, rest.ReadFailure(a.Failure())
		}
		list, _ := a.JSON().Get("comments")
		elements, err := list.Elements()
		if err != nil {
			return "", false, &connector.Error{
				Kind: connector.Transient, Code: "check_failed", Detail: "the answer is not a list of comments",
			}
		}
		for _, e := range elements {
			properties, _ := e.Get("properties")
			all, _ := properties.Elements()
			for _, p := range all {
				value, _ := p.Get("value")
				if rest.Text(p, "key") == property && rest.Text(value, "key") == call.TargetKey() {
					return e, true, nil
				}
			}
		}
		if len(elements) < 100 {
			break
		}
	}
	return "", false, nil
}

// ReadBack implements [connector.ReadBacker]. It never returns Absent, because an earlier call may
// still arrive, and Jira's search index lags behind.
func (c *Connector) ReadBack(ctx context.Context, call connector.Call) (connector.Finding, connector.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	id, there, failed := call.Target.EntityRef, false, (*connector.Error)(nil)
	switch call.Operation {
	case opCreate:
		var made issue
		made, there, failed = c.created(ctx, call)
		id, there = made.key, there && createdDiffers(call, made) == nil
	case opComment:
		var made gatehouse.JSON
		made, there, failed = c.commented(ctx, call)
		id, there = rest.Text(made, "id"), there && commentDiffers(call, made) == nil
	case opUpdate, opTransition:
		var now issue
		var gone bool
		now, gone, failed = c.read(ctx, id, append(names(call), connector.Fields(call.ProposedChange)...))
		there = failed == nil && !gone && differs(call.ProposedChange, issue{}, now) == nil
	}
	switch {
	case failed != nil:
		return connector.Inconclusive, connector.Result{}, failed
	case !there:
		return connector.Inconclusive, connector.Result{}, nil
	}
	return connector.Present, rest.MadeBefore(id), nil
}
