package github

import (
	"context"
	"net/http"
	"strings"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// maxTags limits the tag objects between a tag and its commit.
const maxTags = 10

// release publishes a release of a tag. A tag can have only one release. If the tag exists, it must
// point to the approved commit; if not, GitHub creates it.
func (c *Connector) release(ctx context.Context, call connector.Call) (connector.Result, *connector.Error) {
	_, tag := place(call)
	commit, there, failed := c.tagged(ctx, call)
	if failed != nil {
		return connector.Result{}, rest.NothingSent(failed)
	}
	if want, _ := rest.TextOf(call.ProposedChange, "target_commitish"); there && commit != want {
		return connector.Result{}, &connector.Error{
			Kind: connector.Terminal, Code: string(gatehouse.CodeTargetChanged),
			Detail: "the tag " + gatehouse.Quote(tag) + " points to another commit: " + commit,
		}
	}
	fields, _ := call.ProposedChange.Fields()
	body := []gatehouse.Member{{Name: "tag_name", Value: gatehouse.StringJSON(tag)}, {Name: "draft", Value: "false"}}
	text := ""
	for _, m := range fields {
		if m.Name == "body" {
			text, _ = m.Value.Text()
			continue
		}
		body = append(body, m)
	}
	body = append(body, gatehouse.Member{Name: "body", Value: marked(call, text)})
	res, doc, failed := c.send(
		ctx,
		http.MethodPost,
		path(call, "releases"),
		gatehouse.ObjectJSON(body...),
		http.StatusCreated,
	)
	if failed != nil {
		if failed.Code == "http_422" && strings.Contains(failed.Says, "already_exists") {
			failed.Code, failed.Detail = string(gatehouse.CodeTargetChanged), "the tag has a release already"
		}
		return res, failed
	}
	made := madeResult(call, "release", opDeleteRelease, doc)
	res.ExternalID = made.ExternalID
	if failed := notAsApproved(doc, body...); failed != nil {
		return res, failed
	}
	res.Reversal = made.Reversal
	return res, nil
}

// tagged is the commit of the tag, if it exists. An annotated tag is an object that points to the
// commit, or to another such object.
func (c *Connector) tagged(
	ctx context.Context, call connector.Call,
) (commit string, there bool, failed *connector.Error) {
	_, tag := place(call)
	doc, there, failed := c.get(ctx, path(call, "git", "ref", "tags", tag), nil)
	if failed != nil || !there {
		return "", false, failed
	}
	for range maxTags {
		object, _ := doc.Get("object")
		kind, _ := rest.TextOf(object, "type")
		sha, _ := rest.TextOf(object, "sha")
		if kind != "tag" {
			return sha, true, nil
		}
		doc, there, failed = c.get(ctx, path(call, "git", "tags", sha), nil)
		switch {
		case failed != nil:
			return "", false, failed
		case !there:
			return "", false, &connector.Error{
				Kind: connector.Transient, Code: "check_failed", Detail: "the tag's object " + sha + " cannot be found",
			}
		}
	}
	return "", false, &connector.Error{
		Kind: connector.Terminal, Code: "check_failed", Detail: "there are too many tags between the tag and its commit",
	}
}

// released searches for an action's release.
func (c *Connector) released(
	ctx context.Context, call connector.Call,
) (made gatehouse.JSON, there bool, failed *connector.Error) {
	_, tag := place(call)
	doc, there, failed := c.get(ctx, path(call, "releases", "tags", tag), nil)
	if failed != nil || !there {
		return "", false, failed
	}
	text, _ := rest.TextOf(doc, "body")
	return doc, strings.HasSuffix(text, mark(call)), nil
}
