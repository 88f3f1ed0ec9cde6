package postgres

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gatehouse-dev/gatehouse"
	"github.com/gatehouse-dev/gatehouse/internal/audit"
)

// TestTablesHold breaks every rule of the tables that decisions and pushes write to, directly
// in the database and without triggers: the table refuses each write.
func TestTablesHold(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := openTest(t, Config{URL: url})
	p := populate(t, s)
	ana := p.known(p.ana)
	a := p.propose(p.known(p.agent))
	if err := p.approve(ana, a.ID, a); err != nil {
		t.Fatal(err)
	}
	if done, err := p.worker.Drain(t.Context(), gatehouse.DefaultTenant, 1); err != nil || len(done) != 1 {
		t.Fatal(done, err)
	}
	if n, err := (&audit.Sequencer{Store: s, Batch: 2}).Once(t.Context()); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	for table, rules := range map[string][]string{
		"action": {
			`id = ''`, `status = 'elsewhere'`, `risk = 0`, `risk = 6`, `decided_via = 'fax'`, `decided_at = NULL`,
			`status = 'pending'`, `status = 'pending', decided_at = NULL, expires_at = NULL`,
			`status = 'pushing', finished_at = 1`, `status = 'approved', finished_at = 1`,
			`status = 'reversed', reversed_by = NULL`,
			`failure_code = 'x', failure_detail = NULL`, `failure_code = NULL, failure_detail = 'x'`,
		},
		"proposal": {
			`revision = 0`, `claimed_risk = -1`, `claimed_risk = 6`, `expires_in = -1`, `hold = -1`, `content_hash = 'x'`,
			`policy_outcome = 'perhaps'`, `policy_version = -1`,
		},
		"approval": {`id = ''`, `status = 'elsewhere'`, `required = 0`, `confirm_prompt = 'x', confirm_value = NULL`,
			`confirm_prompt = NULL, confirm_value = 'x'`},
		"vote": {`person = ''`, `decision = 'perhaps'`},
		"push": {
			`id = ''`, `status = 'elsewhere'`, `attempts = -1, attempt_base = -1`, `attempt_base = -1`,
			`attempt_base = attempts + 1`, `generation = -1`, `replays = -1`,
			`status = 'picking', lease_until = NULL`, `status = 'sent', lease_until = NULL`,
			`status = 'picking', lease_until = 1, generation = 0`,
			`status = 'sent', lease_until = 1, attempts = 0`,
		},
		"receipt":       {`id = ''`, `attempt = -1`, `generation = -1`, `outcome = 'perhaps'`},
		"audit_batch":   {`number = -1`, `position = -1`, `last = -1`, `hashes = 'x'`},
		"audit_waiting": {`first = first + 1`, `leaves = '{}'`},
	} {
		for _, rule := range rules {
			t.Run(table+" "+rule, func(t *testing.T) {
				tx, err := c.Begin(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer tx.Rollback(t.Context()) //nolint:errcheck // the rollback is intended
				for _, sql := range []string{
					`SET LOCAL ` + TenantSetting + ` = '*'`,
					fmt.Sprintf(`ALTER TABLE %s DISABLE TRIGGER USER`, table),
				} {
					if _, err := tx.Exec(t.Context(), sql); err != nil {
						t.Fatal(err)
					}
				}
				at := fmt.Sprintf(`UPDATE %s SET %s WHERE ctid = (SELECT ctid FROM %[1]s LIMIT 1)`, table, rule)
				tag, err := tx.Exec(t.Context(), at)
				var refused *pgconn.PgError
				if !errors.As(err, &refused) || refused.Code != "23514" { // check_violation
					t.Errorf("%s: %v, %v", at, tag, err)
				}
			})
		}
	}
}
