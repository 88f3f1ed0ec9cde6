package gatehouse_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
)

// pointers returns the pointers that an error names.
func pointers(t *testing.T, err error) []string {
	t.Helper()
	var e *gatehouse.Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is not an Error", err)
	}
	var at []string
	for _, v := range e.Violations {
		if v.Detail == "" {
			t.Errorf("%s has no detail", v.Pointer)
		}
		at = append(at, v.Pointer)
	}
	return at
}

func minimal() *gatehouse.Proposal {
	return &gatehouse.Proposal{
		ActionType: "note", Connector: "crm", Operation: "create",
		Target: gatehouse.Target{EntityType: "note", EntityRef: "n1"}, ProposedChange: "{}",
	}
}

func TestProposalValidateAccepts(t *testing.T) {
	t.Parallel()
	full := proposal(t, proposalText)
	full.Callback = nil
	bulk := minimal()
	bulk.Target.EntityRef = ""
	for i := range gatehouse.MaxEntityRefs {
		bulk.Target.EntityRefs = append(bulk.Target.EntityRefs, fmt.Sprint(i))
	}
	limits := minimal()
	limits.ActionType = strings.Repeat("a", 128)
	limits.Rationale = strings.Repeat("é", gatehouse.MaxTextBytes/2)
	limits.IdempotencyKey = strings.Repeat("k", 255)
	limits.ExpiresIn = gatehouse.Span(gatehouse.MaxExpiry)
	limits.RiskLevel = 5
	limits.Evaluations = make([]gatehouse.Evaluation, gatehouse.MaxEvaluations)
	for i := range limits.Evaluations {
		limits.Evaluations[i] = gatehouse.Evaluation{Name: "n", Kind: "human", Result: "warn",
			Confidence: []gatehouse.JSON{"", "0", "1.0", "1e-3", "0.999"}[i%5]}
	}
	for name, p := range map[string]*gatehouse.Proposal{"minimal": minimal(), "full": full, "bulk": bulk,
		"limits": limits} {
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestProposalValidateRefuses(t *testing.T) {
	t.Parallel()
	type P = gatehouse.Proposal
	long := func(n int) string { return strings.Repeat("x", n+1) }
	evaluation := func(change func(*gatehouse.Evaluation)) func(*P) {
		return func(p *P) {
			good := gatehouse.Evaluation{Name: "n", Kind: "deterministic", Result: "pass"}
			bad := good
			change(&bad)
			p.Evaluations = []gatehouse.Evaluation{good, bad}
		}
	}
	refs := func(n int) (refs []string) {
		for i := range n {
			refs = append(refs, fmt.Sprint(i))
		}
		return refs
	}
	for _, c := range []struct {
		name   string
		change func(*P)
		want   string // the pointers
	}{
		{"nothing at all", func(p *P) { *p = P{} },
			"/action_type /connector /operation /target/entity_type /target/entity_ref /proposed_change"},
		{"no action type", func(p *P) { p.ActionType = "" }, "/action_type"},
		{"action type with a space", func(p *P) { p.ActionType = "a b" }, "/action_type"},
		{"no connector", func(p *P) { p.Connector = "" }, "/connector"},
		{"long connector", func(p *P) { p.Connector = long(128) }, "/connector"},
		{"no operation", func(p *P) { p.Operation = "" }, "/operation"},
		{"operation with NUL", func(p *P) { p.Operation = "a\x00" }, "/operation"},
		{"operation not UTF-8", func(p *P) { p.Operation = "a\xff" }, "/operation"},
		{"no entity type", func(p *P) { p.Target.EntityType = "" }, "/target/entity_type"},
		{"no entity", func(p *P) { p.Target.EntityRef = "" }, "/target/entity_ref"},
		{"long entity", func(p *P) { p.Target.EntityRef = long(1024) }, "/target/entity_ref"},
		{"long version", func(p *P) { p.Target.Version = long(1024) }, "/target/version"},
		{"one entity and many", func(p *P) { p.Target.EntityRefs = []string{"a"} }, "/target/entity_refs"},
		{"too many entities", func(p *P) { p.Target.EntityRef, p.Target.EntityRefs = "", refs(10_001) },
			"/target/entity_refs"},
		{"empty entity in the list", func(p *P) { p.Target.EntityRef, p.Target.EntityRefs = "", []string{"a", ""} },
			"/target/entity_refs/1"},
		{"entity twice", func(p *P) { p.Target.EntityRef, p.Target.EntityRefs = "", []string{"a", "b", "a"} },
			"/target/entity_refs/2"},
		{"no change", func(p *P) { p.ProposedChange = "" }, "/proposed_change"},
		{"change that is not an object", func(p *P) { p.ProposedChange = "[]" }, "/proposed_change"},
		{"pre-image that is not an object", func(p *P) { p.CurrentState = "1" }, "/current_state"},
		{"context that is not an object", func(p *P) { p.Context = `"x"` }, "/context"},
		{"metadata that is not an object", func(p *P) { p.Metadata = "true" }, "/metadata"},
		{"long rationale", func(p *P) { p.Rationale = long(64 << 10) }, "/rationale"},
		{"long person", func(p *P) { p.OnBehalfOf = long(128) }, "/on_behalf_of"},
		{"long key", func(p *P) { p.IdempotencyKey = long(255) }, "/idempotency_key"},
		{"risk level 6", func(p *P) { p.RiskLevel = 6 }, "/risk_level"},
		{"risk level -1", func(p *P) { p.RiskLevel = -1 }, "/risk_level"},
		{"magnitude without amount", func(p *P) { p.Magnitude = &gatehouse.Magnitude{} }, "/magnitude/amount"},
		{"magnitude that is not a number", func(p *P) { p.Magnitude = &gatehouse.Magnitude{Amount: "1,5"} },
			"/magnitude/amount"},
		{"long currency", func(p *P) { p.Magnitude = &gatehouse.Magnitude{Amount: "1", Currency: long(16)} },
			"/magnitude/currency"},
		{"short expiry", func(p *P) { p.ExpiresIn = gatehouse.Span(time.Second - 1) }, "/expires_in"},
		{"negative expiry", func(p *P) { p.ExpiresIn = -1 }, "/expires_in"},
		{"long expiry", func(p *P) { p.ExpiresIn = gatehouse.Span(gatehouse.MaxExpiry + 1) }, "/expires_in"},
		{"too many evaluations", func(p *P) { p.Evaluations = make([]gatehouse.Evaluation, 101) }, "/evaluations"},
		{"evaluation without a name", evaluation(func(e *gatehouse.Evaluation) { e.Name = "" }), "/evaluations/1/name"},
		{"evaluation of an unknown kind", evaluation(func(e *gatehouse.Evaluation) { e.Kind = "Human" }),
			"/evaluations/1/kind"},
		{"evaluation without result", evaluation(func(e *gatehouse.Evaluation) { e.Result = "" }), "/evaluations/1/result"},
		{"long details", evaluation(func(e *gatehouse.Evaluation) { e.Details = long(64 << 10) }), "/evaluations/1/details"},
		{"confidence over 1", evaluation(func(e *gatehouse.Evaluation) { e.Confidence = "1.0000000000000000000000001" }),
			"/evaluations/1/confidence"},
		{"confidence below 0", evaluation(func(e *gatehouse.Evaluation) { e.Confidence = "-1e-999" }),
			"/evaluations/1/confidence"},
		{"confidence that is text", evaluation(func(e *gatehouse.Evaluation) { e.Confidence = `"0.5"` }),
			"/evaluations/1/confidence"},
		{"diff without a type", func(p *P) { p.ArtifactDiff = &gatehouse.ArtifactDiff{} }, "/artifact_diff/type"},
		{"diff not UTF-8", func(p *P) { p.ArtifactDiff = &gatehouse.ArtifactDiff{Type: "t", Text: "\xff"} },
			"/artifact_diff/text"},
		{"long summary", func(p *P) { p.ArtifactDiff = &gatehouse.ArtifactDiff{Type: "t", Summary: long(64 << 10)} },
			"/artifact_diff/summary"},
		{"negative lines", func(p *P) {
			p.ArtifactDiff = &gatehouse.ArtifactDiff{Type: "t", LinesAdded: new(-1), LinesRemoved: new(-1)}
		}, "/artifact_diff/lines_added /artifact_diff/lines_removed"},
		{"callback of no type", func(p *P) { p.Callback = &gatehouse.Callback{} }, "/callback/type"},
		{"callback without a host", func(p *P) { p.Callback = &gatehouse.Callback{Type: "webhook", URL: "/done"} },
			"/callback/url"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := minimal()
			c.change(p)
			err := p.Validate()
			if gatehouse.CodeOf(err) != gatehouse.CodeInvalid {
				t.Fatalf("Validate: %v", err)
			}
			if diff := cmp.Diff(strings.Fields(c.want), slices.Compact(pointers(t, err))); diff != "" {
				t.Errorf("pointers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProposalValidateBoundsItsAnswer(t *testing.T) {
	t.Parallel()
	p := minimal()
	p.Target.EntityRef, p.Target.EntityRefs = "", make([]string, gatehouse.MaxEntityRefs)
	if n := len(pointers(t, p.Validate())); n > 30 {
		t.Errorf("%d violations for %d invalid entity references", n, gatehouse.MaxEntityRefs)
	}
}

func TestCallbackValidate(t *testing.T) {
	t.Parallel()
	type C = gatehouse.Callback
	arn := "arn:aws:states:eu-west-1:123456789012:execution:flow:1"
	for _, c := range []C{
		{Type: "webhook", URL: "https://x.example/y?z=1"}, {Type: "nats", Subject: "a.b-c.$d"},
		{Type: "step_functions", TaskToken: strings.Repeat("t", gatehouse.MaxTaskToken)},
		{
			Type: "step_functions", TaskToken: "t", ExecutionARN: arn, On: "finished",
			Heartbeat: gatehouse.Span(gatehouse.MinHeartbeat),
		},
	} {
		p := minimal()
		p.Callback = &c
		if err := p.Validate(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for _, tt := range []struct {
		c  C
		at []string
	}{
		{C{Type: "mail"}, []string{"/callback/type"}},
		{C{Type: "webhook"}, []string{"/callback/url"}},
		{C{Type: "webhook", URL: "https://a:b@x.example"}, []string{"/callback/url"}},
		{C{Type: "webhook", URL: "https://x.example/#y"}, []string{"/callback/url"}},
		{C{Type: "webhook", URL: "file:///etc/passwd"}, []string{"/callback/url"}},
		{C{Type: "webhook", URL: "https://x.example/\r\nA: b"}, []string{"/callback/url"}},
		{C{Type: "webhook", URL: "https://x.example/" + strings.Repeat("x", 2048)}, []string{"/callback/url"}},
		{C{Type: "webhook", URL: "https://x.example", Subject: "s", TaskToken: "t"},
			[]string{"/callback/subject", "/callback/task_token"}},
		{C{Type: "nats"}, []string{"/callback/subject"}},
		{C{Type: "nats", Subject: "a.*"}, []string{"/callback/subject"}},
		{C{Type: "nats", Subject: "a.>"}, []string{"/callback/subject"}},
		{C{Type: "nats", Subject: "a..b"}, []string{"/callback/subject"}},
		{C{Type: "nats", Subject: "a b"}, []string{"/callback/subject"}},
		{C{Type: "nats", Subject: "a\r\nPUB x"}, []string{"/callback/subject"}},
		{C{Type: "step_functions"}, []string{"/callback/task_token"}},
		{C{Type: "step_functions", TaskToken: strings.Repeat("t", 2049)}, []string{"/callback/task_token"}},
		{C{Type: "step_functions", TaskToken: "t", ExecutionARN: "arn:x"}, []string{"/callback/execution_arn"}},
		{C{Type: "step_functions", TaskToken: "t", On: "later"}, []string{"/callback/on"}},
		{C{Type: "step_functions", TaskToken: "t", Heartbeat: 1}, []string{"/callback/heartbeat"}},
		{C{Type: "step_functions", TaskToken: "t", TaskTokenHash: "sha256:00"}, []string{"/callback/task_token_hash"}},
		{C{Type: "webhook", URL: "https://x.example", Heartbeat: gatehouse.Span(time.Minute)},
			[]string{"/callback/heartbeat"}},
	} {
		p := minimal()
		p.Callback = &tt.c
		if err := p.Validate(); gatehouse.CodeOf(err) != gatehouse.CodeInvalid ||
			!slices.Equal(pointers(t, err), tt.at) {
			t.Errorf("%+v: %v, want it at %v", tt.c, err, tt.at)
		}
	}
}

func TestPrincipalValidate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind    gatehouse.Kind
		roles   string
		sponsor string
		want    string
	}{
		{"person", "proposer", "", ""},
		{"person", "approver operator auditor admin worker proposer", "", ""},
		{"person", "viewer", "", ""},
		{"agent", "proposer", "prn_1", ""},
		{"agent", "proposer worker auditor", "", ""},
		{"agent", "viewer", "", ""},
		{"service", "worker", "", ""},
		{"service", "operator", "", ""},
		{"agent", "approver", "prn_1", "/roles"},
		{"agent", "proposer admin", "", "/roles"},
		{"agent", "operator", "", "/roles"},
		{"service", "approver", "", "/roles"},
		{"service", "admin", "", "/roles"},
		{"person", "viewer proposer", "", "/roles"},
		{"person", "", "", "/roles"},
		{"person", "root%d", "", "/roles"},
		{"person", "approver", "prn_1", "/sponsor"},
		{"service", "worker", "prn_1", "/sponsor"},
		{"robot", "proposer", "", "/kind"},
		{"", "proposer", "", "/kind"},
	} {
		p := gatehouse.Principal{Name: "ana", Kind: c.kind, Sponsor: c.sponsor}
		for _, r := range strings.Fields(c.roles) {
			p.Roles = append(p.Roles, gatehouse.Role(r))
		}
		err := p.Validate()
		if c.want == "" {
			if err != nil {
				t.Errorf("%s as %s: %v", c.kind, c.roles, err)
			}
			continue
		}
		if gatehouse.CodeOf(err) != gatehouse.CodeInvalid || !slices.Equal(pointers(t, err), []string{c.want}) ||
			strings.Contains(err.Error(), "%!") {
			t.Errorf("%s as %s: %v; want %s", c.kind, c.roles, err, c.want)
		}
	}
	for name, ok := range map[string]bool{
		"a": true, "Ana.B@example.com:1+2_3-4": true, strings.Repeat("a", 128): true, strings.Repeat("a", 129): false,
		"": false, "-a": false, ".": false, "a b": false, "a/b": false, "a\n": false, "é": false, "a\x00": false,
	} {
		p := gatehouse.Principal{Name: name, Kind: "person", Roles: []gatehouse.Role{"viewer"}}
		if err := p.Validate(); (err == nil) != ok {
			t.Errorf("name %q: %v", name, err)
		}
	}
}

// TestGroupsOfAPersonAreBounded: a group counts once, from however many sources the person is in it.
func TestGroupsOfAPersonAreBounded(t *testing.T) {
	t.Parallel()
	p := gatehouse.Principal{Name: "ana", Kind: "person", Roles: []gatehouse.Role{"viewer"}}
	var groups []string
	for i := range gatehouse.MaxGroupMemberships {
		groups = append(groups, fmt.Sprintf("group-%d", i))
	}
	p.SetGroups(gatehouse.ByHand, groups)
	p.SetGroups("https://id.test", groups)
	if err := p.Validate(); err != nil {
		t.Errorf("all groups from two sources: %v", err)
	}
	p.SetGroups("https://id.test", []string{"one-more"})
	if err := p.Validate(); !slices.Equal(pointers(t, err), []string{"/groups"}) {
		t.Errorf("one group too many: %v", err)
	}
}

func TestPrincipalHas(t *testing.T) {
	t.Parallel()
	for _, held := range gatehouse.Roles() {
		p := gatehouse.Principal{Roles: []gatehouse.Role{held}}
		for _, asked := range gatehouse.Roles() {
			want := held == asked || held == "admin" &&
				slices.Contains([]gatehouse.Role{"approver", "operator", "auditor", "viewer"}, asked)
			if p.Has(asked) != want {
				t.Errorf("%s has %s: %v", held, asked, p.Has(asked))
			}
		}
	}
}
