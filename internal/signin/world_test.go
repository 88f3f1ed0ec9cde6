package signin_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/signin"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite/sqlitetest/migratedfile"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

const publicURL = "https://gate.test"

// world is a gate on a real store, with signin before it.
type world struct {
	*testing.T
	gate  *gate.Gate
	admin context.Context
	bot   context.Context
	said  *said

	mu     sync.Mutex
	offset time.Duration
}

// said is the log, which alone has the reason for a refused sign-in.
type said struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) { s.mu.Lock(); defer s.mu.Unlock(); return s.b.Write(p) }

// last returns what was said since the last call.
func (s *said) last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.b.Reset()
	return s.b.String()
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.offset)
}

func (w *world) advance(d time.Duration) { w.mu.Lock(); defer w.mu.Unlock(); w.offset += d }

// anything replaces the connectors: nothing is carried out here.
type anything struct{}

func (anything) Describe(string, *gatehouse.Proposal) (string, gatehouse.RiskLevel, time.Duration, error) {
	return "f1", 0, 0, nil
}
func (anything) Declared(string, *gatehouse.Proposal) *gatehouse.Declared { return nil }
func (anything) Lane(string, string) string                               { return "" }
func (anything) Checks(*gatehouse.Action) bool                            { return true }
func (anything) ChecksAny() bool                                          { return true }
func (anything) Validate(*gatehouse.Action) error                         { return nil }
func (anything) Check(
	context.Context, *gatehouse.Action,
) (matches bool, expected, actual gatehouse.JSON, checked bool, err error) {
	return false, "", "", false, nil
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, said: &said{}}
	store := migratedfile.Open(t, migratedfile.New(t), w.now)
	w.gate = gate.New(store, anything{}, &wake.Hub{}, gate.Config{PolicySource: policy.DefaultSource()}, w.log())
	creds, err := w.gate.Bootstrap(t.Context())
	w.must(err)
	w.admin = w.as(creds.Key)
	agent, err := w.gate.CreatePrincipal(w.admin,
		gatehouse.NewPrincipal{Name: "bot", Kind: gatehouse.KindAgent, Roles: []gatehouse.Role{gatehouse.RoleProposer}})
	w.must(err)
	w.bot = w.as(agent.Key)
	return w
}

func (w *world) log() *slog.Logger { return slog.New(slog.NewTextHandler(w.said, nil)) }

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) want(err error, code gatehouse.Code) {
	w.Helper()
	if got := gatehouse.CodeOf(err); got != code {
		w.Fatalf("code %q (%v), want %q; the log: %s", got, err, code, w.said.last())
	}
}

// refused checks that the answer has no reason, and that the log has it.
func (w *world) refused(err error, why string) {
	w.Helper()
	w.want(err, gatehouse.CodeUnauthenticated)
	if strings.Contains(err.Error(), why) {
		w.Errorf("the answer tells why: %v", err)
	}
	if log := w.said.last(); !strings.Contains(log, why) {
		w.Fatalf("refused, but the log does not say %q: %s", why, log)
	}
}

func (w *world) as(key string) context.Context {
	w.Helper()
	p, err := w.gate.Authenticate(w.Context(), key)
	w.must(err)
	return gatehouse.NewContext(w.Context(), &gatehouse.Caller{Principal: p, StepUp: true, Via: gatehouse.ViaAPI})
}

func (w *world) service(c signin.Config) *signin.Service {
	w.Helper()
	c.PublicURL = publicURL
	s, err := signin.New(c, w.gate, w.log())
	w.must(err)
	return s
}

// person makes a person and signs it in by a set-up link.
func (w *world) person(name string) (browser context.Context) {
	w.Helper()
	_, err := w.gate.CreatePrincipal(w.admin,
		gatehouse.NewPrincipal{Name: name, Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleApprover}})
	w.must(err)
	return w.setup(name)
}

func (w *world) setup(name string) (browser context.Context) {
	w.Helper()
	l, err := w.gate.CreateSetupLink(w.admin, name)
	w.must(err)
	s, err := w.gate.RedeemSetupLink(w.Context(), l.Token, gatehouse.Browser{})
	w.must(err)
	return w.browser(s)
}

func (w *world) browser(s *gatehouse.SignedIn) context.Context {
	w.Helper()
	c, err := w.gate.FindSession(w.Context(), s.Token)
	w.must(err)
	return gatehouse.NewContext(w.Context(), c)
}

func who(ctx context.Context) *gatehouse.Principal {
	c, err := gatehouse.CallerFrom(ctx)
	if err != nil {
		panic(err)
	}
	return c.Principal
}

// high proposes a change of L4.
func (w *world) high(ref string) *gatehouse.Action {
	w.Helper()
	a, _, err := w.gate.Propose(w.bot, &gatehouse.Proposal{
		ActionType: "create_item", Connector: "shop", Operation: "insert",
		Target:         gatehouse.Target{EntityType: "item", EntityRef: ref},
		ProposedChange: `{"price":"12.50"}`,
	})
	w.must(err)
	if a.RiskLevel != gatehouse.L4 {
		w.Fatalf("level %s", a.RiskLevel)
	}
	return a
}

func (w *world) approve(browser context.Context, a *gatehouse.Action) error {
	_, err := w.gate.Decide(browser, a.ID,
		gatehouse.Decision{Decision: gatehouse.Approve, Digest: a.Digest, Confirm: a.Approval.Confirm.Value})
	return err
}

// tamper is a transport that a test manipulates.
type tamper struct{ request func(*http.Request) }

func (t *tamper) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.request != nil {
		r = r.Clone(r.Context())
		t.request(r)
	}
	return http.DefaultTransport.RoundTrip(r)
}
