package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
)

// TestNetSuitePushPath proposes a vendor's cost, approves it, lets NetSuite refuse it because its
// pool is full, and replays the dead letter: the RESTlet gets the account's own names, and the
// receipt has the internal id and when it was applied. The fake has only a RESTlet, and only
// requires that signatures exist: connector/netsuite tests them.
func TestNetSuitePushPath(t *testing.T) {
	t.Parallel()
	var full atomic.Bool
	var got atomic.Pointer[map[string]any]
	full.Store(true)
	account := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var body map[string]any
		switch {
		case r.URL.Query().Get("script") != "customscript_gfs_platform_query" ||
			!strings.HasPrefix(r.Header.Get("Authorization"), `OAuth realm="1234567"`):
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":{"code":"INVALID_LOGIN_ATTEMPT"}}`)
		case full.Load():
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":{"code":"SSS_REQUEST_LIMIT_EXCEEDED","message":"Request Limit Exceeded"}}`)
		case json.NewDecoder(r.Body).Decode(&body) != nil:
			w.WriteHeader(http.StatusBadRequest)
		default:
			got.Store(&body)
			fmt.Fprint(w, `{"ns_internal_id":11,"applied_at":"2026-11-24T04:00:00Z"}`)
		}
	}))
	t.Cleanup(account.Close)
	s, creds := serveNetSuite(t, account.URL, "", "vendor_cost: {}")

	bot := servetest.NewClient(t, s.Gate, s.URL, creds, "bot", gatehouse.KindAgent, gatehouse.RoleProposer)
	a, _, err := bot.Propose(t.Context(), &gatehouse.Proposal{
		ActionType: "bulk_cost_basis", Connector: "netsuite", Operation: "update",
		Target:       gatehouse.Target{EntityType: "vendor_cost", EntityRef: "11/7"},
		CurrentState: `{"cost":3.50}`, ProposedChange: `{"cost":4.25}`,
	})
	must(t, err)
	if a.RiskLevel < gatehouse.L3 {
		t.Errorf("level %d", a.RiskLevel)
	}
	ana := servetest.NewClient(t, s.Gate, s.URL, creds, "ana", gatehouse.KindPerson, gatehouse.RoleApprover)
	if n := servetest.DecideAtOnce(t, a, []*client.Client{ana}); n != 1 {
		t.Fatalf("%d decisions", n)
	}
	awaitStatus(t, ana, a.ID, gatehouse.StatusFailed)
	ops := servetest.NewClient(t, s.Gate, s.URL, creds, "ops", gatehouse.KindPerson, gatehouse.RoleAdmin)
	letters, err := ops.ListDeadLetters(t.Context(), gatehouse.DeadLetterFilter{})
	if err != nil || len(letters.Items) != 1 {
		t.Fatalf("%+v, %v", letters, err)
	}
	letter := letters.Items[0]
	if letter.ErrorCode != "rate_limited" || !letter.ReplaySafe || !strings.Contains(letter.TargetSays,
		"Request Limit") {
		t.Errorf("%+v", letter)
	}

	full.Store(false)
	if _, err := ops.ReplayDeadLetters(t.Context(), gatehouse.ReplayRequest{IDs: []string{letter.ID}}); err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, ana, a.ID, gatehouse.StatusApplied)
	body := *got.Load()
	for name, want := range map[string]string{
		"record_type": "inventoryitem", "ns_internal_id": "11", "fields": "map[purchaseprice:4.25]",
		"expect": "map[purchaseprice:3.50]", "line": "map[key:vendor sublist:itemvendor value:7]", "do": "update",
	} {
		if got := fmt.Sprint(body[name]); got != want {
			t.Errorf("the RESTlet got %s %s, want %s", name, got, want)
		}
	}
	evidence, err := ana.Evidence(t.Context(), a.ID)
	must(t, err)
	last := evidence.Receipts[len(evidence.Receipts)-1]
	id, _ := last.ResponseMetadata.Get("ns_internal_id")
	at, _ := last.ResponseMetadata.Get("applied_at")
	if last.Outcome != gatehouse.ReceiptApplied || last.ExternalID != "11" ||
		id != `"11"` || at != `"2026-11-24T04:00:00Z"` {
		t.Errorf("%+v", last)
	}
	if last.Reversal == nil || last.Reversal.ProposedChange != `{"cost":3.50}` {
		t.Errorf("the reversal is %+v", last.Reversal)
	}
}

// serveNetSuite starts a server with the account behind url. restlet and entities are parts of the
// connector's configuration.
func serveNetSuite(t *testing.T, url, restlet, entities string) (*Server, *gatehouse.Credentials) {
	t.Helper()
	return serveSource(t, fmt.Sprintf(`
secrets: {CK: consumer-key-1, CS: consumer-secret-1, TK: token-id-1, TS: token-secret-1}
connectors:
  netsuite:
    type: netsuite
    account: "1234567"
    restlets_url: %q
    allow_private: true
    auth:
      tba: {consumer_key: {secret: CK}, consumer_secret: {secret: CS}, token: {secret: TK}, token_secret: {secret: TS}}
    restlet: {script: customscript_gfs_platform_query, deploy: customdeploy_gfs_platform_query%s}
    entities: {%s}
dispatch: {hold: 0s, backoff: [20ms]}`, url, restlet, entities))
}

func awaitStatus(t *testing.T, c *client.Client, id string, want gatehouse.Status) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		now, err := c.FindAction(t.Context(), id)
		must(t, err)
		if now.Status == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not %s within a minute but %s", want, now.Status)
		}
	}
}
