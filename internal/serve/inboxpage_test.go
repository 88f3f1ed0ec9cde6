package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/dispatch"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
	"github.com/gatehouse-dev/gatehouse/internal/policy"
	"github.com/gatehouse-dev/gatehouse/internal/store/postgres"
	"github.com/gatehouse-dev/gatehouse/internal/store/sqlite"
	"github.com/gatehouse-dev/gatehouse/internal/wake"
)

// BenchmarkInboxPage measures the allocations of a page of fifty actions by urgency: in the store,
// over HTTP, and in the console. Garbage collection of these makes up the tail of the latency.
//
//	go test -run '^$' -bench InboxPage -benchmem ./internal/serve
func BenchmarkInboxPage(b *testing.B) {
	log := slog.New(slog.DiscardHandler)
	for name, open := range map[string]func(*testing.B) (gatehouse.Store, error){
		"SQLite": func(b *testing.B) (gatehouse.Store, error) {
			return sqlite.Open(b.Context(), sqlite.Config{Path: filepath.Join(b.TempDir(), DatabaseFile), Logger: log})
		},
		"PostgreSQL": func(b *testing.B) (gatehouse.Store, error) {
			cluster := pgtest.New(b)
			return postgres.Open(b.Context(), postgres.Config{URL: cluster.DSN("postgres"), Logger: log})
		},
	} {
		b.Run(name, func(b *testing.B) {
			store, err := open(b)
			must(b, err)
			w := servePages(b, store, log)
			b.Run("store", func(b *testing.B) { w.each(b, w.fromStore()) })
			b.Run("http", func(b *testing.B) { w.each(b, w.fromAPI()) })
			b.Run("console", func(b *testing.B) { w.each(b, w.fromConsole()) })
		})
	}
}

// pages is a gate with actions that wait.
type pages struct {
	store   gatehouse.Store
	surface http.Handler
	key     string // of an approver, who is also signed in to the console
	cookie  string
}

// idleTarget is a connector that is never called.
type idleTarget struct{ connector.Connector }

func (idleTarget) Fingerprint() string { return fmt.Sprintf("%064d", 0) }

func (idleTarget) Operation(name string) (connector.Operation, bool) {
	return connector.Operation{Name: name, Class: connector.ClassA, Floor: gatehouse.L1}, true
}

func servePages(b *testing.B, store gatehouse.Store, log *slog.Logger) *pages {
	b.Helper()
	n := &Node{config: &config.Config{}, Log: log, Store: store, Backplane: &Backplane{}, Hub: wake.Spread(&wake.Hub{})}
	var err error
	n.Registry, err = dispatch.NewRegistry(dispatch.Target{Name: "shop", Connector: idleTarget{}})
	must(b, err)
	n.Gate = gate.New(n.Store, n.Registry, n.Hub, gate.Config{PolicySource: policy.DefaultSource()}, log)
	n.Runs, err = newRuns(n.Gate, n.config)
	must(b, err)
	n.secrets = newStoreSecrets(n.config, log)
	n.secrets.gate, n.secrets.registry, n.secrets.open = n.Gate, n.Registry, n.Gate.OpenSecrets
	n.stored = newStoreConnectors(n.config, n.secrets, log)
	n.stored.gate, n.stored.registry = n.Gate, n.Registry
	s, err := StartRoles(n, "127.0.0.1:0", []Role{RoleAPI})
	must(b, err)
	b.Cleanup(func() { must(b, s.Close()) })

	creds, err := n.Gate.Bootstrap(b.Context())
	must(b, err)
	caller := func(key string) context.Context {
		p, err := n.Gate.Authenticate(b.Context(), key)
		must(b, err)
		return gatehouse.NewContext(b.Context(), &gatehouse.Caller{Principal: p, StepUp: true, Via: gatehouse.ViaAPI})
	}
	admin := caller(creds.Key)
	bot, err := n.Gate.CreatePrincipal(admin, gatehouse.NewPrincipal{
		Name: "bot", Kind: gatehouse.KindAgent, Sponsor: "admin", Roles: []gatehouse.Role{gatehouse.RoleProposer},
	})
	must(b, err)
	ana, err := n.Gate.CreatePrincipal(admin, gatehouse.NewPrincipal{
		Name: "ana", Kind: gatehouse.KindPerson, Roles: []gatehouse.Role{gatehouse.RoleApprover},
	})
	must(b, err)
	link, err := n.Gate.CreateSetupLink(admin, ana.ID)
	must(b, err)
	in, err := n.Gate.RedeemSetupLink(b.Context(), link.Token, gatehouse.Browser{UserAgent: "bench"})
	must(b, err)
	for i := range 1000 {
		_, _, err := n.Gate.Propose(caller(bot.Key), &gatehouse.Proposal{
			ActionType: "price_change", Connector: "shop", Operation: "update",
			Target:         gatehouse.Target{EntityType: "item", EntityRef: fmt.Sprintf("SKU-%09d", i), Version: "7"},
			CurrentState:   `{"currency":"EUR","price":"10.00","title":"Walnut desk, 140 by 70 cm"}`,
			ProposedChange: `{"currency":"EUR","price":"12.50"}`,
			Rationale:      "Supplier raised the cost by 18 percent; the margin falls below the floor of the category.",
			RiskLevel:      gatehouse.L3, ExpiresIn: gatehouse.Span(time.Duration(1+i*37%1380) * time.Minute),
			Context: `{"source":"nightly repricing","supplier":"S-1042"}`, IdempotencyKey: fmt.Sprintf("bench-%09d", i),
		})
		must(b, err)
	}
	return &pages{store, s.http.Handler, ana.Key, in.Token}
}

func (*pages) each(b *testing.B, next func(context.Context) error) {
	b.ReportAllocs()
	for b.Loop() {
		must(b, next(b.Context()))
	}
}

func (w *pages) fromStore() func(context.Context) error {
	f := gatehouse.ActionFilter{Status: gatehouse.StatusPending, Sort: gatehouse.SortUrgency, Limit: 50}
	return func(ctx context.Context) error {
		return w.store.Read(ctx, gatehouse.DefaultTenant, func(tx gatehouse.ReadTx) error {
			page, err := tx.ListActions(f)
			if f.Cursor = page.NextCursor; len(page.Items) == 0 && err == nil {
				return fmt.Errorf("the page is empty")
			}
			return err
		})
	}
}

// shown keeps only the end of an answer, so that the server's allocations are counted.
type shown struct {
	header http.Header
	status int
	end    []byte
}

func (w *shown) Header() http.Header    { return w.header }
func (w *shown) WriteHeader(status int) { w.status = status }
func (w *shown) Write(b []byte) (int, error) {
	w.end = append(w.end[:0], b[max(0, len(b)-1024):]...)
	return len(b), nil
}

func (w *pages) ask(ctx context.Context, to *shown, target, header, value string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
	if err != nil {
		return err
	}
	r.Header.Set(header, value)
	clear(to.header)
	if w.surface.ServeHTTP(to, r); to.status != http.StatusOK {
		return fmt.Errorf("%s: %d: %s", target, to.status, to.end)
	}
	return nil
}

func (w *pages) fromAPI() func(context.Context) error {
	const first = "/api/v1/proposed-actions?sort=urgency&status=pending&limit=50"
	target, to := first, &shown{header: http.Header{}}
	return func(ctx context.Context) error {
		if err := w.ask(ctx, to, target, "Authorization", "Bearer "+w.key); err != nil {
			return err
		}
		var end struct {
			Cursor string `json:"next_cursor"`
		}
		at := len(to.end)
		for at > 0 && to.end[at-1] != ',' {
			at--
		}
		if err := json.Unmarshal(append([]byte{'{'}, to.end[at:]...), &end); err != nil {
			return err
		}
		if target = first; end.Cursor != "" {
			target += "&cursor=" + url.QueryEscape(end.Cursor)
		}
		return nil
	}
}

func (w *pages) fromConsole() func(context.Context) error {
	to := &shown{header: http.Header{}}
	return func(ctx context.Context) error {
		return w.ask(ctx, to, "/inbox", "Cookie", "gatehouse_session="+w.cookie)
	}
}
