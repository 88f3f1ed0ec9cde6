package github_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	"github.com/gatehouse-dev/gatehouse/connector/github"
)

func config(f *fake) github.Config {
	return github.Config{
		BaseURL: f.URL, AllowPrivate: true, Auth: github.Auth{Token: &connector.Secret{Secret: "GITHUB"}},
		Repositories: map[string]github.Repository{repo: {}},
	}
}

var secrets = connectortest.Named(map[string]string{"GITHUB": token})

func newConnector(t testing.TB, cfg github.Config) *github.Connector {
	t.Helper()
	return connectortest.Build[*github.Connector](t, github.New, cfg, secrets)
}

// refs are the entity type and the reference for each operation.
var refs = map[string][2]string{
	"comment": {"issue", repo + "#12"}, "add_label": {"issue", repo + "#12"}, "remove_label": {"issue", repo + "#12"},
	"merge": {"pull_request", repo + "#7"}, "dispatch": {"workflow", repo + "/deploy.yml"},
	"release": {"tag", repo + "@v1.2.0"},
}

func call(operation string, change gatehouse.JSON) connector.Call {
	return connectortest.Call(operation, refs[operation][0], refs[operation][1], "", change)
}

func merge() connector.Call {
	c := call("merge", `{"merge_method":"squash"}`)
	c.Target.Version, c.CurrentState = commit, `{"base":"main"}`
	return c
}

// back is the call that reverses a result.
func back(res connector.Result) connector.Call {
	r := res.Reversal
	return connector.Call{
		Tenant: "default", ActionID: "act_2", IdempotencyKey: "act_2:1", Digest: "sha256:2", Attempt: 1,
		Operation: r.Operation, Target: r.Target, CurrentState: r.CurrentState, ProposedChange: r.ProposedChange,
	}
}

var (
	wantFailure = connectortest.WantFailure
	failure     = connectortest.Failure
	found       = connectortest.WantFinding
)

// The target is a fake; see [fake]. The suite runs on merge, because it has what the suite needs: a
// version, and one entity that it changes.
func TestConformance(t *testing.T) {
	t.Parallel()
	not := connectortest.Not("GitHub compares the commit, and a merge has no other value", connectortest.Dropped,
		connectortest.Changed)
	not[connectortest.Skewed] = "a token does not contain the time"
	connectortest.Run(t, connectortest.Harness{Skip: not, New: func(t *testing.T) *connectortest.Fixture {
		f := newFake(t)
		return &connectortest.Fixture{
			Connector: newConnector(t, config(f)),
			Call:      merge(),
			Disturb: func(*testing.T) {
				f.do(func() { f.pull["head"], f.pull["base"] = object{"sha": moved}, object{"ref": "next"} })
			},
			Read: func(*testing.T) (merged gatehouse.JSON) {
				f.do(func() { merged = gatehouse.MustJSON(f.pull["merged"]) })
				return merged
			},
			Effects: func(*testing.T) int { return f.count() },
			Secrets: []string{token},
			Server:  f.Server,
			Expired: connectortest.WithSecret(github.New, config(f), "github_pat_old"),
		}
	}})
}

// TestConformanceOfComment: each call creates a comment, as an app.
func TestConformanceOfComment(t *testing.T) {
	t.Parallel()
	not := connectortest.Not("GitHub requires the body, the only field", connectortest.Dropped)
	connectortest.Run(t, connectortest.Harness{Skip: not, New: func(t *testing.T) *connectortest.Fixture {
		f := newFake(t)
		cfg, key := f.app()
		c := connectortest.Build[*github.Connector](t, github.New, cfg, func(string) (string, error) { return key, nil })
		return &connectortest.Fixture{
			Connector: c, Call: call("comment", `{"body":"hello"}`), Creates: true,
			Read: func(*testing.T) (comments gatehouse.JSON) {
				f.do(func() { comments = gatehouse.MustJSON(len(f.comments)) })
				return comments
			},
			Effects: func(*testing.T) int { return f.count() },
			Secrets: []string{token},
			Server:  f.Server, Value: [2]string{"hello", "hullo"},
			Expired: connectortest.WithSecret(github.New, cfg, otherKey()),
			Skewed:  func(w http.ResponseWriter, _ *http.Request) { answers(401, "'exp' is too far in the future")(w) },
		}
	}})
}

// TestMerge: the commit, the branch, the state and the approvers must be as approved; GitHub
// compares the commit again.
func TestMerge(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(f *fake)
		state  gatehouse.JSON
		code   string
		sent   int
	}{
		"all as approved": {nil, `{"base":"main","draft":false,"title":"Faster","approved_by":["ana"]}`, "", 1},
		"another branch": {
			func(f *fake) { f.pull["base"] = object{"ref": "next"} }, `{"base":"main"}`, "target_changed", 0,
		},
		"closed": {func(f *fake) { f.pull["state"] = "closed" }, `{"base":"main"}`, "target_changed", 0},
		"the head moved": {
			func(f *fake) { f.pull["head"] = object{"sha": moved} }, `{"base":"main"}`, "target_changed", 0,
		},
		"checks fail": {func(f *fake) { f.pull["mergeable"] = false }, `{"base":"main"}`, "not_mergeable", 1},
		"approval withdrawn": {func(f *fake) {
			review := object{"user": object{"login": "ana"}, "state": "CHANGES_REQUESTED", "commit_id": commit}
			f.reviews = append(f.reviews, review)
		}, `{"base":"main","approved_by":["ana"]}`, "target_changed", 0},
		"approval withdrawn after a hundred reviews": {func(f *fake) {
			for range 100 {
				f.reviews = append(f.reviews,
					object{"user": object{"login": "bob"}, "state": "COMMENTED", "commit_id": commit})
			}
			review := object{"user": object{"login": "ana"}, "state": "CHANGES_REQUESTED", "commit_id": commit}
			f.reviews = append(f.reviews, review)
		}, `{"base":"main","approved_by":["ana"]}`, "target_changed", 0},
		"too many reviews": {func(f *fake) {
			for range 1000 {
				f.reviews = append(f.reviews,
					object{"user": object{"login": "bob"}, "state": "COMMENTED", "commit_id": commit})
			}
		}, `{"base":"main","approved_by":["ana"]}`, "too_many_reviews", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.reviews = []object{
				{"user": object{"login": "ana"}, "state": "APPROVED", "commit_id": commit},
				{"user": object{"login": "ana"}, "state": "COMMENTED", "commit_id": commit},
				{"user": object{"login": "bob"}, "state": "APPROVED", "commit_id": moved},
			}
			if test.change != nil {
				test.change(f)
			}
			m := merge()
			m.CurrentState = test.state
			res, err := newConnector(t, config(f)).Execute(t.Context(), m)
			if test.code != "" {
				wantFailure(t, err, connector.Terminal, test.code)
			} else if err != nil || res.ExternalID != strings.Repeat("3", 40) || res.Reversal != nil {
				t.Errorf("%v, %+v", err, res)
			}
			if f.writes() != test.sent {
				t.Errorf("%d writes", f.writes())
			}
		})
	}
	// The head moves between the connector's read and its write.
	f := newFake(t)
	c := newConnector(t, config(f))
	f.fail(false, answers(409, "Head branch was modified. Review and try the merge again."))
	_, err := c.Execute(t.Context(), merge())
	wantFailure(t, err, connector.Terminal, "target_changed")
}

// TestAnswerLost: the effect of each operation that is readable is found again, and a second
// attempt has no second effect.
func TestAnswerLost(t *testing.T) {
	t.Parallel()
	for operation, change := range map[string]gatehouse.JSON{
		"comment": `{"body":"Looks good."}`, "add_label": `{"label":"vip"}`, "remove_label": `{"label":"BUG"}`,
		"merge": "", "dispatch": `{"inputs":{"env":"prod"},"ref":"main"}`,
		"release": `{"body":"Notes","name":"1.2","target_commitish":"` + commit + `"}`,
	} {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.inputs = []string{"env", "gatehouse_action"}
			cfg := config(f)
			cfg.ActionInput = "gatehouse_action"
			c := newConnector(t, cfg)
			do := call(operation, change)
			if operation == "merge" {
				do = merge()
			}
			do.ActionID = fmt.Sprintf("act_%012x70008000000000000000", time.Now().UnixMilli())
			found(t, c, do, connector.Inconclusive)
			f.fail(true, lost)
			_, err := c.Execute(t.Context(), do)
			wantFailure(t, err, connector.Ambiguous, "connection_lost")
			f.fail(false, nil)
			made := found(t, c, do, connector.Present)
			do.Attempt = 2
			res, err := c.Execute(t.Context(), do)
			switch {
			case operation == "merge": // the condition guards the repetition
				wantFailure(t, err, connector.Terminal, "target_changed")
			case err != nil || res.ExternalID != made.ExternalID || made.ExternalID == "":
				t.Errorf("%v, %q after %q", err, res.ExternalID, made.ExternalID)
			}
			if f.count() != 1 {
				t.Errorf("%d effects", f.count())
			}
		})
	}
}

// TestTooManyComments: with too many comments to search, a second attempt does not send its comment again.
func TestTooManyComments(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	for range 1000 {
		f.comments = append(f.comments, object{"id": 1, "body": "another"})
	}
	do := call("comment", `{"body":"Looks good."}`)
	do.Attempt = 2
	_, err := newConnector(t, config(f)).Execute(t.Context(), do)
	if e := failure(t, err); e == nil || e.Code != "too_many_comments" || f.count() != 0 {
		t.Errorf("%v, %d effects", e, f.count())
	}
}

// TestTooManyRuns: a second attempt searches several pages of runs. If there are too many, it does not start another.
func TestTooManyRuns(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.inputs = []string{"gatehouse_action"}
	cfg := config(f)
	cfg.ActionInput = "gatehouse_action"
	do := call("dispatch", `{"ref":"main"}`)
	do.Attempt = 2
	f.runs = append(f.runs, object{"id": 7, "display_title": "Deploy " + do.ActionID})
	for range 150 {
		f.runs = append([]object{{"id": 1, "display_title": "Deploy"}}, f.runs...)
	}
	c := newConnector(t, cfg)
	if res, err := c.Execute(t.Context(), do); err != nil || !strings.HasSuffix(res.ExternalID, "7") || f.count() != 0 {
		t.Errorf("%v, %q, %d effects", err, res.ExternalID, f.count())
	}
	f.do(func() {
		for range 1000 {
			f.runs = append([]object{{"id": 1, "display_title": "Deploy"}}, f.runs...)
		}
	})
	_, err := c.Execute(t.Context(), do)
	wantFailure(t, err, connector.Terminal, "too_many_runs")
	if f.count() != 0 {
		t.Errorf("%d effects", f.count())
	}
}

// TestReversals: each change but a merge can be reversed, that of a comment only while the comment is unchanged.
func TestReversals(t *testing.T) {
	t.Parallel()
	for operation, change := range map[string]gatehouse.JSON{
		"comment": `{"body":"Looks good."}`, "add_label": `{"label":"vip"}`, "remove_label": `{"label":"bug"}`,
		"dispatch": `{"ref":"main"}`, "release": `{"target_commitish":"` + commit + `"}`,
	} {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			c := newConnector(t, config(f))
			res, err := c.Execute(t.Context(), call(operation, change))
			if err != nil || res.Reversal == nil {
				t.Fatalf("%v, %+v", err, res)
			}
			if op, _ := c.Operation(operation); !op.Reverses {
				t.Error("is said not to be reversible")
			}
			undo := back(res)
			connectortest.Must(t, c.Validate(undo))
			if operation == "comment" {
				f.comments[0]["body"] = "edited by somebody"
				_, err := c.Execute(t.Context(), undo)
				wantFailure(t, err, connector.Terminal, "target_changed")
				f.comments[0]["body"], _ = undoText(undo)
			}
			if _, err := c.Execute(t.Context(), undo); err != nil {
				t.Error(err)
			}
			if f.count() != 2 || len(f.comments)+len(f.releases) != 0 ||
				operation != "dispatch" && !slices.Equal(f.labels, []string{"bug"}) {
				t.Errorf("%d effects, %v %v %v", f.count(), f.comments, f.releases, f.labels)
			}
			if operation == "dispatch" && f.runs[0]["conclusion"] != "cancelled" {
				t.Errorf("%v", f.runs)
			}
		})
	}
}

func undoText(c connector.Call) (string, bool) {
	body, _ := c.CurrentState.Get("body")
	return body.Text()
}

// TestLabelsAreIdempotent: class A needs no key here, because a label is either present or not. A
// reversal does not remove a label that was present before.
func TestLabelsAreIdempotent(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := newConnector(t, config(f))
	for _, name := range []string{"bug", "BUG"} {
		if res, err := c.Execute(
			t.Context(),
			call("add_label", gatehouse.MustJSON(map[string]string{"label": name})),
		); err != nil ||
			res.Reversal != nil {
			t.Errorf("%v, %+v", err, res.Reversal)
		}
	}
	add := call("add_label", `{"label":"vip"}`)
	add.CurrentState = `{"labels":["bug"],"state":"open"}`
	f.do(func() { f.issue["state"] = "closed" })
	_, err := c.Execute(t.Context(), add)
	wantFailure(t, err, connector.Terminal, "target_changed")
	if f.writes() != 0 {
		t.Errorf("%d writes", f.writes())
	}
}

// TestRelease: an existing tag must point to the approved commit.
func TestRelease(t *testing.T) {
	t.Parallel()
	change := gatehouse.JSON(`{"target_commitish":"` + commit + `"}`)
	for name, test := range map[string]struct {
		tag  object
		kind connector.Kind
		code string
	}{
		"a tag of the commit":     {object{"type": "commit", "sha": commit}, 0, ""},
		"an annotated tag of it":  {object{"type": "tag", "sha": "annotated"}, 0, ""},
		"a tag of a tag of it":    {object{"type": "tag", "sha": "outer"}, 0, ""},
		"a tag of another commit": {object{"type": "commit", "sha": moved}, connector.Terminal, "target_changed"},
		"a tag of a tag of another commit": {
			object{"type": "tag", "sha": "other"}, connector.Terminal, "target_changed",
		},
		"a tag object that is gone": {object{"type": "tag", "sha": "gone"}, connector.NotSent, "check_failed"},
		"a tag of itself":           {object{"type": "tag", "sha": "loop"}, connector.Terminal, "check_failed"},
		"a release without a tag":   {nil, connector.Terminal, "target_changed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.tagObjects = map[string]object{
				"annotated": {"type": "commit", "sha": commit}, "outer": {"type": "tag", "sha": "annotated"},
				"moved": {"type": "commit", "sha": moved}, "other": {"type": "tag", "sha": "moved"},
				"loop": {"type": "tag", "sha": "loop"},
			}
			if f.tags["v1.2.0"] = test.tag; test.tag == nil {
				delete(f.tags, "v1.2.0")
				f.releases = []object{{"id": 1, "tag_name": "v1.2.0", "body": "somebody's"}}
			}
			_, err := newConnector(t, config(f)).Execute(t.Context(), call("release", change))
			if test.code == "" && err != nil {
				t.Error(err)
			} else if test.code != "" {
				wantFailure(t, err, test.kind, test.code)
			}
		})
	}
}

// TestDispatch: without an input for the action's id, nothing is read back; GitHub Enterprise
// Server does not return the run.
func TestDispatch(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.inputs = []string{"env"}
	cfg := config(f)
	cfg.NoRunDetails = true
	c := newConnector(t, cfg)
	start := call("dispatch", `{"inputs":{"env":"prod"},"ref":"main"}`)
	res, err := c.Execute(t.Context(), start)
	if err != nil || res.ExternalID != "" || res.Reversal != nil || f.count() != 1 {
		t.Errorf("%v, %+v", err, res)
	}
	found(t, c, start, connector.Inconclusive)
	cfg.ActionInput = "gatehouse_action" // which this workflow does not take
	_, err = newConnector(t, cfg).Execute(t.Context(), start)
	wantFailure(t, err, connector.Terminal, "http_422")
}

// TestOutcomes: GitHub reports its rate limits with 403 and with 429.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	reset := strconv.FormatInt(time.Now().Add(10*time.Minute).Unix(), 10)
	for name, test := range map[string]struct {
		with     func(http.ResponseWriter)
		kind     connector.Kind
		code     string
		min, max time.Duration
	}{
		"403": {
			answers(403, "Resource not accessible by integration"), connector.Terminal, "http_403", 0, 0,
		},
		"403, spent": {
			answers(403, "API rate limit exceeded", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", reset),
			connector.Transient, "rate_limited", 9 * time.Minute, 10 * time.Minute,
		},
		"403, secondary": {
			answers(403, "You have exceeded a secondary rate limit."),
			connector.Transient, "rate_limited", time.Minute, time.Minute,
		},
		"403, retry after": {
			answers(403, "Slow down", "Retry-After", "90"),
			connector.Transient, "rate_limited", 90 * time.Second, 90 * time.Second,
		},
		"429": {answers(429, "Too many"), connector.Transient, "rate_limited", time.Minute, time.Minute},
		"401": {answers(401, "Bad credentials"), connector.Terminal, "http_401", 0, 0},
		"404": {answers(404, "Not Found"), connector.Terminal, "http_404", 0, 0},
		"422": {answers(422, "Validation Failed"), connector.Terminal, "http_422", 0, 0},
		"301, it was moved": {
			answers(301, "Moved Permanently", "Location", "/x"), connector.Terminal, "redirect", 0, 0,
		},
		"502":            {answers(502, "Server Error"), connector.Ambiguous, "http_502", 0, 0},
		"no answer":      {lost, connector.Ambiguous, "connection_lost", 0, 0},
		"another status": {answers(200, "?"), connector.Ambiguous, "http_200", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			c := newConnector(t, config(f))
			f.fail(false, test.with)
			_, err := c.Execute(t.Context(), call("comment", `{"body":"x"}`))
			wantFailure(t, err, test.kind, test.code)
			if e := failure(t, err); e.RetryAfter < test.min || e.RetryAfter > test.max {
				t.Errorf("retry after %v", e.RetryAfter)
			}
			if f.writes() != 1 {
				t.Errorf("%d writes", f.writes())
			}
			if test.kind != connector.Transient {
				return
			}
			f.fail(false, nil)
			_, err = c.Execute(t.Context(), call("comment", `{"body":"y"}`))
			wantFailure(t, err, connector.NotSent, "rate_limited")
		})
	}
	f := newFake(t)
	c := newConnector(t, config(f))
	f.reads = true
	f.fail(false, answers(502, "Server Error"))
	_, err := c.Execute(t.Context(), call("comment", `{"body":"x"}`))
	wantFailure(t, err, connector.NotSent, "http_502")
	f.fail(false, nil)
	f.rewrite = true
	_, err = c.Execute(t.Context(), call("comment", `{"body":"x"}`))
	wantFailure(t, err, connector.Ambiguous, "not_as_approved")
}

// key and otherKey are keys of apps, generated once.
var (
	key      = sync.OnceValue(generate)
	otherKey = sync.OnceValue(func() string { return keyPEM(generate()) })
)

func generate() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
}

func keyPEM(key *rsa.PrivateKey) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}

// app installs the app: its configuration and its key.
func (f *fake) app() (cfg github.Config, private string) {
	f.appKey = &key().PublicKey
	cfg = config(f)
	cfg.Auth = github.Auth{
		App: &github.App{ClientID: "Iv1.app", InstallationID: 99, PrivateKey: connector.Secret{Secret: "KEY"}},
	}
	return cfg, keyPEM(key())
}

// TestApp authenticates as an installation: one token for all calls, limited to the repositories,
// and a new one when it is revoked.
func TestApp(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	cfg, key := f.app()
	c := connectortest.Build[*github.Connector](t, github.New, cfg, func(string) (string, error) { return key, nil })
	for range 2 {
		res, err := c.Execute(t.Context(), call("comment", `{"body":"x"}`))
		if err != nil || strings.Contains(string(res.RequestMetadata), "ghs_") {
			t.Fatalf("%v, %s", err, res.RequestMetadata)
		}
	}
	if len(f.tokens) != 1 {
		t.Errorf("%d tokens", len(f.tokens))
	}
	f.do(func() { clear(f.tokens) })
	if err := c.Probe(t.Context()); err != nil || len(f.tokens) != 1 {
		t.Errorf("%v, %d tokens", err, len(f.tokens))
	}
	// The app was uninstalled.
	f.do(func() { clear(f.tokens); f.appKey = nil })
	_, err := c.Execute(t.Context(), call("comment", `{"body":"x"}`))
	wantFailure(t, err, connector.Terminal, "token_refused")
	if _, err := github.New(t.Context(), cfg, func(string) (string, error) { return "no key", nil }); err == nil {
		t.Error("no key is a key")
	}
}
