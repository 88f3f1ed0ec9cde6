package proof

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/gatehouse-dev/gatehouse"
)

// tableInvariants are queries over the store that must return no row. The
// numbers are those of docs/proof/README.md.
var tableInvariants = []struct{ name, query string }{
	{"3: an approved action without exactly one push",
		`SELECT a.id, a.status, count(p.seq) FROM action a LEFT JOIN push p ON p.action_seq = a.seq
		 WHERE a.status IN ('approved','pushing','applied','failed','unknown','reversed')
		 GROUP BY a.seq HAVING count(p.seq) <> 1`},
	{"3: a push of an action that never was approved",
		`SELECT a.id, a.status, p.status FROM push p JOIN action a ON a.seq = p.action_seq
		 WHERE a.status IN ('pending','rejected','denied','expired')
		    OR a.status = 'superseded' AND p.status <> 'canceled'`},
	{"4: a push without approval or allow",
		`SELECT a.id, f.policy_outcome, ap.status FROM push p JOIN action a ON a.seq = p.action_seq
		 JOIN proposal f ON f.seq = a.seq LEFT JOIN approval ap ON ap.seq = a.seq
		 WHERE f.policy_outcome <> 'allow' AND coalesce(ap.status, '') <> 'approved'`},
	{"6: the digests of action, vote and push differ",
		`SELECT a.id, f.digest, p.digest, v.digest FROM action a JOIN proposal f ON f.seq = a.seq
		 LEFT JOIN push p ON p.action_seq = a.seq LEFT JOIN vote v ON v.seq = a.seq AND v.decision = 'approved'
		 WHERE coalesce(p.digest, f.digest) <> f.digest OR coalesce(v.digest, f.digest) <> f.digest`},
	{"6: the idempotency keys of action, push and receipt differ",
		`SELECT a.id, p.idempotency_key, r.idempotency_key FROM push p JOIN action a ON a.seq = p.action_seq
		 LEFT JOIN receipt r ON r.push_id = p.id
		 WHERE p.idempotency_key <> coalesce(a.idempotency_key, p.idempotency_key)
		    OR coalesce(r.idempotency_key, p.idempotency_key) <> p.idempotency_key`},
	{"7: a receipt from before the decision",
		`SELECT a.id, a.decided_at, r.at FROM receipt r JOIN action a ON a.seq = r.action_seq
			WHERE a.decided_at IS NULL OR r.at < a.decided_at`},
	{"8: fewer distinct persons than required",
		`SELECT a.id, ap.required, count(DISTINCT v.person) FROM approval ap JOIN action a ON a.seq = ap.seq
		 LEFT JOIN vote v ON v.seq = ap.seq AND v.decision = 'approved'
		 WHERE ap.status = 'approved' GROUP BY ap.seq, a.seq HAVING count(DISTINCT v.person) < ap.required`},
	{"8: the proposer among the voters",
		`SELECT a.id, v.name FROM vote v JOIN action a ON a.seq = v.seq JOIN approval ap ON ap.seq = a.seq
		 WHERE v.principal_id = a.proposer_id OR ap.excluded LIKE '%"' || v.person || '"%'
		 OR ap.excluded LIKE '%"' || v.name || '"%'`},
	{"9: decided by a person at or after expiry",
		`SELECT a.id, a.decided_at, a.expires_at FROM action a JOIN approval ap ON ap.seq = a.seq
		 WHERE ap.status IN ('approved','rejected') AND a.decided_at >= a.expires_at`},
	{"9: a vote at or after expiry",
		`SELECT a.id, v.at FROM vote v JOIN action a ON a.seq = v.seq WHERE v.at >= a.expires_at`},
	{"10: a claim kept by what had no effect, or released by what had",
		`SELECT a.id, a.status, c.released_at FROM ceiling_claim c JOIN action a ON a.seq = c.action_seq
		 WHERE (a.status IN ('approved','pushing','applied','unknown','reversed')) <> (c.released_at IS NULL)`},
	{"11: action, approval and push do not fit together",
		`SELECT a.id, a.status, ap.status, p.status FROM action a LEFT JOIN approval ap ON ap.seq = a.seq
		 LEFT JOIN push p ON p.action_seq = a.seq WHERE NOT CASE a.status
		   WHEN 'pending' THEN ap.status = 'requested' AND p.status IS NULL
		   WHEN 'approved' THEN coalesce(ap.status, 'approved') = 'approved' AND p.status IN ('queued','picking')
		   WHEN 'pushing' THEN coalesce(ap.status, 'approved') = 'approved' AND p.status IN ('queued','picking','sent')
		   WHEN 'applied' THEN coalesce(ap.status, 'approved') = 'approved' AND p.status = 'applied'
		   WHEN 'reversed' THEN coalesce(ap.status, 'approved') = 'approved' AND p.status = 'applied'
		   WHEN 'failed' THEN coalesce(ap.status, 'approved') = 'approved' AND p.status = 'failed'
		   WHEN 'unknown' THEN coalesce(ap.status, 'approved') = 'approved' AND p.status = 'unknown'
		   WHEN 'rejected' THEN ap.status = 'rejected' AND p.status IS NULL
		   WHEN 'expired' THEN ap.status = 'expired' AND p.status IS NULL
		   WHEN 'superseded' THEN a.superseded_by IS NOT NULL AND (ap.status = 'canceled' AND p.status IS NULL
		     OR coalesce(ap.status, 'approved') = 'approved' AND p.status = 'canceled')
		   WHEN 'canceled' THEN ap.status = 'canceled' AND p.status IS NULL OR coalesce(ap.status, 'approved') = 'approved'
		   AND p.status = 'canceled'
		   WHEN 'denied' THEN ap.status IS NULL AND p.status IS NULL END`},
	{"12: applied without a receipt of it, or twice with one",
		`SELECT a.id, a.status, count(r.seq) FROM action a
			LEFT JOIN receipt r ON r.action_seq = a.seq AND r.outcome = 'applied' AND NOT r.late
		 GROUP BY a.seq HAVING (a.status IN ('applied','reversed')) <> (count(r.seq) = 1)`},
	{"13: neither leased, nor scheduled, nor waiting for a person",
		`SELECT p.id, p.status, p.lease_until, p.next_attempt FROM push p
		 WHERE p.status IN ('picking','sent') AND p.lease_until IS NULL OR p.status = 'queued' AND p.next_attempt IS NULL`},
	{"16: a reference across tenants",
		`SELECT 'approval', a.id FROM approval x JOIN action a ON a.seq = x.seq WHERE x.tenant <> a.tenant
		 UNION ALL SELECT 'vote', a.id FROM vote x JOIN action a ON a.seq = x.seq WHERE x.tenant <> a.tenant
		    OR NOT EXISTS (SELECT 1 FROM principal p WHERE p.tenant = a.tenant AND p.id = x.principal_id)
		 UNION ALL SELECT 'push', a.id FROM push x JOIN action a ON a.seq = x.action_seq
		 WHERE x.tenant <> a.tenant OR x.action_id <> a.id
		 UNION ALL SELECT 'receipt', a.id FROM receipt x JOIN action a ON a.seq = x.action_seq
		 WHERE x.tenant <> a.tenant OR x.action_id <> a.id
		 UNION ALL SELECT 'mirror', a.id FROM mirror x JOIN action a ON a.seq = x.action_seq WHERE x.tenant <> a.tenant
		 UNION ALL SELECT 'corpus', a.id FROM corpus x JOIN action a ON a.seq = x.action_seq WHERE x.tenant <> a.tenant
		 UNION ALL SELECT 'ceiling', a.id FROM ceiling_claim x JOIN action a ON a.seq = x.action_seq
		 WHERE x.tenant <> a.tenant
		 UNION ALL SELECT 'proposer', a.id FROM action a WHERE NOT EXISTS (SELECT 1 FROM principal p
		 WHERE p.tenant = a.tenant AND p.id = a.proposer_id)
		 UNION ALL SELECT 'leaf', x.action_id FROM audit_leaf x WHERE x.action_id <> ''
		    AND NOT EXISTS (SELECT 1 FROM action a WHERE a.tenant = x.tenant AND a.id = x.action_id)
		    AND NOT EXISTS (SELECT 1 FROM run r WHERE r.tenant = x.tenant AND r.id = x.action_id)
		 UNION ALL SELECT 'step', s.id FROM step s JOIN run r ON r.seq = s.run_seq
		 WHERE s.tenant <> r.tenant OR s.run_id <> r.id`},
	{"the applied mirror is not what was applied",
		`SELECT a.id, a.status, count(m.seq) FROM action a LEFT JOIN mirror m ON m.action_seq = a.seq
		 GROUP BY a.seq HAVING (a.status IN ('applied','reversed')) <> (count(m.seq) = 1)`},
	{"the corpus is not what people decided",
		`SELECT a.id, ap.status, count(c.id) FROM approval ap JOIN action a ON a.seq = ap.seq
			LEFT JOIN corpus c ON c.action_seq = a.seq
		 GROUP BY a.seq, ap.seq HAVING (ap.status IN ('approved','rejected')) <> (count(c.id) = 1)`},
}

// check checks the invariants over the API, the store and the targets' ledgers.
// The storm must be over; check waits for work in progress.
func (w *world) check(t *testing.T, j *journal) {
	t.Helper()
	w.heal(t, 60*time.Second)
	db := openStore(t, w.gate)
	defer db.Close()
	w.checkTables(t, db)
	actions := w.allActions(t)
	w.checkJournal(t, actions, j)
	w.checkCanonical(t, actions)
	w.checkQueue(t, actions)
	w.checkLedgers(t, actions)
	w.checkLog(t, db, actions)
	w.checkDoctor(t)
}

// checkTables checks the invariants that are queries.
func (w *world) checkTables(t *testing.T, db *look) {
	t.Helper()
	for _, inv := range tableInvariants {
		if found := rowsOf(t, db, inv.query); len(found) > 0 {
			t.Errorf("invariant %s: %d rows, such as %v", inv.name, len(found), found[0])
		}
	}
}

// checkDoctor runs the operators' command, which checks the invariants with its
// own code.
func (w *world) checkDoctor(t *testing.T) {
	t.Helper()
	place := []string{"--data", w.data}
	if w.dsn != "" {
		place = []string{"--database-url", w.dsn}
	}
	out, err := exec.Command(binary, append([]string{"doctor", "--deep", "--json"}, place...)...).Output()
	var report struct {
		OK         bool `json:"ok"`
		Invariants []struct {
			Number     int    `json:"number"`
			Title      string `json:"title"`
			Examined   int    `json:"examined"`
			NotChecked string `json:"not_checked"`
			Violations int    `json:"violations"`
			Listed     []struct{ ID, Detail string }
		} `json:"invariants"`
	}
	if e := json.Unmarshal(out, &report); e != nil {
		t.Fatalf("gatehouse doctor --deep: %v, %v\n%s%s", err, e, out, stderrOf(err))
	}
	examined := 0
	for _, i := range report.Invariants {
		examined += i.Examined
		if i.NotChecked != "" && i.Number != 0 && i.Number != 2 { // 0 needs an extension, 2 the targets
			t.Errorf("the doctor did not check invariant %d (%s): %s", i.Number, i.Title, i.NotChecked)
		}
		if i.Violations > 0 {
			t.Errorf("invariant %d (%s), says the doctor: %d violations, such as %+v", i.Number, i.Title, i.Violations,
				i.Listed[:1])
		}
	}
	if err != nil || !report.OK || examined == 0 {
		t.Errorf("gatehouse doctor --deep: %v, ok %v, %d examined\n%s", err, report.OK, examined, stderrOf(err))
	}
}

// heal waits until every push has settled, expiries and held rejections are
// recorded, and every leaf has a number.
func (w *world) heal(t testing.TB, within time.Duration) {
	t.Helper()
	db := openStore(t, w.gate)
	defer db.Close()
	eventually(t, within, func() error {
		if n := count(t, db, `SELECT count(*) FROM push WHERE status IN ('queued','picking','sent') AND not_before <= ?`,
			now()); n > 0 {
			return fmt.Errorf("%d pushes do not settle: %v", n, rowsOf(t, db,
				`SELECT id, status, attempts, last_error FROM push WHERE status IN ('queued','picking','sent') LIMIT 5`))
		}
		soon := now() + 2*time.Second.Microseconds() // nothing must expire during the checks
		if n := count(t, db, `SELECT count(*) FROM action WHERE status = 'pending' AND expires_at <= ?`, soon); n > 0 {
			return fmt.Errorf("%d actions that expire are not swept", n)
		}
		if n := count(t, db, `SELECT count(*) FROM approval WHERE status = 'requested' AND rejects_at <= ?`, soon); n > 0 {
			return fmt.Errorf("%d rejections whose hold has ended are not swept", n)
		}
		if n := count(t, db, db.waiting()); n > 0 {
			return fmt.Errorf("%d audit leaves have no number", n)
		}
		return nil
	})
}

// allActions walks the pages of the list: every action appears exactly once.
func (w *world) allActions(t *testing.T) map[string]*gatehouse.Action {
	t.Helper()
	all := make(map[string]*gatehouse.Action)
	for cursor := ""; ; {
		var page gatehouse.Page[*gatehouse.Action]
		w.admin.get("/proposed-actions?limit=200&cursor="+cursor).decode(t, &page)
		for _, a := range page.Items {
			if all[a.ID] != nil {
				t.Errorf("the list shows %s twice", a.ID)
			}
			all[a.ID] = a
		}
		if cursor = page.NextCursor; cursor == "" {
			return all
		}
	}
}

// checkJournal checks invariant 2: nothing that a client was told is lost or
// different.
func (w *world) checkJournal(t *testing.T, actions map[string]*gatehouse.Action, j *journal) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, wrong := range j.wrong {
		t.Errorf("invariant 2: %s", wrong)
	}
	for id, digest := range j.proposed {
		if a := actions[id]; a == nil || a.Digest != digest {
			t.Errorf("invariant 2: the acknowledged proposal %s is lost or has another digest", id)
		}
	}
	for id, v := range j.decided {
		a := actions[id]
		if a == nil {
			t.Errorf("invariant 2: the decision on %s is lost", id)
			continue
		}
		outcome := "approved"
		if a.Status == gatehouse.StatusRejected {
			outcome = "rejected"
		}
		if !a.Status.Decided() || v.outcome != "" && v.outcome != outcome || a.DecidedBy != v.by {
			t.Errorf("invariant 2: %s was answered %s by %s, but is %s by %s", id, v.outcome, v.by, a.Status, a.DecidedBy)
		}
	}
	for id, voters := range j.voted {
		for _, name := range voters {
			if a := actions[id]; a == nil || a.Approval == nil ||
				!slices.ContainsFunc(a.Approval.Votes, func(v gatehouse.Vote) bool { return v.Name == name }) {
				t.Errorf("invariant 2: the vote of %s on %s is lost", name, id)
			}
		}
	}
	for id := range j.canceled {
		if a := actions[id]; a == nil || a.Status != gatehouse.StatusCanceled {
			t.Errorf("invariant 2: the cancellation of %s is lost", id)
		}
	}
}

// checkCanonical checks the rest of invariant 6, on at most 200 actions: the
// digest matches the bytes in the evidence.
func (w *world) checkCanonical(t *testing.T, actions map[string]*gatehouse.Action) {
	t.Helper()
	checked := 0
	for id, a := range actions {
		if checked++; checked > 200 {
			return
		}
		var e struct{ Canonical string }
		w.admin.get("/proposed-actions/"+id+"/evidence").decode(t, &e)
		sum := sha256.Sum256([]byte(e.Canonical))
		if "sha256:"+hex.EncodeToString(sum[:]) != string(a.Digest) {
			t.Errorf("invariant 6: the evidence of %s does not match its digest", id)
		}
	}
}

// checkQueue checks invariant 17: everything pending is in the queue.
func (w *world) checkQueue(t *testing.T, actions map[string]*gatehouse.Action) {
	t.Helper()
	queued := make(map[string]bool)
	for cursor := ""; ; {
		var page gatehouse.Page[*gatehouse.Action]
		w.admin.get("/proposed-actions?status=pending&sort=urgency&limit=200&cursor="+cursor).decode(t, &page)
		for _, a := range page.Items {
			queued[a.ID] = true
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	for id, a := range actions {
		if (a.Status == gatehouse.StatusPending) != queued[id] {
			t.Errorf("invariant 17: %s is %s, in the queue: %v", id, a.Status, queued[id])
		}
	}
}

// checkLedgers checks invariants 5, 6, 7 and 15 against the targets' ledgers.
func (w *world) checkLedgers(t *testing.T, actions map[string]*gatehouse.Action) {
	t.Helper()
	byKey, sent := make(map[string]*gatehouse.Action), make(map[string]*gatehouse.Action)
	writes := make(map[string]int) // applied to a row of the shop
	for _, a := range actions {
		byKey[a.IdempotencyKey] = a
		sent[sentKey(a.Tenant, a.IdempotencyKey)] = a
	}
	items := w.shop.items(t)
	for sku, i := range items {
		if i.version-1 != len(i.keys) {
			t.Errorf("invariant 5: %s is at version %d after %d recorded changes", sku, i.version, len(i.keys))
		}
		for _, r := range i.keys {
			a := byKey[r.key]
			if a == nil || a.Connector != "shop" {
				t.Errorf("invariant 4: %s was changed under the key %s, which no action has", sku, r.key)
				continue
			}
			writes[a.ID]++
			w.checkEffect(t, a, r.digest, r.at.Add(time.Millisecond))
			if want, _ := a.ProposedChange.Get("price"); len(i.keys) == 1 && string(want) != fmt.Sprintf("%q", i.price) {
				t.Errorf("invariant 6: %s costs %s, approved was %s", sku, i.price, want)
			}
		}
	}
	for _, c := range w.target.log() {
		a := sent[c.key]
		if a == nil || a.Connector != "crm" {
			t.Errorf("invariant 4: a call under the key %q, which no action has", c.key)
			continue
		}
		w.checkEffect(t, a, c.digest, c.at)
		if c.body != string(a.ProposedChange) {
			t.Errorf("invariant 6: sent %s, approved %s", c.body, a.ProposedChange)
		}
	}
	for _, a := range actions {
		if a.Connector != "crm" && a.Connector != "shop" {
			continue // a question to people, or a plan, has no target; the mixture has its own ledgers
		}
		effects := writes[a.ID]
		if a.Connector == "crm" {
			effects = w.target.effectsOf(a.IdempotencyKey)
		}
		if effects > 1 {
			t.Errorf("invariant 5: %s had %d effects", a.ID, effects)
		}
		switch a.Status {
		case gatehouse.StatusApplied, gatehouse.StatusReversed:
			// An operator's resolution as applied is a person's statement.
			if effects != 1 && (a.Receipt == nil || a.Receipt.Source != "operator") {
				t.Errorf("%s is %s, but had %d effects", a.ID, a.Status, effects)
			}
		case gatehouse.StatusUnknown:
		default:
			if effects != 0 {
				t.Errorf("%s is %s, but had an effect", a.ID, a.Status)
			}
		}
	}
}

func (w *world) checkEffect(t *testing.T, a *gatehouse.Action, digest string, at time.Time) {
	t.Helper()
	if digest != string(a.Digest) {
		t.Errorf("invariant 6: %s was carried out with the digest %s", a.ID, digest)
	}
	if a.DecidedAt == nil || at.Before(*a.DecidedAt) {
		t.Errorf("invariant 7: %s had its effect at %s, decided at %v", a.ID, at, a.DecidedAt)
	}
}

// now is the wall clock as the store counts it; all processes here share it.
func now() int64 { return time.Now().UnixMicro() }

func decodeLeaf(t testing.TB, body string) *gatehouse.Leaf {
	t.Helper()
	l := new(gatehouse.Leaf)
	if err := json.Unmarshal([]byte(body), l); err != nil {
		t.Fatalf("leaf %s: %v", body, err)
	}
	return l
}
