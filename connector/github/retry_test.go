package github_test

import (
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
)

// TestRetried: the comment or release of an earlier call is compared with what was approved. A browser stores other
// line ends, and GitHub need not keep white space at the ends of a text.
func TestRetried(t *testing.T) {
	t.Parallel()
	const text = "Looks good.\n\n- a\n- b"
	mark := "<!-- gatehouse:act_1 -->"
	comment := call("comment", gatehouse.MustJSON(object{"body": text}))
	release := call("release", gatehouse.MustJSON(object{
		"body": text, "name": "1.2 ", "prerelease": true, "target_commitish": commit,
	}))
	set := func(name string, value any) func(object) { return func(made object) { made[name] = value } }
	crlf := strings.ReplaceAll(text, "\n", "\r\n") + "\r\n\r\n" + mark + "\r\n"
	for name, test := range map[string]struct {
		call  connector.Call
		edit  func(object)
		wrong string
	}{
		"a comment":                   {comment, func(object) {}, ""},
		"a comment, other line ends":  {comment, set("body", crlf), ""},
		"a comment, edited":           {comment, set("body", "Looks bad.\n\n"+mark), `body is "Looks bad.`},
		"a comment, a line more":      {comment, set("body", text+"\n\n\n"+mark+"\nNo."), "body is "},
		"a release":                   {release, func(object) {}, ""},
		"a release, other line ends":  {release, set("body", crlf), ""},
		"a release, trimmed":          {release, set("name", "1.2"), ""},
		"a release, of an older tag":  {release, set("target_commitish", "main"), ""}, // GitHub does not use it then
		"a release, edited":           {release, set("body", "Looks bad.\n\n"+mark), "body is "},
		"a release, another name":     {release, set("name", "1.3"), `name is "1.3"`},
		"a release, no prerelease":    {release, set("prerelease", false), "prerelease is false"},
		"a release, without its name": {release, set("name", nil), "name is null"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			again := test.call
			first, err := newConnector(t, config(f)).Execute(t.Context(), again)
			connectortest.Must(t, err)
			f.do(func() { test.edit(append(f.comments, f.releases...)[0]) })
			again.Attempt = 2
			c := newConnector(t, config(f)) // another one need not wait between two writes
			res, err := c.Execute(t.Context(), again)
			want := connector.Present
			if test.wrong == "" {
				connectortest.Must(t, err)
			} else {
				want = connector.Inconclusive
				wantFailure(t, err, connector.Ambiguous, "not_as_approved")
				if e := failure(t, err); e != nil && !strings.Contains(e.Detail, test.wrong) {
					t.Errorf("the detail is %q", e.Detail)
				}
			}
			found(t, c, again, want)
			if res.ExternalID != first.ExternalID || (res.Reversal == nil) != (test.wrong != "") || f.count() != 1 {
				t.Errorf("%+v after %q, %d effects", res, first.ExternalID, f.count())
			}
		})
	}
}

// TestReleaseOfAMovedTag: the release is as approved, but its tag points to another commit now.
func TestReleaseOfAMovedTag(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c, release := newConnector(t, config(f)), call("release", `{"target_commitish":"`+commit+`"}`)
	_, err := c.Execute(t.Context(), release)
	connectortest.Must(t, err)
	found(t, c, release, connector.Present)
	f.do(func() { f.tags["v1.2.0"] = object{"type": "commit", "sha": moved} })
	found(t, c, release, connector.Inconclusive)
	_, err = c.Execute(t.Context(), release)
	wantFailure(t, err, connector.Terminal, "target_changed")
}

// TestReleaseCannotBeRead: the tag has a release already, which cannot be read. It may be that of an earlier attempt.
func TestReleaseCannotBeRead(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c, release := newConnector(t, config(f)), call("release", `{"target_commitish":"`+commit+`"}`)
	_, err := c.Execute(t.Context(), release)
	connectortest.Must(t, err)
	f.do(func() { f.unreadable = "GET /releases/tags/v1.2.0" })
	_, err = c.Execute(t.Context(), release)
	wantFailure(t, err, connector.Ambiguous, "http_502")
}
