// Package servetest speaks to a gate that a test serves.
package servetest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/gate"
)

// Config parses the source of a configuration.
func Config(t testing.TB, source string) *config.Config {
	t.Helper()
	cfg, err := config.Parse("gatehouse.yaml", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// Bootstrap makes the administrator.
func Bootstrap(t testing.TB, g *gate.Gate) *gatehouse.Credentials {
	t.Helper()
	creds, err := g.Bootstrap(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return creds
}

// CallerContext is a context of the principal with the credentials.
func CallerContext(t testing.TB, g *gate.Gate, creds *gatehouse.Credentials) context.Context {
	t.Helper()
	p, err := g.Authenticate(t.Context(), creds.Key)
	if err != nil {
		t.Fatal(err)
	}
	return gatehouse.NewContext(t.Context(), &gatehouse.Caller{Principal: p, StepUp: true, Via: gatehouse.ViaCLI})
}

// MustClient speaks to a server with credentials.
func MustClient(t testing.TB, url string, as gatehouse.Credentials) *client.Client {
	t.Helper()
	c, err := client.New(url, as.Key, client.WithEditToken(as.EditToken))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// NewPrincipal makes a principal on behalf of the administrator, and returns its credentials.
func NewPrincipal(
	t testing.TB, g *gate.Gate, admin *gatehouse.Credentials, name string, kind gatehouse.Kind, roles ...gatehouse.Role,
) *gatehouse.Credentials {
	t.Helper()
	c, err := g.CreatePrincipal(CallerContext(t, g, admin), gatehouse.NewPrincipal{Name: name, Kind: kind, Roles: roles})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// NewClient makes a principal and its client at one of the servers.
func NewClient(
	t testing.TB, g *gate.Gate, url string, admin *gatehouse.Credentials, name string, kind gatehouse.Kind,
	roles ...gatehouse.Role,
) *client.Client {
	t.Helper()
	return MustClient(t, url, *NewPrincipal(t, g, admin, name, kind, roles...))
}

// Propose proposes a price change of an item at the connector crm.
func Propose(t testing.TB, c *client.Client, item string) *gatehouse.Action {
	t.Helper()
	a, _, err := c.Propose(t.Context(), &gatehouse.Proposal{
		ActionType: "price_change", Connector: "crm", Operation: "update",
		Target: gatehouse.Target{EntityType: "item", EntityRef: item}, ProposedChange: `{"price":"1"}`,
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Scrape reads a server's metrics.
func Scrape(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%d, %v", res.StatusCode, err)
	}
	return string(body)
}

// DecideOnly decides the one action that is pending, or will be.
func DecideOnly(t *testing.T, api *client.Client, decision gatehouse.DecisionKind) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		page, err := api.ListActions(t.Context(), gatehouse.ActionFilter{Status: gatehouse.StatusPending})
		if err != nil {
			t.Error(err)
			return
		}
		if len(page.Items) != 1 {
			continue
		}
		a := page.Items[0]
		if _, err := api.Decide(t.Context(), a.ID, gatehouse.Decision{Decision: decision,
			Digest: a.Digest}); err != nil {
			t.Error(err)
		}
		return
	}
	t.Error("nothing is pending")
}

// DecideAtOnce lets everybody approve, and counts those who decided; the rest
// must have been told that the action was already decided.
func DecideAtOnce(t *testing.T, a *gatehouse.Action, people []*client.Client) (decided int) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	start := make(chan struct{})
	for _, person := range people {
		wg.Go(func() {
			<-start
			ans, err := person.Decide(t.Context(), a.ID, gatehouse.Decision{Decision: gatehouse.Approve,
				Digest: a.Digest})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && ans.Code == gatehouse.Decided:
				decided++
			case gatehouse.CodeOf(err) != gatehouse.CodeAlreadyDecided:
				t.Errorf("%+v, %v", ans, err)
			}
		})
	}
	close(start)
	wg.Wait()
	return decided
}

// SettleAll waits until exactly want actions are applied and every leaf of the log has a number.
func SettleAll(t *testing.T, g *gate.Gate, store gatehouse.Store, creds *gatehouse.Credentials, want int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(CallerContext(t, g, creds), time.Minute)
	defer cancel()
	for {
		page, err := g.ListActions(ctx, gatehouse.ActionFilter{
			Status: gatehouse.StatusApplied, Limit: gatehouse.MaxLimit,
		})
		if err != nil {
			t.Fatal(err)
		}
		waiting := 1
		err = store.ViewQueues(ctx, func(q gatehouse.ReadQueues) error {
			leaves, err := q.UnnumberedLeaves(1)
			waiting = len(leaves)
			return err
		})
		if err := errors.Join(err, ctx.Err()); err != nil {
			t.Fatalf("%d of %d applied, %d leaves wait: %v", len(page.Items), want, waiting, err)
		}
		if len(page.Items) == want && waiting == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Ledger is a target outside the gate that counts the calls under each key.
type Ledger struct {
	mu    sync.Mutex
	Calls map[string]int
}

// ServeHTTP counts a call.
func (l *Ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Calls[r.Header.Get("Idempotency-Key")]++
	w.WriteHeader(http.StatusOK)
}
