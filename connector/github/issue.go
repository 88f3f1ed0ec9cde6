package github

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// comment writes a comment. A second attempt first checks whether the first one succeeded.
func (c *Connector) comment(ctx context.Context, call connector.Call) (connector.Result, *connector.Error) {
	if _, failed := c.readAndCompare(ctx, call); failed != nil {
		return connector.Result{}, failed
	}
	if call.Attempt > 1 {
		made, there, failed := c.commented(ctx, call)
		if failed != nil {
			return connector.Result{}, rest.NothingSent(failed)
		}
		if there {
			return commentResult(call, made)
		}
	}
	_, number := splitReference(call)
	res, doc, failed := c.send(ctx, http.MethodPost, path(call, "issues", number, "comments"),
		gatehouse.ObjectJSON(commentBody(call)), http.StatusCreated)
	if failed != nil {
		return res, failed
	}
	made, failed := commentResult(call, doc)
	res.ExternalID, res.Reversal = made.ExternalID, made.Reversal
	return res, failed
}

func commentBody(call connector.Call) gatehouse.Member {
	text, _ := rest.TextOf(call.ProposedChange, "body")
	return gatehouse.Member{Name: "body", Value: marked(call, text)}
}

// commentResult is the result for an existing comment, without a reversal if the comment is not as approved.
func commentResult(call connector.Call, made gatehouse.JSON) (connector.Result, *connector.Error) {
	return madeResult(call, "comment", opDeleteComment, made, commentBody(call))
}

// madeResult is the result for an existing comment or release. Only one that is as approved has a reversal, a weak one:
// GitHub has already sent notifications, and the tag of a release remains.
func madeResult(
	call connector.Call, entity, undo string, made gatehouse.JSON, approved ...gatehouse.Member,
) (connector.Result, *connector.Error) {
	id, _ := made.Get("id")
	text, _ := made.Get("body")
	ref := reference(call, id)
	res := connector.Result{
		ExternalID: ref, ResponseMetadata: gatehouse.ObjectJSON(gatehouse.Member{Name: entity, Value: id}),
	}
	if failed := notAsApproved(made, approved...); failed != nil {
		return res, failed
	}
	res.Reversal = &gatehouse.Reversal{
		Operation: undo, Target: gatehouse.Target{EntityType: entity, EntityRef: ref},
		CurrentState:   gatehouse.ObjectJSON(gatehouse.Member{Name: "body", Value: text}),
		ProposedChange: `{"deleted":true}`,
	}
	return res, nil
}

// maxPages limits the search for a mark, in pages of 100.
const maxPages = 10

// commented searches for the comment that an earlier attempt wrote. A person may have added something below the mark.
func (c *Connector) commented(
	ctx context.Context, call connector.Call,
) (made gatehouse.JSON, there bool, failed *connector.Error) {
	_, number := splitReference(call)
	query := url.Values{}
	if from := since(call); from != "" {
		query.Set("since", from)
	}
	at := path(call, "issues", number, "comments")
	return c.search(ctx, at, query, "", "comments", func(comment gatehouse.JSON) bool {
		text, _ := rest.TextOf(comment, "body")
		return strings.Contains(text, mark(call))
	})
}

// search searches the pages at a path for an element that an earlier attempt made. A page is a list, or has one in
// member; what names the elements. If maxPages pages are full, search fails: the element may be on a later page.
func (c *Connector) search(
	ctx context.Context, at string, query url.Values, member, what string, made func(element gatehouse.JSON) bool,
) (element gatehouse.JSON, there bool, failed *connector.Error) {
	query.Set("per_page", "100")
	for page := 1; page <= maxPages; page++ {
		query.Set("page", strconv.Itoa(page))
		doc, _, failed := c.get(ctx, at, query)
		if failed != nil {
			return "", false, failed
		}
		if member != "" {
			doc, _ = doc.Get(member)
		}
		elements, _ := doc.Elements()
		if i := slices.IndexFunc(elements, made); i >= 0 {
			return elements[i], true, nil
		}
		if len(elements) < 100 {
			return "", false, nil
		}
	}
	return "", false, &connector.Error{
		Kind: connector.Terminal, Code: "too_many_" + what,
		Detail: fmt.Sprintf("at most %d %s are searched for that of an earlier attempt", maxPages*100, what),
	}
}

// label adds or removes one label. If the issue is already as wanted, nothing changes and there is
// nothing to reverse.
func (c *Connector) label(ctx context.Context, call connector.Call) (connector.Result, *connector.Error) {
	state, there, failed := c.read(ctx, call)
	if failed != nil {
		return connector.Result{}, rest.NothingSent(failed)
	}
	adds := call.Operation == opAddLabel
	name, _ := rest.TextOf(call.ProposedChange, "label")
	if there && has(state, name) == adds {
		return connector.Result{ExternalID: call.Target.EntityRef, ResponseMetadata: foundLabels(state)}, nil
	}
	if s := compare(call, state, there); !s.Matches {
		return connector.Result{}, rest.Changed(s)
	}
	_, number := splitReference(call)
	method, address, body := http.MethodDelete, path(call, "issues", number, "labels", name), gatehouse.JSON("")
	back := opAddLabel
	if adds {
		method, address, back = http.MethodPost, path(call, "issues", number, "labels"), opRemoveLabel
		body = gatehouse.MustJSON(map[string][]string{"labels": {name}})
	}
	res, doc, failed := c.send(ctx, method, address, body, http.StatusOK)
	if failed != nil {
		return res, failed
	}
	res.ExternalID = call.Target.EntityRef
	after := gatehouse.ObjectJSON(gatehouse.Member{Name: "labels", Value: sortedTexts(doc, "name")})
	if has(after, name) != adds {
		return res, &connector.Error{
			Code: "not_as_approved", Detail: "GitHub answers that the labels are " + string(foundLabels(after)),
		}
	}
	res.Reversal = &gatehouse.Reversal{Operation: back, Target: call.Target, ProposedChange: call.ProposedChange}
	return res, nil
}

// has reports whether an issue has a label; GitHub ignores the case of labels.
func has(state gatehouse.JSON, name string) bool {
	labels, _ := state.Get("labels")
	elements, _ := labels.Elements()
	for _, e := range elements {
		if s, _ := e.Text(); strings.EqualFold(s, name) {
			return true
		}
	}
	return false
}

func foundLabels(state gatehouse.JSON) gatehouse.JSON {
	labels, _ := state.Get("labels")
	return gatehouse.ObjectJSON(gatehouse.Member{Name: "labels", Value: labels})
}

// remove deletes a comment or a release.
func (c *Connector) remove(ctx context.Context, call connector.Call) (connector.Result, *connector.Error) {
	if _, failed := c.readAndCompare(ctx, call); failed != nil {
		return connector.Result{}, failed
	}
	res, _, failed := c.send(ctx, http.MethodDelete, readPath(call), "", http.StatusNoContent)
	res.ExternalID = call.Target.EntityRef
	return res, failed
}
