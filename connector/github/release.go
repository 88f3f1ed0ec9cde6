package github

import (
	"context"
	"net/http"
	"slices"
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
	if failed := c.checkTag(ctx, call); failed != nil {
		return connector.Result{}, rest.NothingSent(failed)
	}
	body := releaseBody(call)
	res, doc, failed := c.send(
		ctx,
		http.MethodPost,
		path(call, "releases"),
		gatehouse.ObjectJSON(body...),
		http.StatusCreated,
	)
	if failed != nil {
		if failed.Code == "http_422" && strings.Contains(failed.Says, "already_exists") {
			earlier, there, unread := c.released(ctx, call)
			switch {
			case unread != nil: // it may be that of an earlier attempt
				unread.Kind = connector.Ambiguous
				return res, unread
			case there:
				return releaseResult(call, earlier)
			}
			failed.Code, failed.Detail = string(gatehouse.CodeTargetChanged), "the tag has a release already"
		}
		return res, failed
	}
	made, failed := madeResult(call, "release", opDeleteRelease, doc, body...)
	res.ExternalID, res.Reversal = made.ExternalID, made.Reversal
	return res, failed
}

func releaseBody(call connector.Call) []gatehouse.Member {
	_, tag := splitReference(call)
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
	return append(body, gatehouse.Member{Name: "body", Value: marked(call, text)})
}

// releaseResult is the result for an earlier attempt's release. GitHub does not use target_commitish if the tag exists,
// as it does now, so it proves nothing: [Connector.checkTag] compares the commit of the tag instead.
func releaseResult(call connector.Call, made gatehouse.JSON) (connector.Result, *connector.Error) {
	approved := slices.DeleteFunc(releaseBody(call), func(m gatehouse.Member) bool { return m.Name == "target_commitish" })
	return madeResult(call, "release", opDeleteRelease, made, approved...)
}

// checkTag checks that the tag, if it exists, points to the approved commit.
func (c *Connector) checkTag(ctx context.Context, call connector.Call) *connector.Error {
	_, tag := splitReference(call)
	commit, there, failed := c.tagged(ctx, call)
	if want, _ := rest.TextOf(call.ProposedChange, "target_commitish"); failed == nil && there && commit != want {
		return &connector.Error{
			Kind: connector.Terminal, Code: string(gatehouse.CodeTargetChanged),
			Detail: "the tag " + gatehouse.Quote(tag) + " points to another commit: " + commit,
		}
	}
	return failed
}

// tagged is the commit of the tag, if it exists. An annotated tag is an object that points to the
// commit, or to another such object.
func (c *Connector) tagged(
	ctx context.Context, call connector.Call,
) (commit string, there bool, failed *connector.Error) {
	_, tag := splitReference(call)
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
	_, tag := splitReference(call)
	doc, there, failed := c.get(ctx, path(call, "releases", "tags", tag), nil)
	if failed != nil || !there {
		return "", false, failed
	}
	text, _ := rest.TextOf(doc, "body")
	return doc, strings.Contains(text, mark(call)), nil
}
