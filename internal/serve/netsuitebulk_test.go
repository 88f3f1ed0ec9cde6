package serve

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/client"
	"github.com/gatehouse-dev/gatehouse/internal/servetest"
)

// bulkRESTlet answers as Gatehouse's RESTlet does, two lines at a time: connector/netsuite tests the
// script itself.
type bulkRESTlet struct {
	mu     sync.Mutex
	costs  map[string]string // by ITEM/VENDOR
	kept   map[string]object // by the line's key
	closed string            // the line whose period is closed
	saves  int
}

type object = map[string]any

func (f *bulkRESTlet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := r.URL.Query()
	lines := []object{}
	switch {
	case r.Method == http.MethodPost:
		lines = f.update(r)
	case q.Get("do") == "read":
		for ref := range strings.SplitSeq(q.Get("refs"), ",") {
			lines = append(lines, object{"outcome": "found", "fields": object{"purchaseprice": f.costs[ref]}})
		}
	default:
		count, _ := strconv.Atoi(q.Get("count"))
		for i := range min(count, 3) {
			line := f.kept[fmt.Sprintf("%s-%d", q.Get("idempotency_key"), i)]
			if line == nil {
				line = object{"protocol": "gatehouse/1", "outcome": "none"}
			}
			lines = append(lines, line)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(object{"protocol": "gatehouse/1", "outcome": "page", "lines": lines})
}

func (f *bulkRESTlet) update(r *http.Request) (out []object) {
	var body struct {
		Do, Digest string
		Key        string `json:"idempotency_key"`
		Offset     int
		Lines      []struct {
			ID     string `json:"ns_internal_id"`
			Line   struct{ Value string }
			Fields map[string]string
		}
	}
	if json.NewDecoder(r.Body).Decode(&body) != nil || body.Do != "bulk_update" {
		return nil
	}
	for i := body.Offset; i < min(body.Offset+2, len(body.Lines)); i++ {
		line, key := body.Lines[i], fmt.Sprintf("%s-%d", body.Key, i)
		ref := line.ID + "/" + line.Line.Value
		if found := maps.Clone(f.kept[key]); found != nil {
			found["replayed"] = true
			out = append(out, found)
			continue
		}
		if ref == f.closed {
			out = append(out, object{"protocol": "gatehouse/1", "outcome": "refused", "code": "CLOSED_TRAN_PRD",
				"detail": "the period is closed"})
			continue
		}
		f.kept[key] = object{
			"protocol": "gatehouse/1", "outcome": "applied", "digest": body.Digest, "ns_internal_id": line.ID,
			"before": object{"purchaseprice": f.costs[ref]}, "after": line.Fields, "applied_at": "2026-11-24T04:00:00Z",
		}
		f.costs[ref] = line.Fields["purchaseprice"]
		f.saves++
		out = append(out, f.kept[key])
	}
	return out
}

func (f *bulkRESTlet) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *bulkRESTlet) want(t *testing.T, saves int, costs ...string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if got := []string{f.costs["11/7"], f.costs["11/8"], f.costs["12/7"]}; fmt.Sprint(got) != fmt.Sprint(costs) ||
		f.saves != saves {
		t.Errorf("the costs are %v after %d saves, want %v after %d", got, f.saves, costs, saves)
	}
}

// approveBulk lets people approve an action of level 5, who confirm the number of records.
func approveBulk(t *testing.T, a *gatehouse.Action, people ...*client.Client) {
	t.Helper()
	for _, person := range people {
		_, err := person.Decide(t.Context(), a.ID, gatehouse.Decision{
			Decision: gatehouse.Approve, Digest: a.Digest, Confirm: strconv.Itoa(len(a.Target.EntityRefs)),
		})
		must(t, err)
	}
}

// TestNetSuiteBulk approves three vendor costs at once, of which NetSuite refuses one. The action is
// unknown, not failed, until a replay makes the missing line alone. One reversal restores all three.
func TestNetSuiteBulk(t *testing.T) {
	t.Parallel()
	f := &bulkRESTlet{
		costs: map[string]string{"11/7": "3.5", "11/8": "4", "12/7": "9.99"}, kept: map[string]object{}, closed: "12/7",
	}
	account := httptest.NewServer(f)
	t.Cleanup(account.Close)
	s, creds := serveNetSuite(t, account.URL, ", protocol: gatehouse", "vendor_cost: {}")
	bot := servetest.NewClient(t, s.Gate, s.URL, creds, "bot", gatehouse.KindAgent, gatehouse.RoleProposer)
	ana := servetest.NewClient(t, s.Gate, s.URL, creds, "ana", gatehouse.KindPerson, gatehouse.RoleApprover)
	ben := servetest.NewClient(t, s.Gate, s.URL, creds, "ben", gatehouse.KindPerson, gatehouse.RoleApprover)
	ops := servetest.NewClient(t, s.Gate, s.URL, creds, "ops", gatehouse.KindPerson, gatehouse.RoleAdmin)

	a, _, err := bot.Propose(t.Context(), &gatehouse.Proposal{
		ActionType: "bulk_cost_basis", Connector: "netsuite", Operation: "bulk_update",
		Target:         gatehouse.Target{EntityType: "vendor_cost", EntityRefs: []string{"11/7", "11/8", "12/7"}},
		CurrentState:   `{"11/7":{"cost":3.50},"11/8":{"cost":4},"12/7":{"cost":9.99}}`,
		ProposedChange: `{"11/7":{"cost":3.60},"11/8":{"cost":4.10},"12/7":{"cost":10.25}}`,
	})
	must(t, err)
	if a.RiskLevel != gatehouse.L5 {
		t.Errorf("level %d", a.RiskLevel)
	}
	approveBulk(t, a, ana, ben)
	awaitStatus(t, ana, a.ID, gatehouse.StatusUnknown)
	f.want(t, 2, "3.60", "4.10", "9.99")
	letters, err := ops.ListDeadLetters(t.Context(), gatehouse.DeadLetterFilter{})
	if err != nil || len(letters.Items) != 1 {
		t.Fatalf("%+v, %v", letters, err)
	}
	if l := letters.Items[0]; l.ErrorCode != "partly_applied" || !l.ReplaySafe ||
		!strings.Contains(l.Error, "2 of 3 lines are applied; 12/7: period_closed") {
		t.Errorf("%+v", l)
	}

	f.set(func() { f.closed = "" })
	replay := gatehouse.ReplayRequest{IDs: []string{letters.Items[0].ID}}
	if _, err := ops.ReplayDeadLetters(t.Context(), replay); err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, ana, a.ID, gatehouse.StatusApplied)
	f.want(t, 3, "3.60", "4.10", "10.25")
	evidence, err := ana.Evidence(t.Context(), a.ID)
	must(t, err)
	lines, _ := evidence.Receipts[len(evidence.Receipts)-1].ResponseMetadata.Get("lines")
	const line = `{"applied_at":"2026-11-24T04:00:00Z","entity_ref":"12/7","ns_internal_id":"12"}]`
	if !strings.HasSuffix(string(lines), line) || strings.Count(string(lines), "applied_at") != 3 {
		t.Errorf("the receipt has %s", lines)
	}

	back, err := ops.Reverse(t.Context(), a.ID, gatehouse.ReverseRequest{})
	must(t, err)
	approveBulk(t, back, ana, ben)
	awaitStatus(t, ana, a.ID, gatehouse.StatusReversed)
	f.want(t, 6, "3.5", "4", "9.99")
}
