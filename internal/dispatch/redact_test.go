package dispatch

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	httpconn "github.com/gatehouse-dev/gatehouse/connector/http"
	sqlconn "github.com/gatehouse-dev/gatehouse/connector/sql"
	workerconn "github.com/gatehouse-dev/gatehouse/connector/worker"
)

// echoedSecret contains every character that some encoding escapes. Its two
// ends are letters that no encoding changes.
const echoedSecret = `HEAD"c/d+e<f>&g\h'TAIL`

// echoes are the encodings in which a target may echo a secret.
func echoes() map[string]string {
	var percent, unicode strings.Builder
	for i := range len(echoedSecret) {
		fmt.Fprintf(&percent, "%%%02X", echoedSecret[i])
		fmt.Fprintf(&unicode, `\u%04x`, echoedSecret[i])
	}
	quoted := string(gatehouse.StringJSON(echoedSecret))
	return map[string]string{
		"text": echoedSecret, "JSON": quoted[1 : len(quoted)-1], "page": html.EscapeString(echoedSecret),
		"query": url.QueryEscape(echoedSecret), "path": url.PathEscape(echoedSecret), "percent": percent.String(),
		"unicode": unicode.String(), "hex": hex.EncodeToString([]byte(echoedSecret)),
		"upper hex":        strings.ToUpper(hex.EncodeToString([]byte(echoedSecret))),
		"Base64":           base64.StdEncoding.EncodeToString([]byte(echoedSecret)),
		"Base64 of a line": base64.RawURLEncoding.EncodeToString([]byte("X-Key: " + echoedSecret + "\r\n")),
	}
}

// echoed is all encodings in one text.
func echoed() string {
	var b strings.Builder
	for _, text := range echoes() {
		b.WriteString(text + " | ")
	}
	return b.String()
}

// wantNoSecret fails if a text contains a piece of the secret in any encoding.
func wantNoSecret(t *testing.T, where, text string) {
	t.Helper()
	marks := map[string]string{"the beginning": "HEAD", "the end": "TAIL"}
	for name, spelled := range echoes() {
		marks[name] = spelled[len(spelled)/3 : len(spelled)*2/3]
	}
	for name, mark := range marks {
		for _, m := range []string{mark, strings.Trim(string(gatehouse.StringJSON(mark)), `"`)} {
			if i := strings.Index(text, m); i >= 0 {
				t.Errorf("%s holds the secret (%s): …%s…", where, name, text[max(0, i-80):min(len(text), i+80)])
				return
			}
		}
	}
}

// everything returns the contents of all tables of a store's file.
func everything(t *testing.T, path string) string {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	must(t, err)
	defer db.Close()
	names, err := db.Query(`SELECT name FROM sqlite_master WHERE type = 'table'`)
	must(t, err)
	var tables []string
	for names.Next() {
		var name string
		must(t, names.Scan(&name))
		tables = append(tables, name)
	}
	if err := errors.Join(names.Err(), names.Close()); err != nil || len(tables) < 10 {
		t.Fatalf("%d tables, %v", len(tables), err)
	}
	var out strings.Builder
	for _, table := range tables {
		rows, err := db.Query(`SELECT * FROM "` + table + `"`)
		must(t, err)
		columns, err := rows.Columns()
		must(t, err)
		for rows.Next() {
			values := make([]any, len(columns))
			for i := range values {
				values[i] = new(sql.RawBytes)
			}
			must(t, rows.Scan(values...))
			for i, v := range values {
				fmt.Fprintf(&out, "%s.%s=%s\n", table, columns[i], *v.(*sql.RawBytes))
			}
		}
		must(t, errors.Join(rows.Err(), rows.Close()))
	}
	return out.String()
}

// echoing is a fake target that echoes the secret in everything that it
// returns.
type echoing struct {
	*ledger
	failure func() error
	state   connector.State
	looked  func() error
	found   connector.Finding
}

func echoedResult(c connector.Call) connector.Result {
	return connector.Result{
		ExternalID: "x " + echoedSecret, RequestMetadata: gatehouse.ObjectJSON(gatehouse.Member{Name: "url",
			Value: gatehouse.StringJSON(echoed())}),
		ResponseMetadata: gatehouse.ObjectJSON(gatehouse.Member{Name: echoed(), Value: gatehouse.StringJSON(echoed())}),
		Reversal: &gatehouse.Reversal{
			Operation: "update", Target: c.Target, ProposedChange: gatehouse.ObjectJSON(gatehouse.Member{Name: "price",
				Value: gatehouse.StringJSON(echoed())}),
		},
	}
}

func (e echoing) Execute(_ context.Context, c connector.Call) (connector.Result, error) {
	var err error
	if e.failure != nil {
		err = e.failure()
	}
	return echoedResult(c), err
}

func (e echoing) Check(context.Context, connector.Call) (connector.State, error) {
	if e.looked != nil {
		return e.state, e.looked()
	}
	return e.state, nil
}

func (e echoing) ReadBack(_ context.Context, c connector.Call) (connector.Finding, connector.Result, error) {
	if e.found == connector.Inconclusive {
		return e.found, connector.Result{}, &connector.Error{Kind: connector.Transient, Code: "no", Detail: echoed(),
			Err: errors.New(echoed())}
	}
	return e.found, echoedResult(c), nil
}

func echoedError(kind connector.Kind) func() error {
	return func() error {
		return &connector.Error{Kind: kind, Code: "no " + echoedSecret, Detail: echoed(), Says: echoed(),
			Err: errors.New(echoed())}
	}
}

// TestNoConnectorReturnsASecret uses targets of each kind that echo a secret in
// every encoding and place, and searches all tables and the log for it.
func TestNoConnectorReturnsASecret(t *testing.T) {
	t.Parallel()
	matches := connector.State{Matches: true}
	differs := connector.State{Expected: gatehouse.StringJSON(echoed()), Actual: gatehouse.StringJSON(echoed())}
	fake := func(e echoing) func(*testing.T) connector.Connector {
		return func(*testing.T) connector.Connector {
			e.ledger = newLedger(connector.ClassC)
			return e
		}
	}
	for name, c := range map[string]struct {
		of   func(*testing.T) connector.Connector
		with func(*gatehouse.Action, *gatehouse.Push)
		want gatehouse.PushStatus
	}{
		"a success": {of: fake(echoing{state: matches}), want: gatehouse.PushApplied},
		"a refusal": {of: fake(echoing{state: matches, failure: echoedError(connector.Terminal)}),
			want: gatehouse.PushFailed},
		"retries": {of: fake(echoing{state: matches, failure: echoedError(connector.NotSent)}),
			want: gatehouse.PushFailed},
		"a plain error": {of: fake(echoing{state: matches,
			failure: func() error { return errors.New(echoed()) }}), want: gatehouse.PushUnknown},
		"a panic": {of: fake(echoing{state: matches, failure: func() error { panic(echoed()) }}),
			want: gatehouse.PushUnknown},
		"a read-back": {of: fake(echoing{state: matches, failure: echoedError(connector.Ambiguous),
			found: connector.Present}), want: gatehouse.PushApplied},
		"a read-back's proof": {of: fake(echoing{state: matches, failure: echoedError(connector.Ambiguous),
			found: connector.Absent}), want: gatehouse.PushUnknown},
		"a check":           {of: fake(echoing{state: differs}), want: gatehouse.PushFailed},
		"a check's failure": {of: fake(echoing{looked: echoedError(connector.Terminal)}), want: gatehouse.PushFailed},
		"http, a success":   {of: echoingHTTP(http.StatusOK), want: gatehouse.PushApplied},
		"http, a refusal":   {of: echoingHTTP(http.StatusUnprocessableEntity), want: gatehouse.PushFailed},
		"http, a check": {of: echoingHTTP(http.StatusOK), with: changing(`{"you":"me"}`),
			want: gatehouse.PushFailed},
		"sql, a success": {of: echoingSQL(""), with: onRow(`{"name":"new"}`, `{}`), want: gatehouse.PushApplied},
		"sql, a refusal": {of: echoingSQL(echoed()), with: onRow(`{"name":"new"}`, `{}`),
			want: gatehouse.PushFailed},
		"sql, a check": {of: echoingSQL(""), with: onRow(`{"name":"new"}`, `{"name":"old"}`),
			want: gatehouse.PushFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, c.of(t))
			b.targets = b.targets.WithSecrets([]string{echoedSecret})
			var log bytes.Buffer
			with := []func(*gatehouse.Action, *gatehouse.Push){}
			if c.with != nil {
				with = append(with, c.with)
			}
			a := b.approve(with...)
			b.settle(b.dispatcher(testConfig(), func(d *Dependencies) {
				d.Log = slog.New(slog.NewTextHandler(&log,
					nil))
			}))
			s := b.state(a)
			if s.push.Status != c.want {
				t.Fatalf("the push is %s, want %s: %s", s.push.Status, c.want, s.push.LastError)
			}
			all := everything(t, b.path)
			if !strings.Contains(all+log.String(), "[redacted]") {
				t.Error("nothing says that a text was redacted")
			}
			wantNoSecret(t, "the store", all)
			wantNoSecret(t, "the log", log.String())
			if strings.HasPrefix(name, "sql, a refusal") && !strings.Contains(s.push.TargetSays, "the trigger says") {
				t.Errorf("the target says %q", s.push.TargetSays)
			}
			if c.want != gatehouse.PushApplied {
				return
			}
			r := s.receipts[len(s.receipts)-1]
			if r.Reversible || r.Reversal != nil || !strings.Contains(string(r.ResponseMetadata),
				`"reversal_left_out"`) {
				t.Errorf("a reversal that holds a secret: %+v", r)
			}
		})
	}
}

// changing gives the action a pre-image.
func changing(before gatehouse.JSON) func(*gatehouse.Action, *gatehouse.Push) {
	return func(a *gatehouse.Action, _ *gatehouse.Push) { a.CurrentState = before }
}

// onRow points the action at the row of [echoingSQL].
func onRow(change, before gatehouse.JSON) func(*gatehouse.Action, *gatehouse.Push) {
	return func(a *gatehouse.Action, _ *gatehouse.Push) {
		a.Target, a.CurrentState, a.ProposedChange = gatehouse.Target{EntityType: "item", EntityRef: "1", Version: "7"},
			before, change
	}
}

// echoingHTTP is a connector to a server that echoes in headers and body.
func echoingHTTP(status int) func(*testing.T) connector.Connector {
	return func(t *testing.T) connector.Connector {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Request-Id", r.Header.Get("X-Key"))
			w.Header().Set("Location", strings.Repeat("x", 512-8)+echoedSecret)
			w.Header().Set("X-Correlation-Id", echoed())
			w.Header().Set("Content-Type", "application/json")
			if r.Method == http.MethodGet {
				fmt.Fprintf(w, `{"you":%s}`, gatehouse.StringJSON(echoed()))
				return
			}
			w.WriteHeader(status)
			fmt.Fprint(w, gatehouse.ObjectJSON(
				gatehouse.Member{Name: "id", Value: gatehouse.StringJSON(echoedSecret)},
				gatehouse.Member{Name: "you", Value: gatehouse.StringJSON(echoed())},
				gatehouse.Member{Name: echoedSecret, Value: "1"},
				// The receipt is truncated in the middle of this value.
				gatehouse.Member{Name: "zz", Value: gatehouse.StringJSON(strings.Repeat(echoedSecret+" ", 400))},
			))
		}))
		t.Cleanup(s.Close)
		id := httpconn.Pointer("/id")
		root := httpconn.Pointer("")
		c, err := httpconn.New(t.Context(), httpconn.Config{
			BaseURL: s.URL, AllowPrivate: true, Headers: map[string]httpconn.Value{"X-Key": {Secret: "ODD"}},
			Operations: map[string]httpconn.Operation{"update": {
				Class: connector.ClassC, Method: "POST", Path: "/items/{entity_ref}", ExternalID: &id,
				Check:   &httpconn.Check{Path: "/items/{entity_ref}", State: root},
				Reverse: &httpconn.Reverse{Operation: "update", EntityRef: "{external_id}", Change: `{"undo":true}`},
			}},
		}, func(string) (string, error) { return echoedSecret, nil })
		must(t, err)
		return preImage{c.(*httpconn.Connector)}
	}
}

// preImage checks only actions whose pre-image is "you", so that the others get
// to their call.
type preImage struct{ *httpconn.Connector }

func (p preImage) Check(ctx context.Context, c connector.Call) (connector.State, error) {
	if _, ok := c.CurrentState.Get("you"); !ok {
		return connector.State{Matches: true}, nil
	}
	c.Target.Version = ""
	return p.Connector.Check(ctx, c)
}

// echoingSQL is a connector to a database whose row contains the secret. With a
// message, updates fail with that message.
func echoingSQL(message string) func(*testing.T) connector.Connector {
	return func(t *testing.T) connector.Connector {
		path := filepath.Join(t.TempDir(), "shop.db")
		db, err := sql.Open("sqlite", path)
		must(t, err)
		defer db.Close()
		statements := []string{
			`CREATE TABLE items (id TEXT PRIMARY KEY, name TEXT NOT NULL, label TEXT NOT NULL, version INTEGER NOT NULL) STRICT`,
		}
		if message != "" {
			statements = append(statements, `CREATE TRIGGER refuse BEFORE UPDATE ON items BEGIN SELECT RAISE(ABORT, '`+
				strings.ReplaceAll("the trigger says "+message, "'", "''")+`'); END`)
		}
		for _, s := range statements {
			if _, err := db.Exec(s); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := db.Exec(`INSERT INTO items VALUES ('1', ?, ?, 7)`, echoed(), echoedSecret); err != nil {
			t.Fatal(err)
		}
		c, err := sqlconn.New(t.Context(), sqlconn.Config{
			DSN: "sqlite:" + path, Entities: map[string]sqlconn.Entity{"item": {Table: "items", Key: "id",
				Version: "version", ExternalID: "label"}},
		}, nil)
		must(t, err)
		t.Cleanup(func() { _ = c.(io.Closer).Close() })
		return c
	}
}

// TestNoWorkerRevealsASecret has an external worker that reports the secret in
// every field.
func TestNoWorkerRevealsASecret(t *testing.T) {
	t.Parallel()
	c, err := workerconn.New(
		workerconn.Config{Operations: map[string]workerconn.Operation{"update": {Class: connector.ClassA}}})
	must(t, err)
	holds := func(string) bool { return true }
	for name, tell := range map[string]func(*testing.T, Outside, gatehouse.LeasedPush) (*gatehouse.Push, error){
		"complete": func(t *testing.T, o Outside, p gatehouse.LeasedPush) (*gatehouse.Push, error) {
			res := echoedResult(connector.Call{Target: p.Target})
			return o.Complete(t.Context(), "default", p.Push.ID, holds, gatehouse.PushResult{
				Generation: p.Lease.Generation, ExternalID: res.ExternalID, RequestMetadata: res.RequestMetadata,
				ResponseMetadata: res.ResponseMetadata, Reversal: res.Reversal,
			})
		},
		"fail": func(t *testing.T, o Outside, p gatehouse.LeasedPush) (*gatehouse.Push, error) {
			return o.Fail(t.Context(), "default", p.Push.ID, holds, gatehouse.PushFailure{
				Generation: p.Lease.Generation, Kind: "terminal", Code: "no " + echoedSecret, Detail: echoed(),
				TargetSays: echoed(),
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, c)
			b.targets = b.targets.WithSecrets([]string{echoedSecret})
			a := b.approve(func(_ *gatehouse.Action, p *gatehouse.Push) { p.Lane = "shop" })
			o := Outside{b.dispatcher(testConfig())}
			leased, err := o.Lease(t.Context(), "default", gatehouse.LaneClaim{
				Owner: "prn_worker", Lease: time.Minute, Lanes: []string{"shop"}, Limit: 1,
			})
			if err != nil || len(leased) != 1 {
				t.Fatalf("leased %d, %v", len(leased), err)
			}
			told, err := tell(t, o, leased[0])
			must(t, err)
			wantNoSecret(t, "the answer", fmt.Sprintf("%+v", told))
			all := everything(t, b.path)
			wantNoSecret(t, "the store", all)
			if !strings.Contains(all, "[redacted]") {
				t.Error("nothing says that a text was redacted")
			}
			for _, r := range b.state(a).receipts {
				if r.Reversible {
					t.Errorf("a reversal that holds a secret: %+v", r.Reversal)
				}
			}
		})
	}
}

// TestLooksBesideTheDispatcherTellNoSecret reads targets as decisions, proposals and operators do.
func TestLooksBesideTheDispatcherTellNoSecret(t *testing.T) {
	t.Parallel()
	failing := func() error { return echoedError(connector.Terminal)() }
	result := echoedResult(connector.Call{})
	a := &gatehouse.Action{Tenant: "default", ID: "act_1",
		Proposal: gatehouse.Proposal{Connector: "shop", Operation: "update"}}
	look := func(c connector.Connector) (said []any) {
		r := registryOf(t, Target{Name: "shop", Connector: c}).WithSecrets([]string{echoedSecret})
		_, expected, actual, _, err := r.Check(t.Context(), a)
		said = append(said, expected, actual, err)
		receipt, err := r.ReadBack(t.Context(), a, 1)
		said = append(said, fmt.Sprintf("%+v", receipt), err)
		err = r.Validate(a)
		var e *gatehouse.Error
		if errors.As(err, &e) {
			said = append(said, e.Detail, fmt.Sprintf("%+v", e.Violations))
		}
		return append(said, err)
	}
	for name, c := range map[string]able{
		"what is found": {
			check: func() (connector.State, error) {
				return connector.State{Expected: gatehouse.StringJSON(echoed()),
					Actual: gatehouse.StringJSON(echoed())}, nil
			},
			readBack: func() (connector.Finding, connector.Result, error) { return connector.Present, result, nil },
			validate: gatehouse.Violations{{Pointer: "/" + echoedSecret, Detail: echoed()}}.Err(),
		},
		"failures": {
			check: func() (connector.State, error) { return connector.State{}, failing() },
			readBack: func() (connector.Finding, connector.Result, error) {
				return connector.Inconclusive, connector.Result{}, failing()
			},
			validate: errors.New(echoed()),
		},
	} {
		said := look(c)
		wantNoSecret(t, name, fmt.Sprint(said...))
		if got := strings.Count(fmt.Sprint(said...), "[redacted]"); got < 3 {
			t.Errorf("%s: %v", name, said)
		}
	}
}

// TestSecretGoneMeanwhile: a target whose secret is removed after the last checks is not called
// without it.
func TestSecretGoneMeanwhile(t *testing.T) {
	t.Parallel()
	l := newLedger(connector.ClassA)
	b := newBench(t, l)
	a := b.approve()
	b.drain(b.dispatcher(testConfig(), failpoint(func(p Point) {
		if p == PointSent {
			b.targets.Replace([]Target{{Name: "shop", Connector: l, Unready: errors.New("secret k was revoked")}}, nil, nil)
		}
	})))
	s := b.state(a)
	if calls, _ := l.count(a.IdempotencyKey); calls != 0 || s.push.Status != gatehouse.PushQueued ||
		s.push.ErrorCode != "secret_missing" {
		t.Errorf("%d calls, %s, %s", calls, s.push.Status, s.push.ErrorCode)
	}
}
