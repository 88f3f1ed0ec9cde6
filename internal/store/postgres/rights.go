package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// insufficientPrivilege is the SQLSTATE of a missing privilege.
const insufficientPrivilege = "42501"

// lacksPrivilege reports whether the role lacks a privilege on an object. A violation of row security has the
// same SQLSTATE, but comes from another routine of the server, and no grant repairs it.
func lacksPrivilege(pg *pgconn.PgError) bool {
	return pg.Code == insufficientPrivilege && pg.Routine == "aclcheck_error"
}

// The tables of the store: all of them, those with updated rows, and those with deleted rows. The
// store reads all tables, and inserts into all but gatehouse_schema.
var (
	allTables = strings.Fields(`
gatehouse_schema gatehouse_session tenant principal principal_group api_key edit_token reader idempotency
bulk_calls rate_spent policy_version policy_active notice notice_dismissed action proposal ceiling_claim
approval vote decision_count push receipt mirror workflow schedule run run_body run_hand step step_body
step_wake step_attempt model_usage budget_claim run_signal reflexion bundle audit_leaf audit_log audit_batch
audit_waiting action_archive session setup_link external_identity passkey ceremony step_up saved_view ceiling_sum
notification_position notification channel_state ring_key review slack_click notification_card delegation action_grant
device mandate action_word action_word_block action_word_mark secret
notification_preference comment snooze connector_version`)
	// For the server, locking a row requires the UPDATE privilege.
	updatedTables = strings.Fields(`
gatehouse_session principal api_key edit_token idempotency bulk_calls rate_spent policy_active action
ceiling_claim approval vote decision_count push schedule run run_body step step_body budget_claim run_signal
audit_log session setup_link passkey ceremony step_up saved_view ceiling_sum notification_position notification
channel_state ring_key review slack_click notification_card delegation action_grant
device mandate action_word action_word_mark secret notification_preference snooze`)
	deletedTables = strings.Fields(`
gatehouse_session principal_group idempotency action proposal ceiling_claim approval vote push receipt mirror
schedule step_wake budget_claim audit_waiting session setup_link external_identity passkey ceremony step_up
saved_view ceiling_sum notification review slack_click notification_card device action_word action_word_block
comment snooze`)
	// sequences are those that statements use directly.
	sequences = strings.Fields(`action_seq_seq audit_leaf_row run_seq_seq step_seq_seq`)
)

// missingPrivileges lists the missing privileges by name, as "SELECT on vote". It omits objects that
// do not exist.
const missingPrivileges = `SELECT coalesce(string_agg(n.right || ' on ' || n.name, ', ' ORDER BY n.name, n.right), '')
FROM (
  SELECT name, 'SELECT' AS right FROM unnest($1::text[]) name
  UNION ALL SELECT name, 'INSERT' FROM unnest($1::text[]) name WHERE name <> 'gatehouse_schema'
  UNION ALL SELECT name, 'UPDATE' FROM unnest($2::text[]) name
  UNION ALL SELECT name, 'DELETE' FROM unnest($3::text[]) name
  UNION ALL SELECT name, 'USAGE' FROM unnest($4::text[]) name) n
WHERE CASE n.right WHEN 'USAGE' THEN NOT has_sequence_privilege(to_regclass(n.name), n.right)
  ELSE NOT has_table_privilege(to_regclass(n.name), n.right) END`

// Advise adds a remedy to the error of a role that may not create or alter the tables.
func Advise(ctx context.Context, db rowQuerier, err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != insufficientPrivilege {
		return err
	}
	var role, database, schema string
	var create bool
	if db.QueryRow(ctx,
		`SELECT quote_ident(current_user), quote_ident(current_database()), quote_ident(coalesce(current_schema(), 'public')),
coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)`).Scan(&role, &database, &schema, &create) != nil {
		return err
	}
	if create {
		return fmt.Errorf("%w; the role %[2]s must own Gatehouse's tables (ALTER TABLE … OWNER TO %[2]s)", err, role)
	}
	return fmt.Errorf(
		"%w; let the role own the database (ALTER DATABASE %s OWNER TO %s), "+
			"or create tables in it (GRANT CREATE ON SCHEMA %s TO %s)",
		err, database, role, schema, role)
}
