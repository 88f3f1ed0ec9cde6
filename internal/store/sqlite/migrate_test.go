package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
)

// firstData is what a store of the first version holds: an approved action with
// its push and what it taught, a rejected one, a pending one; of the leaves two
// have their numbers.
const firstData = `
INSERT INTO action (seq, tenant, id, status, action_type, risk, proposer_id, proposed_at, expires_at, decided_by, decided_via, decided_at, finished_at) VALUES
  (1, 'default', 'act_1', 'approved', 'price_change', 3, 'prn_bot', 1000, 4000000000000000, 'ana', 'api', 2000, NULL),
  (2, 'default', 'act_2', 'rejected', 'price_change', 3, 'prn_bot', 1000, 4000000000000000, 'ben', 'api', 3000, 3000),
  (3, 'default', 'act_3', 'pending', 'price_change', 3, 'prn_bot', 1000, 4000000000000000, '', '', NULL, NULL);
INSERT INTO proposal (seq, tenant, revision, connector, operation, entity_type, entity_ref, entity_refs, target_version, claimed_risk,
 on_behalf_of, expires_in, hold, digest, fingerprint, content_hash, policy_outcome, policy_version, policy_rules, policy_reasons, proposed_by,
 rationale, search, proposed_change, current_state, context, metadata, extra)
SELECT seq, tenant, 1, 'shop', 'update', 'item', 'SKU', '', '7', 0, '', 0, 0, 'sha256:', 'fp', zeroblob(32), 'needs_approval', 1, '["r"]', '',
 'bot', '', 'price_change', '{"price":"12.50"}', '', '', '', '' FROM action;
INSERT INTO approval (seq, tenant, id, status, required, roles, people, excluded, expires_at, created_at)
SELECT seq, tenant, 'apr_' || seq, CASE status WHEN 'pending' THEN 'requested' ELSE status END, 1, '["approver"]', '', '[]', expires_at, 1 FROM action;
INSERT INTO vote (seq, person, tenant, principal_id, name, decision, notes, via, digest, at) VALUES
  (1, 'prn_ana', 'default', 'prn_ana', 'ana', 'approved', 'fine', 'api', 'sha256:', 2000),
  (2, 'prn_ben', 'default', 'prn_ben', 'ben', 'rejected', 'too dear', 'api', 'sha256:', 3000);
INSERT INTO push (tenant, id, action_seq, action_id, connector, idempotency_key, digest, status, attempts, attempt_base, last_error,
 error_code, not_before, created_at, generation, lease_owner, replays)
VALUES ('default', 'psh_1', 1, 'act_1', 'shop', 'k', 'sha256:', 'queued', 0, 0, '', '', 2000, 2000, 0, '', 0);
INSERT INTO corpus (tenant, id, action_seq, action_id, action_type, outcome, decided_by, notes, at, features) VALUES
  ('default', 'cor_a', 1, 'act_1', 'price_change', 'approved', 'ana', 'fine', 2000, '{}'),
  ('default', 'cor_b', 2, 'act_2', 'price_change', 'rejected', 'ben', 'too dear', 3000, '{}');
INSERT INTO audit_log VALUES ('default', 2, 3);
INSERT INTO audit_leaf (seq, tenant, action_id, number, hash, body) VALUES
  (1, 'default', 'act_1', 0, x'00000000000000000000000000000000000000000000000000000000000000aa', '{"a":1}'),
  (2, 'default', 'act_2', 1, x'00000000000000000000000000000000000000000000000000000000000000bb', '{"a":2}'),
  (3, 'default', 'act_3', NULL, NULL, '{"a":3}'),
  (4, 'default', 'act_1', NULL, NULL, '{"a":4}');
INSERT INTO audit_hash (tenant, position, hash) SELECT 'default', value, zeroblob(32) FROM json_each('[0,1,2]');
`

// ofVersion1 makes a file as the first version left it.
func ofVersion1(t *testing.T, data string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gatehouse.db")
	first, err := migrations.ReadFile("migrations/0001_core.sql")
	if err != nil {
		t.Fatal(err)
	}
	c, err := openWriter(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := apply(c, 1, string(first), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := c.script(data); err != nil {
		t.Fatal(err)
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestMigrateFromTheFirstVersion opens a store with data in it that the first
// version wrote, and goes on with it.
func TestMigrateFromTheFirstVersion(t *testing.T) {
	t.Parallel()
	path := ofVersion1(t, firstData)
	s, err := Open(context.Background(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	view := func(fn func(tx gatehouse.ReadTx) error) {
		t.Helper()
		if err := s.View(t.Context(), fn); err != nil {
			t.Fatal(err)
		}
	}
	view(func(tx gatehouse.ReadTx) error {
		page, err := tx.ListCorpus("default", "", "", 10)
		features := gatehouse.JSON(`{"connector":"shop","entity_ref":"SKU","entity_type":"item","fields":["price"],"operation":"update",` +
			`"proposed_by":"bot","risk_level":3,"rules":["r"]}`)
		want := []*gatehouse.CorpusEntry{
			{
				ID: "cor_2", Tenant: "default", ActionID: "act_2", ActionType: "price_change", Features: features, Outcome: gatehouse.Reject,
				DecidedBy: "ben", Notes: "too dear", At: time.UnixMicro(3000).UTC(),
			}, {
				ID: "cor_1", Tenant: "default", ActionID: "act_1", ActionType: "price_change", Features: features, Outcome: gatehouse.Approve,
				DecidedBy: "ana", Notes: "fine", At: time.UnixMicro(2000).UTC(),
			},
		}
		if d := cmp.Diff(want, page.Items); d != "" {
			t.Errorf("corpus (-want +got):\n%s", d)
		}
		return err
	})
	waiting := func(want ...int64) {
		t.Helper()
		view(func(tx gatehouse.ReadTx) error {
			list, err := tx.UnnumberedLeaves(10)
			var rows []int64
			for _, l := range list {
				rows = append(rows, l.Row)
			}
			if d := cmp.Diff(want, rows); d != "" {
				t.Errorf("waiting (-want +got):\n%s", d)
			}
			return err
		})
	}
	waiting(3, 4)
	for status, want := range map[gatehouse.Status]string{
		gatehouse.StatusPending: "act_3", gatehouse.StatusApproved: "act_1", gatehouse.StatusRejected: "act_2",
	} {
		view(func(tx gatehouse.ReadTx) error {
			page, err := tx.ListActions("default", gatehouse.ActionFilter{Status: status})
			if len(page.Items) != 1 || page.Items[0].ID != want {
				t.Errorf("%s: %d, want %s", status, len(page.Items), want)
			}
			return err
		})
	}
	view(func(tx gatehouse.ReadTx) error {
		page, err := tx.ListPushes("default", gatehouse.PushFilter{Status: gatehouse.PushQueued})
		if len(page.Items) != 1 || page.Items[0].ID != "psh_1" {
			t.Errorf("%d pushes are queued, want psh_1", len(page.Items))
		}
		counts, countErr := tx.PushCounts()
		if d := cmp.Diff(map[gatehouse.PushStatus]int{gatehouse.PushQueued: 1}, counts); d != "" {
			t.Errorf("pushes (-want +got):\n%s", d)
		}
		return errors.Join(err, countErr)
	})
	update(t, s, func(tx gatehouse.Tx) error {
		claimed, err := tx.ClaimPushes("me", time.Minute, gatehouse.PushShare{Tenant: "default", Limit: 5, Most: 5})
		if len(claimed) != 1 || claimed[0].ID != "psh_1" {
			t.Errorf("%d were claimed, want psh_1", len(claimed))
		}
		return err
	})
	update(t, s, func(tx gatehouse.Tx) error { return decide(tx, "3") })
	sequencer := &audit.Sequencer{Store: s}
	if n, err := sequencer.Once(t.Context()); err != nil || n != 4 {
		t.Errorf("%d leaves were numbered, want 4: %v", n, err)
	}
	waiting()
	for _, sql := range []string{`PRAGMA integrity_check`, `SELECT count(*) FROM pragma_foreign_key_check`} {
		err := s.View(t.Context(), func(tx gatehouse.ReadTx) error {
			return tx.(*readTx).one(sql, func(r *stmt) error {
				if got := r.text(); got != "ok" && got != "0" {
					t.Errorf("%s: %s", sql, got)
				}
				return nil
			})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestMigrateWhatIsEmpty opens a store of the first version that holds nothing
// yet, and one whose leaves all have their numbers.
func TestMigrateWhatIsEmpty(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]int64{
		"": 0,
		`INSERT INTO audit_leaf (seq, tenant, action_id, number, hash, body) VALUES (7, 'default', '', 0, zeroblob(32), '{}')`: 7,
	} {
		path := ofVersion1(t, data)
		s, err := Open(context.Background(), Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.writer.c.number(`SELECT numbered FROM meta`); err != nil || got != want {
			t.Errorf("the mark is at %d, want %d: %v", got, want, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if left, err := os.Stat(path + "-wal"); err == nil {
			t.Errorf("a log of %d bytes is left", left.Size())
		}
	}
}
