package github

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/internal/rest"
)

// states lists the members that a pre-image can have, by entity type.
var states = map[string][]string{
	"issue":        {"title", "body", "state", "locked", "labels"},
	"pull_request": {"title", "body", "state", "draft", "base", "labels", "approved_by"},
	"comment":      {"body"},
	"run":          {"status", "head_sha"},
	"release":      {"name", "body", "tag_name", "target_commitish", "draft", "prerelease"},
}

// readPath is the path for reading an entity; "" for one that cannot be read.
func readPath(call connector.Call) string {
	_, what := splitReference(call)
	switch entities[call.Operation] {
	case "issue":
		return path(call, "issues", what)
	case "pull_request":
		return path(call, "pulls", what)
	case "comment":
		return path(call, "issues", "comments", what)
	case "run":
		return path(call, "actions", "runs", what)
	case "release":
		return path(call, "releases", what)
	}
	return ""
}

// get reads a path; there is false for 404 and 410. GitHub also sends 404 for a repository without
// read permission.
func (c *Connector) get(
	ctx context.Context, path string, query url.Values,
) (doc gatehouse.JSON, there bool, failed *connector.Error) {
	a, failed := c.api.Ask(ctx, http.MethodGet, path, query)
	switch {
	case failed != nil:
		return "", false, failed
	case a.Status == http.StatusNotFound || a.Status == http.StatusGone:
		return "", false, nil
	case a.Status != http.StatusOK || a.JSON() == "":
		return "", false, rest.ReadFailure(c.failure(a))
	}
	return a.JSON(), true, nil
}

// read reads the call's entity: the members that a pre-image can have, and the members that the
// connector itself compares.
func (c *Connector) read(
	ctx context.Context, call connector.Call,
) (state gatehouse.JSON, there bool, failed *connector.Error) {
	doc, there, failed := c.get(ctx, readPath(call), nil)
	if failed != nil || !there {
		return "", there, failed
	}
	members := []gatehouse.Member{}
	add := func(name string, value gatehouse.JSON) {
		members = append(members, gatehouse.Member{Name: name, Value: value})
	}
	for _, name := range states[entities[call.Operation]] {
		value, ok := doc.Get(name)
		switch {
		case name == "labels":
			add(name, sortedTexts(value, "name"))
		case name == "base":
			ref, _ := value.Get("ref")
			add(name, ref)
		case name == "approved_by":
			if _, asked := call.CurrentState.Get(name); asked {
				approved, failed := c.approvedBy(ctx, call)
				if failed != nil {
					return "", false, failed
				}
				add(name, approved)
			}
		case ok:
			add(name, value)
		}
	}
	if head, ok := doc.Get("head"); ok {
		sha, _ := head.Get("sha")
		add("head", sha)
	}
	for _, name := range []string{"merged", "merge_commit_sha", "conclusion"} {
		if value, ok := doc.Get(name); ok {
			add(name, value)
		}
	}
	return gatehouse.ObjectJSON(members...), true, nil
}

// sortedTexts returns a sorted list of texts: of each element, the named member, or the element itself if it
// is a text.
func sortedTexts(list gatehouse.JSON, member string) gatehouse.JSON {
	elements, _ := list.Elements()
	var all []string
	for _, e := range elements {
		if s, ok := rest.TextOf(e, member); ok {
			all = append(all, s)
		} else if s, ok := e.Text(); ok {
			all = append(all, s)
		}
	}
	slices.Sort(all)
	values := make([]gatehouse.JSON, len(all))
	for i, s := range all {
		values[i] = gatehouse.StringJSON(s)
	}
	return gatehouse.ArrayJSON(values...)
}

// approvedBy lists the people whose last review of a pull request, comments aside, approves the
// head that the call names.
func (c *Connector) approvedBy(ctx context.Context, call connector.Call) (gatehouse.JSON, *connector.Error) {
	_, number := splitReference(call)
	var reviews []gatehouse.JSON
	for page := 1; len(reviews) == (page-1)*100; page++ {
		if page > maxPages {
			return "", &connector.Error{
				Kind: connector.Terminal, Code: "too_many_reviews",
				Detail: fmt.Sprintf("at most %d reviews of a pull request are read", maxPages*100),
			}
		}
		doc, _, failed := c.get(ctx, path(call, "pulls", number, "reviews"),
			url.Values{"per_page": {"100"}, "page": {strconv.Itoa(page)}})
		if failed != nil {
			return "", failed
		}
		more, _ := doc.Elements()
		reviews = append(reviews, more...)
	}
	last := map[string]string{}
	for _, r := range reviews {
		user, _ := r.Get("user")
		login, _ := rest.TextOf(user, "login")
		state, _ := rest.TextOf(r, "state")
		commit, _ := rest.TextOf(r, "commit_id")
		if state == "APPROVED" && commit != call.Target.Version {
			state = "STALE"
		}
		if state != "COMMENTED" {
			last[login] = state
		}
	}
	var approved []gatehouse.JSON
	for login, state := range last {
		if state == "APPROVED" {
			approved = append(approved, gatehouse.StringJSON(login))
		}
	}
	slices.Sort(approved)
	return gatehouse.ArrayJSON(approved...), nil
}

// compare reports how an entity differs from the call's description of it.
func compare(call connector.Call, state gatehouse.JSON, there bool) connector.State {
	if !there {
		return connector.State{Expected: gatehouse.StringJSON(call.Target.EntityRef), Actual: "null"}
	}
	if head, _ := rest.TextOf(state, "head"); call.Operation == opMerge && head != call.Target.Version {
		return rest.OtherVersion(call.Target.Version, head)
	}
	return rest.Compare(call, func(m gatehouse.Member) (gatehouse.JSON, bool) {
		got, want := orNull(state, m.Name), m.Value
		if m.Name == "labels" || m.Name == "approved_by" {
			want = sortedTexts(want, "")
		}
		return got, want.Equal(got)
	})
}

// readAndCompare reads the entity before it is changed, and refuses a mismatch. It sends nothing that
// changes anything.
func (c *Connector) readAndCompare(ctx context.Context, call connector.Call) (gatehouse.JSON, *connector.Error) {
	state, there, failed := c.read(ctx, call)
	if failed != nil {
		return "", rest.NothingSent(failed)
	}
	if s := compare(call, state, there); !s.Matches {
		return "", rest.Changed(s)
	}
	return state, nil
}

// Checks implements [connector.SelectiveChecker].
func (c *Connector) Checks(call connector.Call) bool { return readPath(call) != "" }

// Check implements [connector.Checker].
func (c *Connector) Check(ctx context.Context, call connector.Call) (connector.State, error) {
	if !c.Checks(call) {
		return connector.State{Matches: true, Unchecked: true}, nil
	}
	state, there, failed := c.read(ctx, call)
	if failed != nil {
		return connector.State{}, failed
	}
	return compare(call, state, there), nil
}

// ReadsState implements [connector.StateReader].
func (c *Connector) ReadsState(call connector.Call) bool { return readPath(call) != "" }

// ReadState implements [connector.StateReader].
func (c *Connector) ReadState(ctx context.Context, call connector.Call) (connector.Snapshot, error) {
	if !c.ReadsState(call) {
		return connector.Snapshot{}, rest.NoState()
	}
	state, there, failed := c.read(ctx, call)
	if failed != nil {
		return connector.Snapshot{}, failed
	}
	if !there {
		return connector.Snapshot{Gone: true}, nil
	}
	out := connector.Snapshot{Matches: compare(call, state, true).Matches}
	if call.Operation == opMerge {
		out.Version, _ = rest.TextOf(state, "head")
	}
	out.CurrentState = rest.Select(connector.Fields(call.CurrentState),
		func(name string) gatehouse.JSON { return orNull(state, name) })
	return out, nil
}

func orNull(state gatehouse.JSON, name string) gatehouse.JSON {
	if value, ok := state.Get(name); ok {
		return value
	}
	return "null"
}
