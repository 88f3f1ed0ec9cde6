package netsuite_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/connector"
	"github.com/gatehouse-dev/gatehouse/connector/connectortest"
	"github.com/gatehouse-dev/gatehouse/connector/netsuite"
)

// vendors adds vendors 1000, 1001, … with a credit limit of 10 to the account.
func (s *script) vendors(n int) {
	for i := range n {
		s.do(map[string]any{"command": "put", "type": "vendor", "id": strconv.Itoa(1000 + i), "values": map[string]any{
			"companyname": fmt.Sprint("V", i), "creditlimit": 10, "phone": "1", "isinactive": false,
		}})
	}
}

// bulk raises the credit limits of the first n vendors to 20, 21, ….
func bulk(n int) connector.Call {
	refs := make([]string, n)
	var before, after []string
	for i := range n {
		refs[i] = strconv.Itoa(1000 + i)
		before = append(before, fmt.Sprintf(`"%s":{"credit_limit":"10.00"}`, refs[i]))
		after = append(after, fmt.Sprintf(`"%s":{"credit_limit":"%d.00"}`, refs[i], 20+i))
	}
	call := update("{"+strings.Join(before, ",")+"}", "{"+strings.Join(after, ",")+"}")
	call.Operation, call.Target = "bulk_update", gatehouse.Target{EntityType: "vendor", EntityRefs: refs}
	return call
}

// limits are the credit limits of the first n vendors.
func (s *script) limits(n int) (out []string) {
	for i := range n {
		row := s.do(map[string]any{"command": "row", "type": "vendor", "id": strconv.Itoa(1000 + i)})
		out = append(out, fmt.Sprint(row.(map[string]any)["values"].(map[string]any)["creditlimit"]))
	}
	return out
}

func (s *script) wantLimits(t *testing.T, n int) {
	t.Helper()
	for i, got := range s.limits(n) {
		if got != strconv.Itoa(20+i) {
			t.Errorf("vendor %d has the limit %s", 1000+i, got)
		}
	}
	if saves := s.effects(); saves != n {
		t.Errorf("%d saves, want %d", saves, n)
	}
}

func (s *script) set(id string, values map[string]any) {
	s.do(map[string]any{"command": "set", "type": "vendor", "id": id, "values": values})
}

// bulkAccount is an account with Gatehouse's RESTlet and n vendors.
func bulkAccount(t *testing.T, n int) (*account, *script, *netsuite.Connector) {
	t.Helper()
	a := newAccount(t)
	s := a.deploy()
	s.vendors(n)
	return a, s, newConnector(t, a.ours())
}

// loseAnswer ends the connection of the next write, with applied after the write took effect.
func (a *account) loseAnswer(applied bool) {
	a.applied = applied
	a.fault = func(w http.ResponseWriter, _ *http.Request) bool {
		a.fault = nil
		if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
			conn.Close()
		}
		return true
	}
}

func TestConformanceOfBulkUpdate(t *testing.T) {
	t.Parallel()
	connectortest.Run(t, connectortest.Harness{Skip: sameCredentials, New: func(t *testing.T) *connectortest.Fixture {
		a, s, c := bulkAccount(t, 3)
		locked := func(fn func()) { a.set(func(*account) { fn() }) }
		return &connectortest.Fixture{
			Connector: c, Call: bulk(3),
			Disturb: func(*testing.T) {
				locked(func() {
					for i := range 3 {
						s.set(strconv.Itoa(1000+i), map[string]any{"creditlimit": 7})
					}
				})
			},
			Read: func(*testing.T) (j gatehouse.JSON) {
				locked(func() { j = gatehouse.MustJSON(s.limits(3)) })
				return j
			},
			Effects: func(t *testing.T) (n int) {
				locked(func() { n = s.effects() })
				if n%3 != 0 {
					t.Errorf("%d saves of 3 lines each", n)
				}
				return n / 3
			},
			Server: a.Server, Field: "creditlimit", Value: [2]string{"20.00", "29.00"},
			Secrets: []string{certificatePEM()},
		}
	}})
}

// TestBulkUpdate makes the most lines that there can be, with more than one request. The receipt has
// each line, and the reversal restores all of them.
func TestBulkUpdate(t *testing.T) {
	t.Parallel()
	a, s, c := bulkAccount(t, 200)
	call := bulk(200)
	state, err := c.Check(t.Context(), call)
	if err != nil || !state.Matches || state.Unchecked {
		t.Errorf("Check: %+v, %v", state, err)
	}
	res, err := c.Execute(t.Context(), call)
	connectortest.Must(t, err)
	s.wantLimits(t, 200)
	if n := len(a.writes()); n != 2 {
		t.Errorf("%d requests", n)
	}
	lines, _ := res.ResponseMetadata.Get("lines")
	all, err := lines.Elements()
	if err != nil || len(all) != 200 {
		t.Fatalf("%d lines, %v", len(all), err)
	}
	for i, line := range all {
		id, _ := line.Get("ns_internal_id")
		at, _ := line.Get("applied_at")
		when, _ := at.Text()
		if _, err := time.Parse(time.RFC3339, when); err != nil || id != gatehouse.StringJSON(strconv.Itoa(1000+i)) {
			t.Fatalf("line %d: %s", i, line)
		}
	}
	finding, again, err := c.ReadBack(t.Context(), call)
	if err != nil || finding != connector.Present || again.Reversal == nil {
		t.Errorf("read back %v, %+v, %v", finding, again.Reversal, err)
	}
	if res.Reversal == nil {
		t.Fatal("no reversal")
	}
	back := call
	back.IdempotencyKey, back.Digest = "act_2:1", gatehouse.NewDigest(`"back"`)
	back.Operation, back.Target = res.Reversal.Operation, res.Reversal.Target
	back.CurrentState, back.ProposedChange = res.Reversal.CurrentState, res.Reversal.ProposedChange
	if _, err := c.Execute(t.Context(), back); err != nil {
		t.Fatal(err)
	}
	for _, limit := range s.limits(200) {
		if limit != "10" {
			t.Fatalf("the limits are %v", s.limits(200))
		}
	}
}

// TestBulkAnswerIsLost: the answer to the second request is lost, before or after its lines were saved.
func TestBulkAnswerIsLost(t *testing.T) {
	t.Parallel()
	for _, applied := range []bool{false, true} {
		a, s, c := bulkAccount(t, 9)
		s.do(map[string]any{"command": "limit", "units": 165 + 3*28}) // a request makes four lines
		requests := 0
		a.applied = applied
		a.fault = func(w http.ResponseWriter, r *http.Request) bool {
			if requests++; requests != 2 {
				return false
			}
			a.loseAnswer(applied)
			return a.fault(w, r)
		}
		call := bulk(9)
		res, err := c.Execute(t.Context(), call)
		if e := kindOf(t, err); e.Kind != connector.Ambiguous || e.Code != "connection_lost" ||
			!strings.Contains(e.Detail, "4 of 9 lines are applied, 5 were not tried") {
			t.Error(err)
		}
		if lines, _ := res.ResponseMetadata.Get("lines"); strings.Count(string(lines), "applied_at") != 4 {
			t.Errorf("the receipt has %s", res.ResponseMetadata)
		}
		if n := s.effects(); n != map[bool]int{false: 4, true: 8}[applied] {
			t.Errorf("%d saves", n)
		}
		call.Attempt = 2
		if finding, _, err := c.ReadBack(t.Context(), call); finding != connector.Inconclusive || err != nil {
			t.Errorf("read back %v, %v", finding, err)
		}
		if res, err = c.Execute(t.Context(), call); err != nil || res.Reversal == nil {
			t.Errorf("%+v, %v", res.Reversal, err)
		}
		s.wantLimits(t, 9)
	}
}

// TestBulkRequestsAreBounded: an attempt makes at most ten requests, and the next attempt continues.
func TestBulkRequestsAreBounded(t *testing.T) {
	t.Parallel()
	a, s, c := bulkAccount(t, 12)
	s.do(map[string]any{"command": "limit", "units": 165})
	call := bulk(12)
	_, err := c.Execute(t.Context(), call)
	if e := kindOf(t, err); e.Kind != connector.Ambiguous || e.Code != "incomplete" {
		t.Error(err)
	}
	if n, saves := len(a.writes()), s.effects(); n != 10 || saves != 10 {
		t.Errorf("%d requests, %d saves", n, saves)
	}
	call.Attempt = 2
	if _, err := c.Execute(t.Context(), call); err != nil {
		t.Error(err)
	}
	s.wantLimits(t, 12)
}

// TestBulkTimeIsNearlyOver: the connector makes no further request that could be cut off.
func TestBulkTimeIsNearlyOver(t *testing.T) {
	t.Parallel()
	a, s, c := bulkAccount(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
	defer cancel()
	s.do(map[string]any{"command": "limit", "units": 165})
	_, err := c.Execute(ctx, bulk(3))
	if e := kindOf(t, err); e.Kind == connector.Terminal {
		t.Error(err)
	}
	if n := len(a.writes()); n > 1 {
		t.Errorf("%d requests", n)
	}
}

// TestBulkEndsWithin: NetSuite ends the script after a save. The line stays in doubt, and the record
// decides.
func TestBulkEndsWithin(t *testing.T) {
	t.Parallel()
	_, s, c := bulkAccount(t, 6)
	s.do(map[string]any{"command": "endAfterSaves", "type": "vendor", "saves": 3})
	call := bulk(6)
	for attempt, want := range []string{"script_sss_time_limit_exceeded", "in_doubt", "in_doubt"} {
		call.Attempt = attempt + 1
		_, err := c.Execute(t.Context(), call)
		if e := kindOf(t, err); e.Kind != connector.Ambiguous || e.Code != want {
			t.Errorf("attempt %d: %v", call.Attempt, err)
		}
	}
	s.wantLimits(t, 6)
	finding, res, err := c.ReadBack(t.Context(), call)
	if err != nil || finding != connector.Present || res.Reversal == nil {
		t.Errorf("read back %v, %+v, %v", finding, res, err)
	}
	if lines, _ := res.ResponseMetadata.Get("lines"); strings.Count(string(lines), "ns_internal_id") != 6 {
		t.Errorf("%s", lines)
	}
	s.set("1002", map[string]any{"creditlimit": 7})
	if finding, _, err := c.ReadBack(t.Context(), call); err != nil || finding != connector.Inconclusive {
		t.Errorf("with another value in the line in doubt: %v, %v", finding, err)
	}
}

// TestBulkWithABadLine: the other lines are applied, and the receipt names the bad one. The failure is
// ambiguous, and terminal after an attempt that applies no further line.
func TestBulkWithABadLine(t *testing.T) {
	t.Parallel()
	_, s, c := bulkAccount(t, 4)
	s.set("1002", map[string]any{"creditlimit": 11})
	call := bulk(4)
	state, err := c.Check(t.Context(), call)
	if err != nil || state.Matches || state.Expected != `{"1002":{"credit_limit":"10.00"}}` ||
		state.Actual != `{"1002":{"credit_limit":11}}` {
		t.Errorf("Check: %+v, %v", state, err)
	}
	for attempt, want := range []connector.Kind{connector.Ambiguous, connector.Terminal} {
		call.Attempt = attempt + 1
		res, err := c.Execute(t.Context(), call)
		if e := kindOf(t, err); e.Kind != want || e.Code != "partly_applied" ||
			!strings.Contains(e.Detail, "3 of 4 lines are applied; 1002: target_changed") {
			t.Error(err)
		}
		lines, _ := res.ResponseMetadata.Get("lines")
		all, _ := lines.Elements()
		if code, _ := all[2].Get("code"); code != `"target_changed"` || res.Reversal != nil {
			t.Errorf("%s, %+v", lines, res.Reversal)
		}
	}
	if finding, _, err := c.ReadBack(t.Context(), call); err != nil || finding != connector.Inconclusive {
		t.Errorf("read back %v, %v", finding, err)
	}
	s.set("1002", map[string]any{"creditlimit": 10})
	call.Attempt = 3
	if _, err := c.Execute(t.Context(), call); err != nil {
		t.Error(err)
	}
	s.wantLimits(t, 4)
}

// TestBulkTellsOtherValues: a script of the account changes what is saved.
func TestBulkTellsOtherValues(t *testing.T) {
	t.Parallel()
	_, s, c := bulkAccount(t, 2)
	s.do(map[string]any{"command": "userEvent", "type": "vendor", "values": map[string]any{"creditlimit": 500}})
	_, err := c.Execute(t.Context(), bulk(2))
	if e := kindOf(t, err); e.Code != "not_as_approved" || e.Kind != connector.Ambiguous ||
		!strings.Contains(e.Detail, "500") {
		t.Error(err)
	}
	if finding, _, err := c.ReadBack(t.Context(), bulk(2)); err != nil || finding != connector.Inconclusive {
		t.Errorf("read back %v, %v", finding, err)
	}
}

// TestBulkKeyOfOtherLines: a key that was used for other lines changes nothing.
func TestBulkKeyOfOtherLines(t *testing.T) {
	t.Parallel()
	_, s, c := bulkAccount(t, 3)
	if _, err := c.Execute(t.Context(), bulk(2)); err != nil {
		t.Fatal(err)
	}
	other := bulk(2)
	other.Digest = gatehouse.NewDigest(`"other"`)
	other.ProposedChange = canonical(`{"1000":{"credit_limit":99},"1001":{"credit_limit":99}}`)
	if e := kindOf(t, executeError(t, c, other)); e.Kind != connector.Terminal || e.Code != "idempotency_conflict" {
		t.Error(e)
	}
	if finding, _, err := c.ReadBack(t.Context(), other); finding == connector.Present || err != nil {
		t.Errorf("read back %v, %v", finding, err)
	}
	same := bulk(2)
	same.Digest = other.Digest
	if finding, _, err := c.ReadBack(t.Context(), same); finding == connector.Present || err != nil {
		t.Errorf("read back of another action with the same values: %v, %v", finding, err)
	}
	s.wantLimits(t, 2)
}

func executeError(t *testing.T, c *netsuite.Connector, call connector.Call) error {
	t.Helper()
	_, err := c.Execute(t.Context(), call)
	return err
}

// TestBulkVendorCosts changes two vendors' prices of one item, with a code of hostile text.
func TestBulkVendorCosts(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	s := a.deploy()
	c := newConnector(t, a.ours())
	s.do(map[string]any{
		"command": "put", "type": "inventoryitem", "id": "12", "values": map[string]any{},
		"sublists": map[string]any{"itemvendor": []any{
			map[string]any{"vendor": "7", "purchaseprice": 3.5}, map[string]any{"vendor": "8", "purchaseprice": 4},
		}},
	})
	code := `"}],"x\r\n</script>${1}'; DROP ` + "\u202e"
	call := bulk(0)
	call.Target = gatehouse.Target{EntityType: "vendor_cost", EntityRefs: []string{"12/7", "12/8"}}
	call.CurrentState = canonical(`{"12/7":{"cost":"3.5"},"12/8":{"cost":4}}`)
	call.ProposedChange = canonical(`{"12/7":{"cost":"3.60000"},"12/8":{"cost":"4.1","vendor_code":` +
		string(gatehouse.StringJSON(code)) + `}}`)
	connectortest.Must(t, c.Validate(call))
	if state, err := c.Check(t.Context(), call); err != nil || !state.Matches {
		t.Errorf("Check: %+v, %v", state, err)
	}
	if _, err := c.Execute(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	var row struct {
		Sublists struct {
			ItemVendor []struct {
				PurchasePrice json.Number `json:"purchaseprice"`
				VendorCode    string      `json:"vendorcode"`
			} `json:"itemvendor"`
		} `json:"sublists"`
	}
	connectortest.Must(t, json.Unmarshal([]byte(s.read(t, a, "inventoryitem", "12")), &row))
	lines := row.Sublists.ItemVendor
	if lines[0].PurchasePrice != "3.6" || lines[1].PurchasePrice != "4.1" || lines[1].VendorCode != code {
		t.Errorf("%+v", lines)
	}
}

// TestBulkAnswers: what other answers to a bulk update prove.
func TestBulkAnswers(t *testing.T) {
	t.Parallel()
	object := func(pairs ...any) map[string]any {
		out := map[string]any{"protocol": "gatehouse/1"}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i].(string)] = pairs[i+1]
		}
		return out
	}
	refused := object("outcome", "refused", "code", "CLOSED_TRAN_PRD")
	for name, c := range map[string]struct {
		status int
		answer any
		kind   connector.Kind
		code   string
	}{
		"an error that may hide saved lines": {400, object("error", map[string]any{"code": "RCRD_DSNT_EXIST"}),
			connector.Ambiguous, "target_changed"},
		"more lines than were sent": {200, object("outcome", "page", "lines", []any{refused, refused, refused}),
			connector.Ambiguous, "answer_unreadable"},
		"a page of nothing": {200, object("outcome", "page", "lines", []any{}), connector.Transient, "incomplete"},
		"an older RESTlet": {200, object("outcome", "refused", "code", "invalid", "detail", "cannot do bulk_update"),
			connector.Terminal, "refused"},
		"little usage": {200, object("outcome", "refused", "code", "governance"), connector.Transient, "usage_limit"},
		"a line without an outcome": {200, object("outcome", "page", "lines", []any{refused, object()}),
			connector.Ambiguous, "answer_unreadable"},
		"refused lines": {200, object("outcome", "page", "lines", []any{refused, refused}),
			connector.Terminal, "period_closed"},
		"another protocol": {200, map[string]any{"outcome": "page", "lines": []any{refused}},
			connector.Ambiguous, "restlet_protocol"},
	} {
		a := newAccount(t)
		a.script = func(*account, string, map[string]any, map[string]string) (int, any) { return c.status, c.answer }
		err := executeError(t, newConnector(t, a.ours()), bulk(2))
		if e := kindOf(t, err); e.Kind != c.kind || e.Code != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The account is out of reach after a first request that reached it.
	a := newAccount(t)
	a.script = func(a *account, _ string, _ map[string]any, _ map[string]string) (int, any) {
		_ = a.Listener.Close()
		return 200, object("outcome", "page", "lines", []any{refused})
	}
	err := executeError(t, newConnector(t, a.ours()), bulk(2))
	if e := kindOf(t, err); e.Kind != connector.Transient || e.Code != "unreachable" {
		t.Error(err)
	}
}
