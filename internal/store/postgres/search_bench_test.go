package postgres

import (
	"context"
	"flag"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/gatehouse-dev/gatehouse/internal/pgtest"
	"github.com/gatehouse-dev/gatehouse/internal/store/storetest"
)

var searchRows = flag.Int("search", 200_000, "actions in BenchmarkSearch; a tenth of them are pending")

func BenchmarkSearch(b *testing.B) {
	s := openTest(b, Config{})
	c, err := pgx.Connect(b.Context(), pgtest.Superuser(s.config.URL))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close(context.Background())
	for _, sql := range []string{
		`INSERT INTO action (tenant, id, status, action_type, risk, proposer_id, idempotency_key, proposed_at,
  expires_at, decided_by, decided_via, decided_at, finished_at)
SELECT 'default', format('act_%s', lpad(i::text, 9, '0')), CASE WHEN i % 10 = 0 THEN 'pending' ELSE 'applied' END,
  'price_change',
  i::bigint * 7919 % 5 + 1, 'prn_bot',
  format('key-%s', i), 1,
  (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 1000000 * (60 + i::bigint * 7907 % 260000),
  '', '',
  CASE WHEN i % 10 > 0 THEN 1 END, CASE WHEN i % 10 > 0 THEN 1 END FROM generate_series(1, $1::int) i`,
		`INSERT INTO proposal (seq, tenant, revision, connector, operation, entity_type, entity_ref, entity_refs,
  target_version, claimed_risk,
  on_behalf_of, expires_in, hold, digest, fingerprint, content_hash,
  policy_outcome, policy_version, policy_rules, policy_reasons, proposed_by,
  rationale, proposed_change, current_state, context, metadata, extra)
SELECT seq, tenant, 1, 'shop', 'update', 'item', 'SKU', '', '7', 0, '', 0, 0, 'sha256:', 'fp',
  decode(repeat('00', 32), 'hex'), 'needs_approval', 1, '', '',
  'bot', 'supplier raised cost', '{"price":"12.50"}', '{"price":"10.00"}', '', '', ''
FROM action WHERE $1::int > 0`,
		`INSERT INTO approval (seq, tenant, id, status, required, roles, people, excluded,
  expires_at, created_at)
SELECT seq, tenant, replace(id, 'act_', 'apr_'), 'requested', 1, '["approver"]', '', '', expires_at, 1
FROM action WHERE status = 'pending' AND $1::int > 0`,
	} {
		if _, err := c.Exec(b.Context(), sql, *searchRows); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := c.Exec(b.Context(), `VACUUM ANALYZE`); err != nil {
		b.Fatal(err)
	}
	storetest.BenchmarkSearch(b, s, func() error {
		return s.view(context.Background(), "default", false, func(t *readTx) error {
			_, err := t.number(`SELECT count(*) FROM (SELECT a.id FROM action a JOIN proposal p ON p.seq = a.seq
WHERE a.tenant = 'default' AND strpos(lower(p.rationale), 'nothing of the kind') > 0 ORDER BY a.id DESC LIMIT 51) x`)
			return err
		})
	})
}
