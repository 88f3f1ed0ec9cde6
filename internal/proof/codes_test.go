package proof

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// provocation provokes one code. prepare does the preparation and returns the
// call that gets the code.
type provocation struct {
	// members are the members that the contract defines for the code.
	members []string
	prepare func(t *testing.T, w *codeWorld) func() answer
}

// codeWorld is a world with the people for the provocations.
type codeWorld struct {
	*world
	ana, ben *person
}

func (w *codeWorld) pending(t *testing.T, more ...object) *gatehouse.Action {
	t.Helper()
	return w.agent.propose(t, price(w.sku(), "12.50", more...))
}

func (w *codeWorld) applied(t *testing.T) *gatehouse.Action {
	t.Helper()
	a := w.pending(t)
	must(t, w.ana.decide(a, "approved"), 200, "decided")
	w.oneEffect(t, a)
	return a
}

// provocations has every code of the table, except those that TestCodes leaves
// to other tests. No request to a healthy server gets busy or internal, so for
// these the test breaks the server's store from outside: it holds the file's
// write lock, or removes a table.
var provocations = map[gatehouse.Code]provocation{
	gatehouse.CodeMalformed: {[]string{"pointer"}, func(_ *testing.T, w *codeWorld) func() answer {
		return func() answer { return w.agent.post("/proposed-actions", `{"action_type":"a","action_type":"b"}`) }
	}},
	gatehouse.CodeInvalid: {[]string{"errors"}, func(_ *testing.T, w *codeWorld) func() answer {
		return func() answer { return w.agent.post("/proposed-actions", price("SKU-0", "1", object{"risk_level": 9})) }
	}},
	gatehouse.CodeUnsupported: {nil, func(_ *testing.T, w *codeWorld) func() answer {
		return func() answer {
			return w.agent.post(
				"/proposed-actions",
				price("SKU-0", "1", object{"callback": object{"type": "nats", "subject": "x.y"}}),
			)
		}
	}},
	gatehouse.CodeBodyTooLarge: {nil, func(_ *testing.T, w *codeWorld) func() answer {
		return func() answer {
			return w.agent.post("/proposed-actions", price("SKU-0", "1", object{"rationale": strings.Repeat("x", 1<<20)}))
		}
	}},
	gatehouse.CodeUnauthenticated: {nil, func(_ *testing.T, w *codeWorld) func() answer {
		return func() answer { return (&person{gate: w.gate, key: "gth_nobody"}).get("/proposed-actions") }
	}},
	gatehouse.CodeRoleRequired: {[]string{"roles"}, func(t *testing.T, w *codeWorld) func() answer {
		a := w.pending(t)
		return func() answer { return w.agent.decide(a, "approved") }
	}},
	gatehouse.CodeEditTokenRequired: {nil, func(t *testing.T, w *codeWorld) func() answer {
		a := w.pending(t)
		return func() answer { return (&person{gate: w.gate, key: w.ana.key}).decide(a, "approved") }
	}},
	gatehouse.CodeConfirmation: {[]string{"prompt"}, func(t *testing.T, w *codeWorld) func() answer {
		a := w.pending(t, object{"action_type": "create_item"})
		return func() answer { return w.ana.decide(a, "approved") }
	}},
	gatehouse.CodeSelfApproval: {nil, func(t *testing.T, w *codeWorld) func() answer {
		a := w.pending(t, object{"on_behalf_of": w.ana.name})
		return func() answer { return w.ana.decide(a, "approved") }
	}},
	gatehouse.CodeSenderNotAllowed: {nil, func(t *testing.T, w *codeWorld) func() answer {
		other := w.admin.create(t, "other-service", "service", "proposer")
		w.workflow(t, "asking", "steps: [{id: word, uses: wait, with: {event: go, from: [starter]}}]")
		res := w.agent.post("/workflows/asking/runs", object{})
		if res.status != 201 {
			t.Fatalf("start: %s", res)
		}
		until(t, "run that waits", func() bool {
			return w.agent.get("/runs/"+res.str("id")).str("status") == "waiting"
		})
		return func() answer { return other.post("/runs/"+res.str("id")+"/signals", object{"name": "go"}) }
	}},
	gatehouse.CodeWorkerNotAllowed: {nil, func(t *testing.T, w *codeWorld) func() answer {
		other := w.admin.create(t, "other-worker", "service", "worker")
		return func() answer { return other.post("/steps/lease", object{"tools": []string{"fax"}}) }
	}},
	gatehouse.CodeBadToken: {nil, func(_ *testing.T, w *codeWorld) func() answer {
		return func() answer { return w.ana.post("/reviews/rev_0/approve?token=nothing", object{}) }
	}},
	gatehouse.CodeNotFound: {nil, func(_ *testing.T, w *codeWorld) func() answer {
		return func() answer { return w.ana.get("/proposed-actions/act_nothing") }
	}},
	gatehouse.CodeAmbiguousID: {[]string{"candidates"}, func(t *testing.T, w *codeWorld) func() answer {
		// An id begins with the time, so two new ids begin with the same
		// digits, unless a minute ends between them.
		const digits = len("act_") + gatehouse.MinIDDigits
		id := w.pending(t).ID
		for next := w.pending(t).ID; next[:digits] != id[:digits]; next = w.pending(t).ID {
			id = next
		}
		return func() answer { return w.ana.get("/proposed-actions/" + id[:digits]) }
	}},
	gatehouse.CodeMethodNotAllowed: {nil, func(_ *testing.T, w *codeWorld) func() answer {
		return func() answer { return w.ana.call("DELETE", "/proposed-actions", nil) }
	}},
	gatehouse.CodeAlreadyDecided: {[]string{"current_status", "decided_by", "decided_at"},
		func(t *testing.T, w *codeWorld) func() answer {
			a := w.applied(t)
			return func() answer { return w.ben.decide(a, "approved") }
		}},
	gatehouse.CodeNotAwaitingApproval: {[]string{"current_status"}, func(t *testing.T, w *codeWorld) func() answer {
		a := w.applied(t)
		return func() answer { return w.ben.short(a, "reject") }
	}},
	gatehouse.CodeDigestMismatch: {nil, func(t *testing.T, w *codeWorld) func() answer {
		a, other := w.pending(t), w.pending(t)
		return func() answer { return w.ana.decide(a, "approved", object{"digest": other.Digest}) }
	}},
	gatehouse.CodeCannotRebase: {[]string{"reason"}, func(t *testing.T, w *codeWorld) func() answer {
		a := w.pending(t)
		return func() answer { return w.agent.post("/proposed-actions/"+a.ID+"/rebase", nil) }
	}},
	gatehouse.CodeCannotEdit: {[]string{"reason"}, func(t *testing.T, w *codeWorld) func() answer {
		a := w.pending(t)
		return func() answer { return w.ana.edits(a, object{"patch": object{}}) }
	}},
	gatehouse.CodeTargetChanged: {[]string{"expected", "actual", "can_acknowledge", "can_rebase"},
		func(t *testing.T, w *codeWorld) func() answer {
			a := w.pending(t)
			w.shop.exec(t, `UPDATE items SET price = '11.00', version = version + 1 WHERE sku = ?`, a.Target.EntityRef)
			return func() answer { return w.ana.decide(a, "approved") }
		}},
	gatehouse.CodeAlreadyVoted: {nil, func(t *testing.T, w *codeWorld) func() answer {
		a := w.pending(t, object{"action_type": "pair"})
		must(t, w.ana.decide(a, "approved"), 200, "vote_recorded")
		second := w.admin.create(t, "ana-at-home", "person", "approver", object{"person": w.ana.id})
		return func() answer { return second.decide(a, "approved") }
	}},
	gatehouse.CodeCeilingExceeded: {[]string{"ceiling", "limit", "used"}, func(t *testing.T, w *codeWorld) func() answer {
		a := w.agent.propose(t, price(w.sku(), "250.01", object{"action_type": "weighed"}))
		return func() answer { return w.ana.decide(a, "approved") }
	}},
	gatehouse.CodeAuthorityRevoked: {nil, func(t *testing.T, w *codeWorld) func() answer {
		a := w.pending(t, object{"action_type": "pair"})
		gone := w.admin.create(t, "gone", "person", "approver")
		must(t, gone.decide(a, "approved"), 200, "vote_recorded")
		if res := w.admin.call("PATCH", "/principals/gone", object{"roles": []string{"proposer"}}); res.status != 200 {
			t.Fatal(res)
		}
		return func() answer { return w.ana.decide(a, "approved") }
	}},
	gatehouse.CodeDuplicateKey: {nil, func(t *testing.T, w *codeWorld) func() answer {
		w.pending(t, object{"idempotency_key": "mine"})
		return func() answer {
			return w.agent.post("/proposed-actions", price("SKU-1", "99.00", object{"idempotency_key": "mine"}))
		}
	}},
	gatehouse.CodeAlreadyExists: {nil, func(_ *testing.T, w *codeWorld) func() answer {
		return func() answer {
			return w.admin.post("/principals", object{"name": "ana", "kind": "person", "roles": []string{"approver"}})
		}
	}},
	gatehouse.CodeTooLate: {[]string{"current_status"}, func(t *testing.T, w *codeWorld) func() answer {
		a := w.applied(t)
		return func() answer { return w.agent.post("/proposed-actions/"+a.ID+"/cancel", nil) }
	}},
	gatehouse.CodeNotReversible: {nil, func(t *testing.T, w *codeWorld) func() answer {
		a := w.pending(t)
		return func() answer { return w.agent.post("/proposed-actions/"+a.ID+"/reverse", nil) }
	}},
	gatehouse.CodeNotUnknown: {nil, func(t *testing.T, w *codeWorld) func() answer {
		push := w.admin.action(t, w.applied(t).ID).Push.ID
		return func() answer {
			return w.admin.post("/pushes/"+push+"/resolve", object{"outcome": "failed", "reason": "no"})
		}
	}},
	gatehouse.CodePolicyGated: {nil, func(t *testing.T, w *codeWorld) func() answer {
		if res := w.admin.post("/tenants", object{"id": "gated"}); res.status != 201 {
			t.Fatal(res)
		}
		boss := w.admin.create(t, "gated-boss", "person", "admin", object{"tenant": "gated"})
		if res := boss.post("/policies", object{"source": "version: 1\npolicy_changes: gated\n"}); res.status != 201 {
			t.Fatal(res)
		}
		return func() answer { return boss.post("/policies", object{"source": "version: 1\n"}) }
	}},
	gatehouse.CodeLeaseLost: {nil, provokeLeaseLost},
	gatehouse.CodeBadSignature: {nil, func(t *testing.T, w *codeWorld) func() answer {
		w.workflow(t, "hooked", "on: {webhook: {kind: generic, secret: none}}\nsteps: [{id: one, uses: transform, with: {}}]")
		return func() answer { return (&person{gate: w.gate}).post("/hooks/hooked", object{"n": 1}) }
	}},
	gatehouse.CodeInProgress: {nil, provokeInProgress},
	gatehouse.CodeKeyReused: {nil, func(_ *testing.T, w *codeWorld) func() answer {
		w.agent.post("/proposed-actions", price(w.sku(), "12.00"), "Idempotency-Key", "once")
		return func() answer {
			return w.agent.post("/proposed-actions", price(w.sku(), "13.00"), "Idempotency-Key", "once")
		}
	}},
	gatehouse.CodeExpired: {nil, func(t *testing.T, w *codeWorld) func() answer {
		a := w.pending(t, object{"expires_in": "1s"})
		db := openStore(t, w.gate)
		defer db.Close()
		eventually(t, 10*time.Second, func() error {
			if n := count(t, db, `SELECT count(*) FROM action WHERE id = ? AND status = 'expired'`, a.ID); n == 0 {
				return fmt.Errorf("%s is not swept", a.ID)
			}
			return nil
		})
		return func() answer { return w.ana.decide(a, "approved") }
	}},
	gatehouse.CodeRateLimited: {nil, func(t *testing.T, w *codeWorld) func() answer {
		nothing := object{"decision": "rejected", "items": []object{{"action_id": "act_nothing"}}}
		for range 30 {
			if res := w.ben.post("/proposed-actions/bulk-decide", nothing); res.status != 200 {
				t.Fatal(res)
			}
		}
		return func() answer { return w.ben.post("/proposed-actions/bulk-decide", nothing) }
	}},
	gatehouse.CodeBusy: {nil, func(t *testing.T, w *codeWorld) func() answer {
		a := w.pending(t)
		return func() answer {
			defer lockStore(t, w.gate)()
			return w.ana.decide(a, "approved")
		}
	}},
	gatehouse.CodeInternal: {nil, func(t *testing.T, w *codeWorld) func() answer {
		return func() answer {
			defer brokenStore(t, w.gate)()
			return w.ana.get("/applied")
		}
	}},
}

func provokeInProgress(t *testing.T, w *codeWorld) func() answer {
	a := w.agent.propose(t, contact("slow", "update", "new"))
	release := w.target.holdReads("slow")
	body := object{"decision": "approved", "digest": a.Digest}
	path := "/proposed-actions/" + a.ID + "/decide"
	decide := func() answer { return w.ana.post(path, body, "Idempotency-Key", "slow") }
	t.Cleanup(release)
	return func() answer { // a decision waits for its target only for seconds
		first := make(chan answer, 1)
		go func() { first <- decide() }()
		t.Cleanup(func() { // before the next provocation reads the store
			release()
			must(t, <-first, 200, "decided")
		})
		until(t, "decision that waits for the target", func() bool { return w.target.waiting("slow") > 0 })
		return decide()
	}
}

// lockStore holds the store's write lock from outside until it is released.
func lockStore(t *testing.T, g *gate) (release func()) {
	t.Helper()
	db := writeStore(t, g)
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := conn.ExecContext(context.Background(), "ROLLBACK"); err != nil {
			t.Error(err)
		}
		_ = conn.Close()
		_ = db.Close()
	}
}

// brokenStore removes a table of the store until it is restored.
func brokenStore(t *testing.T, g *gate) (mend func()) {
	t.Helper()
	db := writeStore(t, g)
	if _, err := db.Exec(`ALTER TABLE mirror RENAME TO lost`); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := db.Exec(`ALTER TABLE lost RENAME TO mirror`); err != nil {
			t.Error(err)
		}
		_ = db.Close()
	}
}

func writeStore(t *testing.T, g *gate) *sql.DB {
	t.Helper()
	u := url.URL{Scheme: "file", Path: filepath.Join(g.data, "gatehouse.db"), RawQuery: "_pragma=busy_timeout(10000)"}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// workflow stores a workflow of that name.
func (w *codeWorld) workflow(t *testing.T, name, source string) {
	t.Helper()
	if res := w.admin.call("PUT", "/workflows/"+name, "name: "+name+"\n"+source+"\n", "Content-Type",
		"application/yaml"); res.status != 201 {
		t.Fatalf("apply: %s", res)
	}
}

// provokeLeaseLost completes a step under a generation that is not its lease's.
func provokeLeaseLost(t *testing.T, w *codeWorld) func() answer {
	worker := w.admin.create(t, "pager", "service", "worker")
	w.workflow(t, "paging", "steps: [{id: page, uses: worker.page, with: {}}]")
	if res := w.agent.post("/workflows/paging/runs", object{}); res.status != 201 {
		t.Fatalf("start: %s", res)
	}
	var leased []gatehouse.LeasedStep
	res := worker.post("/steps/lease", object{"tools": []string{"page"}, "wait": "20s", "lease": "1h"})
	if err := json.Unmarshal(res.raw, &leased); err != nil || len(leased) != 1 { // a list has no members to check
		t.Fatalf("lease: %s", res.raw)
	}
	return func() answer {
		return worker.post("/steps/"+leased[0].Step.ID+"/complete",
			object{"generation": leased[0].Lease.Generation + 1, "output": object{}})
	}
}

// TestCodes walks the table of codes: each code is provoked on a real server,
// has the contract's form, and leaves nothing behind. A code without a
// provocation fails the test.
func TestCodes(t *testing.T) {
	t.Parallel()
	w := &codeWorld{world: newWorld(t, 64, quick+"\nruns: {tools: {fax: {workers: [fax-service]}}}")}
	w.ana = w.admin.create(t, "ana", "person", "approver")
	w.ben = w.admin.create(t, "ben", "person", "approver")
	db := openStore(t, w.gate)
	defer db.Close()
	seen := make(map[gatehouse.Code]bool)
	for _, code := range gatehouse.Codes() {
		p, ok := provocations[code]
		if !ok {
			continue
		}
		t.Run(string(code), func(t *testing.T) {
			fire := p.prepare(t, w)
			w.heal(t, 20*time.Second)
			before := snapshot(t, db)
			res := fire()
			must(t, res, gatehouse.StatusOf(code), string(code), p.members...)
			if after := snapshot(t, db); after != before {
				t.Errorf("something was stored:\nbefore %s\nafter  %s", before, after)
			}
			seen[gatehouse.Code(res.str("code"))] = true
		})
	}
	for _, code := range gatehouse.Codes() {
		// Browsers without a key get step_up_required: see internal/signin.
		// Holders of a mail get sign_in_required and link_expired: see
		// TestReviewMatrix in internal/console.
		mailed := code == gatehouse.CodeSignInRequired || code == gatehouse.CodeLinkExpired
		if !seen[code] && code != gatehouse.CodeStepUpRequired && !mailed {
			t.Errorf("no test produced the code %s", code)
		}
	}
	for code := range provocations {
		if gatehouse.StatusOf(code) == 500 && code != gatehouse.CodeInternal {
			t.Errorf("%s is in no table of codes", code)
		}
	}
}

// snapshot hashes the store's content, except for the clock, the decision
// counts, which are stored every few seconds, and the numbers that the
// sequencer gives to leaves.
func snapshot(t *testing.T, db *look) string {
	t.Helper()
	var parts []string
	for _, table := range rowsOf(t, db, `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'
		AND name NOT IN ('meta','audit_log','audit_batch','decision_count')
		ORDER BY CASE name WHEN 'lost' THEN 'mirror' ELSE name END`) {
		name := strings.TrimPrefix(table, "name=")
		rows := rowsOf(t, db, `SELECT * FROM "`+name+`"`)
		sum := sha256.Sum256([]byte(strings.Join(rows, "\n")))
		parts = append(parts, fmt.Sprintf("%s:%d:%x", name, len(rows), sum[:4]))
	}
	return strings.Join(parts, " ")
}
