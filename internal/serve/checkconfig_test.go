package serve

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
)

// TestServersOwnConfiguration: an operator sees the checks of the tenant's own targets, without
// secrets; checks that concern no connector are shown in the default tenant only; and several
// requests share one call of a target.
func TestServersOwnConfiguration(t *testing.T) {
	t.Parallel()
	var connections atomic.Int32
	up := httptest.NewUnstartedServer(http.NotFoundHandler())
	up.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	up.Start()
	defer up.Close()
	file := filepath.Join(t.TempDir(), "gatehouse.yaml")
	src := `
secrets: {TOKEN: hidden-value, SPARE: other-hidden-value}
connectors:
  crm: {type: http, base_url: "` + up.URL + `", allow_private: true, auth: {bearer: {secret: TOKEN}},
    operations: {update: {method: PATCH, path: /x, floor: 1}}}
  shop: {type: sql, dsn: "sqlite:/hidden-value/gone.db", tenants: [default, acme],
    entities: {item: {table: items, key: sku}}}
  erp: {type: worker, tenants: [acme], operations: {print: {}}}
`
	must(t, os.WriteFile(file, []byte(src), 0o600))
	cfg, err := config.Load(file)
	must(t, err)
	checker := &StoreChecker{own: newOwnConfiguration(newStoreConnectors(cfg, nil, slog.New(slog.DiscardHandler)))}
	as := func(tenant string, role gatehouse.Role) context.Context {
		return gatehouse.NewContext(t.Context(), &gatehouse.Caller{
			Principal: &gatehouse.Principal{ID: "prn_1", Tenant: tenant, Roles: []gatehouse.Role{role}},
		})
	}
	found := func(tenant string) string {
		t.Helper()
		c, err := checker.CheckConfiguration(as(tenant, gatehouse.RoleOperator))
		must(t, err)
		var names []string
		for _, one := range c.Checks {
			names = append(names, one.Name+"="+one.Result)
			if strings.Contains(one.Detail, "hidden-value") {
				t.Errorf("%s: %s", one.Name, one.Detail)
			}
		}
		return strings.Join(names, " ")
	}
	if got, want := found(gatehouse.DefaultTenant),
		"connector crm=ok connector shop=fail secret SPARE=note secrets=ok policy=ok"; got != want {
		t.Errorf("default gets %q, want %q", got, want)
	}
	if got, want := found("acme"), "connector erp=ok connector shop=fail"; got != want {
		t.Errorf("acme gets %q, want %q", got, want)
	}
	// The fake counts a connection a moment after the caller has it.
	for deadline := time.Now().Add(10 * time.Second); connections.Load() == 0 && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("the target was called %d times", n)
	}
	if _, err := checker.CheckConfiguration(as("acme", gatehouse.RoleAuditor)); gatehouse.CodeOf(
		err) != gatehouse.CodeRoleRequired {
		t.Errorf("an auditor: %v", err)
	}
}

// TestSlowConfigurationCheck: a request that waits for the checks of another request ends with its own context.
func TestSlowConfigurationCheck(t *testing.T) {
	t.Parallel()
	asked, answer := make(chan struct{}), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(asked); <-answer }))
	defer slow.Close()
	cfg := servetest.Config(t, `models: {m: {type: openai, allow_private: true, base_url: "`+slow.URL+`"}}`)
	own := newOwnConfiguration(newStoreConnectors(cfg, nil, slog.New(slog.DiscardHandler)))
	first := make(chan error, 1)
	go func() {
		_, _, err := own.results(t.Context())
		first <- err
	}()
	<-asked
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	time.AfterFunc(2*time.Second, func() { close(answer) })
	if _, _, err := own.results(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the second request: %v", err)
	}
	must(t, <-first)
}
