package serve

import (
	"net/http"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/config"
	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
)

// TestReplicasShareTheRateLimit lets a principal take turns at two servers on one PostgreSQL: both
// together allow the configured limit plus the documented slack, and a restart does not refill it.
func TestReplicasShareTheRateLimit(t *testing.T) {
	t.Parallel()
	const burst, slack = 100, 10 // of each replica
	dsn := pgtest.Database(t)
	cfg := &config.Config{RateLimit: config.RateLimit{PerSecond: 0.001, Burst: burst}}
	one, two := replica(t, dsn, cfg), replica(t, dsn, cfg)
	creds := servetest.Bootstrap(t, one.Gate)
	key := func(name string) string {
		return servetest.NewPrincipal(t, one.Gate, creds, name, gatehouse.KindAgent, gatehouse.RoleProposer).Key
	}
	bot, other := key("bot"), key("other")
	passed := func(key string, n int, servers ...*Server) (count int) {
		t.Helper()
		for i := range n {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
				servers[i%len(servers)].URL+"/api/v1/whoami", nil)
			must(t, err)
			r.Header.Set("Authorization", "Bearer "+key)
			answer, err := http.DefaultClient.Do(r)
			must(t, err)
			_ = answer.Body.Close()
			switch answer.StatusCode {
			case http.StatusOK:
				count++
			case http.StatusTooManyRequests:
			default:
				t.Fatal(answer.Status)
			}
		}
		return count
	}
	if n := passed(bot, 3*burst, one, two); n < burst || n > burst+2*slack {
		t.Errorf("%d passed of two replicas, want %d to %d", n, burst, burst+2*slack)
	}
	must(t, one.Close())
	again := replica(t, dsn, cfg)
	if n := passed(bot, 2*burst, again); n > slack {
		t.Errorf("%d passed after a restart, want at most %d", n, slack)
	}
	if n := passed(other, burst/2, again, two); n != burst/2 {
		t.Errorf("%d passed of another principal, want %d", n, burst/2)
	}
}
