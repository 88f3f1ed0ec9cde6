package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// insufficientPrivilege is the SQLSTATE of what the role may not do.
const insufficientPrivilege = "42501"

// denies reports whether the role lacks a right on a table or the like. Row
// security has the same SQLSTATE, and is nobody's to grant.
func denies(pg *pgconn.PgError) bool {
	return pg.Code == insufficientPrivilege && pg.Routine == "aclcheck_error"
}

// The tables of the store, in the order of the migrations, and what statements do
// to them. All are read; all but gatehouse_schema are inserted into.
var (
	allTables = strings.Fields(`
gatehouse_schema gatehouse_session tenant principal principal_group api_key edit_token reader idempotency
bulk_calls rate_spent policy_version policy_active notice notice_dismissed action proposal ceiling_claim
approval vote decision_count push receipt mirror workflow schedule run run_body run_hand step step_body
step_wake step_attempt model_usage budget_claim run_signal reflexion bundle audit_leaf audit_log audit_batch
audit_waiting action_archive session setup_link external_identity passkey ceremony step_up saved_view ceiling_sum
notification_position notification channel_state ring_key review slack_click notification_card delegation`)
	// To lock a row is to update it, where the server asks for rights.
	updated = strings.Fields(`
gatehouse_session principal api_key edit_token idempotency bulk_calls rate_spent policy_active action
ceiling_claim approval vote decision_count push schedule run run_body step step_body budget_claim run_signal
audit_log session setup_link passkey ceremony step_up saved_view ceiling_sum notification_position notification
channel_state ring_key review slack_click notification_card delegation`)
	deleted = strings.Fields(`
gatehouse_session principal_group idempotency action proposal ceiling_claim approval vote push receipt mirror
schedule step_wake budget_claim audit_waiting session setup_link external_identity passkey ceremony step_up
saved_view ceiling_sum notification review slack_click notification_card`)
	// sequences are those that statements take numbers from themselves.
	sequences = strings.Fields(`action_seq_seq audit_leaf_row run_seq_seq step_seq_seq`)
)

// lackedRights asks for what the role may not do, as "SELECT on vote", by name.
// Of what is not there it says nothing.
const lackedRights = `SELECT coalesce(string_agg(n.right || ' on ' || n.name, ', ' ORDER BY n.name, n.right), '') FROM (
  SELECT name, 'SELECT' AS right FROM unnest($1::text[]) name
  UNION ALL SELECT name, 'INSERT' FROM unnest($1::text[]) name WHERE name <> 'gatehouse_schema'
  UNION ALL SELECT name, 'UPDATE' FROM unnest($2::text[]) name
  UNION ALL SELECT name, 'DELETE' FROM unnest($3::text[]) name
  UNION ALL SELECT name, 'USAGE' FROM unnest($4::text[]) name) n
WHERE CASE n.right WHEN 'USAGE' THEN NOT has_sequence_privilege(to_regclass(n.name), n.right) ELSE NOT has_table_privilege(to_regclass(n.name), n.right) END`

// Advise adds to the error of a role that may not make or change the tables what
// would let it.
func Advise(ctx context.Context, db asker, err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != insufficientPrivilege {
		return err
	}
	var role, database, schema string
	var create bool
	if db.QueryRow(ctx, `SELECT quote_ident(current_user), quote_ident(current_database()), quote_ident(coalesce(current_schema(), 'public')),
coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)`).Scan(&role, &database, &schema, &create) != nil {
		return err
	}
	if create {
		return fmt.Errorf("%w; Gatehouse's tables must belong to the role %s, see ALTER TABLE … OWNER TO", err, role)
	}
	return fmt.Errorf("%w; the role must own the database (ALTER DATABASE %s OWNER TO %s), or may make tables in it (GRANT CREATE ON SCHEMA %s TO %s)",
		err, database, role, schema, role)
}
