package dispatch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
)

// previewing returns a given preview.
type previewing struct {
	bare
	previews func() bool
	preview  func() (gatehouse.Preview, error)
}

func (p previewing) Previews(connector.Call) bool { return p.previews == nil || p.previews() }

func (p previewing) Preview(context.Context, connector.Call) (gatehouse.Preview, error) {
	return p.preview()
}

// TestPreview: whatever a connector answers, people see a bounded preview without secrets.
func TestPreview(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-hunter2"
	says := func(p gatehouse.Preview, err error) previewing {
		return previewing{preview: func() (gatehouse.Preview, error) { return p, err }}
	}
	long := strings.Repeat("x", 10<<20)
	var many []gatehouse.PreviewChange
	for i := range 100_000 {
		many = append(many, gatehouse.PreviewChange{
			Path: fmt.Sprint("/f", i), After: gatehouse.JSON(fmt.Sprint(i)), How: gatehouse.PreviewAsProposed,
		})
	}
	many[99_000].How = gatehouse.PreviewDiffers
	ok := gatehouse.Preview{Rows: 1, Changes: []gatehouse.PreviewChange{{Path: "/a", After: `{"b":1, "a":2}`}}}
	for name, test := range map[string]struct {
		connector connector.Connector
		tenant    string
		edited    bool
		want      func(p gatehouse.Preview) bool // nil for an error
	}{
		"a preview": {says(ok, nil), "default", false, func(p gatehouse.Preview) bool {
			return p.None == "" && p.Rows == 1 && p.Changes[0].After == `{"a":2,"b":1}`
		}},
		"another tenant": {says(ok, nil), "other", false,
			func(p gatehouse.Preview) bool { return p.None != "" && p.Rows == 0 }},
		"another definition": {says(ok, nil), "default", true,
			func(p gatehouse.Preview) bool { return p.None != "" && p.Rows == 0 }},
		"none": {says(gatehouse.Preview{None: "no " + secret, Rows: 7}, nil), "default", false,
			func(p gatehouse.Preview) bool { return p.None == "no [redacted]" && p.Rows == 0 }},
		"no Previewer": {bare{}, "default", false, func(p gatehouse.Preview) bool { return p.None != "" }},
		"it cannot": {previewing{previews: func() bool { return false }}, "default", false,
			func(p gatehouse.Preview) bool { return p.None != "" }},
		"secrets": {says(gatehouse.Preview{
			Changes: []gatehouse.PreviewChange{{
				Ref: secret, Path: "/" + secret, Before: `["` + secret + `"]`, After: `{"` + secret + `":1}`,
				Proposed: `"` + secret + `"`,
			}},
			Failure: &gatehouse.PreviewFailure{Code: secret, Detail: secret, TargetSays: secret},
			Undo:    &gatehouse.PreviewUndo{Why: secret},
		}, nil), "default", false, func(p gatehouse.Preview) bool {
			return p.Failure.TargetSays == "[redacted]" && p.Changes[0].Before == `["[redacted]"]`
		}},
		"10 MB": {says(gatehouse.Preview{
			Changes: append(many, gatehouse.PreviewChange{Path: long, After: gatehouse.StringJSON(long),
				How: gatehouse.PreviewDiffers}),
			Failure: &gatehouse.PreviewFailure{Code: "c", Detail: long, TargetSays: long},
		}, nil), "default", false, func(p gatehouse.Preview) bool {
			text, _ := p.Changes[1].After.Text()
			return len(p.Changes) == gatehouse.MaxPreviewChanges && p.More == 99_951 &&
				p.Changes[0].Path == "/f99000" &&
				strings.HasSuffix(text, "…") && len(gatehouse.MustJSON(p)) < 64<<10
		}},
		"invalid JSON": {says(gatehouse.Preview{Changes: []gatehouse.PreviewChange{{Path: "/a", After: `{"a":`}}},
			nil), "default", false,
			func(p gatehouse.Preview) bool { return p.Changes[0].After == `"{\"a\":"` }},
		"an error": {says(ok, &connector.Error{Kind: connector.Transient, Detail: "no " + secret}),
			"default", false, nil},
		"an error of its own": {says(ok, errors.New(secret)), "default", false, nil},
		"a panic": {previewing{preview: func() (gatehouse.Preview, error) { panic(secret) }}, "default",
			false, nil},
		"a panic when asked": {previewing{previews: func() bool { panic(secret) }}, "default", false,
			func(p gatehouse.Preview) bool { return p.None != "" }},
	} {
		r := registryOf(t, Target{Name: "shop", Connector: test.connector}).WithSecrets([]string{secret})
		a := &gatehouse.Action{
			Tenant: test.tenant, Fingerprint: test.connector.Fingerprint(),
			Proposal: gatehouse.Proposal{Connector: "shop", Operation: "update"},
		}
		if test.edited {
			a.Fingerprint = "of the definition before"
		}
		p, err := r.Preview(t.Context(), a)
		if (err != nil) != (test.want == nil) || err == nil && !test.want(p) {
			t.Errorf("%s: %.2000s, %v", name, fmt.Sprintf("%+v", p), err)
		}
		if text := string(gatehouse.MustJSON(p)); strings.Contains(text, secret) || err != nil &&
			strings.Contains(err.Error(), secret) {
			t.Errorf("%s: tells the secret: %.2000s %v", name, text, err)
		}
	}
}
